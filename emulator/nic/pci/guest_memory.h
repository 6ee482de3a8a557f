// SPDX-License-Identifier: BSD-2-Clause
// The RAM of a guest, shared between QEMU and the card: a memfd whose size is sealed, so that
// nobody can shrink it under the card's DMA. The path that QEMU is given (memory-backend-file,
// mem-path=) is a symbolic link to it in /proc, which goes with this object; the memory goes with
// the last process that maps it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "emulator/common/region_table.h"

namespace peal::nic {

class GuestMemory {
 public:
  // Null on failure, with *error saying what was wrong.
  static std::unique_ptr<GuestMemory> create(const std::string& path, uint64_t bytes,
                                             std::string* error);
  ~GuestMemory();
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;

  // Takes the link away, before the memory goes; a second time it does nothing.
  void unlink_name();

  // Bus address a lies at offset a: QEMU's `pc` machine, up to 3 GiB.
  [[nodiscard]] emulator::BusWindow bus() const { return {base_, bytes_}; }

 private:
  GuestMemory(std::string path, uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  std::string open();
  std::string link();

  std::string path_;
  std::string target_;  // what the link says while it is ours
  uint64_t bytes_;
  uint8_t* base_ = nullptr;
  int fd_ = -1;
};

}  // namespace peal::nic
