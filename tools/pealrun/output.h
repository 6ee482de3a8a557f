// SPDX-License-Identifier: BSD-2-Clause
// What ranks say, on its way to pealrun's standard output with --label. Its reader may be slow or
// not read at all, and pealrun has time-outs and signals to look after: nothing here waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace peal::run {

class Output {
 public:
  void open();
  // With the rank before it; it may hold anything but a newline.
  void add_line(uint32_t rank, std::string_view line);
  // As much as is taken without waiting.
  void write_some();
  // What is left is lost, and what comes: the reader is gone, or nobody waits for it any more.
  void give_up();

  [[nodiscard]] size_t left() const { return text_.size() - sent_; }
  // Then whoever brings more waits: what is kept is bounded.
  [[nodiscard]] bool is_full() const { return left() >= kFullBytes; }
  // For poll(2): whether some of it would be taken.
  [[nodiscard]] int descriptor() const { return own_.valid() ? own_.get() : 1; }

 private:
  static constexpr size_t kFullBytes = 65536;

  FileDescriptor own_;  // standard output, opened again: others that have it want it to wait
  size_t piece_bytes_ = 0;
  bool is_socket_ = false;
  bool gave_up_ = false;
  std::string text_;
  size_t sent_ = 0;  // of it
};

}  // namespace peal::run
