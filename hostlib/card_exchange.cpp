// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/card_exchange.h"

#include <cstring>

#include "hostlib/ended.h"
#include "hostlib/memory.h"
#include "hostlib/own_exchange.h"

namespace peal::host {
namespace {

// Others are not left waiting: they learn that lengths differ.
peal_error give_up(peal_error error) {
  (void)error;
  return fail(PEAL_ERR_NO_MEMORY, "no memory to exchange addresses in");
}

}  // namespace

CardExchange::CardExchange(peal_group& group) : group_(&group) {
  if (group.size == 1) return;
  const size_t bytes = size_t{1 + group.size} * PEAL_GROUP_RECORD_BYTES;
  if (peal_alloc(group.context, bytes, &memory_) != PEAL_OK) memory_ = nullptr;
}

CardExchange::~CardExchange() {
  if (memory_ != nullptr) leave_allocated(*group_->context, memory_);
}

peal_error CardExchange::gather(const void* send, void* receive, size_t bytes) const {
  if (group_->size == 1) {
    memcpy(receive, send, bytes);
    return PEAL_OK;
  }
  if (memory_ == nullptr) return give_up(own_allgather(*group_, nullptr, nullptr, 0));
  auto* own = static_cast<uint8_t*>(memory_);
  memcpy(own, send, bytes);
  const peal_error error = own_allgather(*group_, own, own + bytes, bytes);
  if (error == PEAL_OK) memcpy(receive, own + bytes, group_->size * bytes);
  return error;
}

peal_error CardExchange::to_each(const void* send, void* receive, size_t bytes) const {
  const size_t all = group_->size * bytes;
  if (group_->size == 1) {
    memcpy(receive, send, all);
    return PEAL_OK;
  }
  if (memory_ == nullptr) return give_up(own_alltoall(*group_, nullptr, nullptr, 0));
  auto* own = static_cast<uint8_t*>(memory_);
  memcpy(own, send, all);
  const peal_error error = own_alltoall(*group_, own, own + all, bytes);
  if (error == PEAL_OK) memcpy(receive, own + all, all);
  return error;
}

int CardExchange::run(void* argument, const void* send, void* receive, size_t bytes) {
  auto& self = *static_cast<CardExchange*>(argument);
  self.error_ = self.gather(send, receive, bytes);
  if (self.error_ != PEAL_OK) self.text_ = last_error_text();
  return self.error_ == PEAL_OK ? 0 : 1;
}

peal_error CardExchange::failure() const {
  return error_ == PEAL_OK ? PEAL_OK : fail(error_, "%s", text_.c_str());
}

}  // namespace peal::host
