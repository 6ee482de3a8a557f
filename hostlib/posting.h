// SPDX-License-Identifier: BSD-2-Clause
// What an operation's entry in the submission ring (abi/queue.h) says, but for whose and which it
// is.
#pragma once

#include <cstdint>

namespace peal::host {

struct Posting {
  uint8_t operation;  // enum peal_operation
  uint8_t algorithm;
  uint16_t flags;
  union {
    uint32_t root;
    uint32_t parts_key;  // allgatherv, alltoallv
  };
  uint32_t send_key;
  uint32_t receive_key;
  uint64_t send_offset;
  union {
    uint64_t receive_offset;
    uint64_t parts_offset;  // allgatherv, alltoallv
  };
  uint64_t block_bytes;
};

}  // namespace peal::host
