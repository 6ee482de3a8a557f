// SPDX-License-Identifier: BSD-2-Clause
// Tables of all ranks' addresses, which the card reads (CONNECT_GROUP). One is a few hundred bytes,
// and memory that the card knows costs it a key and us a round trip: so many lie in one piece of
// it, which is kept until the context closes.
//
// A place may be another group's as soon as the card has given up the member it was for. What is
// still being read of it then is for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hostlib/transport.h"

namespace peal::host {

// Under the context's lock.
class AddressTables {
 public:
  struct Place {
    uint8_t* address = nullptr;  // null: no place
    uint32_t key = 0;
    uint32_t offset = 0;  // in the key's memory
    uint32_t bytes = 0;
  };

  // A place for so many bytes; none when add() must bring memory first.
  Place take(uint32_t bytes);
  void give(const Place& place);

  // How much memory to bring for so many bytes.
  static size_t block_bytes(uint32_t bytes);
  void add(const Allocation& memory);
  // What was brought; nothing is in it any more.
  std::vector<Allocation> leave();

 private:
  struct Block {
    Allocation memory;
    std::vector<bool> used;  // by units
  };
  std::vector<Block> blocks_;
};

}  // namespace peal::host
