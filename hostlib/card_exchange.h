// SPDX-License-Identifier: BSD-2-Clause
// Exchanges of a group's ranks over their cards, instead of the caller's way.
#pragma once

#include <string>

#include "hostlib/handles.h"

namespace peal::host {

// Collective, each call; without the context's lock.
class CardExchange {
 public:
  explicit CardExchange(peal_group& group);
  ~CardExchange();
  CardExchange(const CardExchange&) = delete;
  CardExchange& operator=(const CardExchange&) = delete;

  // Everybody's `bytes`, PEAL_GROUP_RECORD_BYTES at most, in the order of ranks.
  [[nodiscard]] peal_error gather(const void* send, void* receive, size_t bytes) const;
  // From everybody what it has for this rank, half as many bytes at most.
  [[nodiscard]] peal_error to_each(const void* send, void* receive, size_t bytes) const;

  // gather() as a peal_exchange_callback.
  static int run(void* argument, const void* send, void* receive, size_t bytes);
  // How run() failed, explained in the thread's text.
  [[nodiscard]] peal_error failure() const;

 private:
  peal_group* group_;
  void* memory_ = nullptr;
  peal_error error_ = PEAL_OK;
  std::string text_;
};

}  // namespace peal::host
