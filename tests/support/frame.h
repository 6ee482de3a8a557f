// SPDX-License-Identifier: BSD-2-Clause
// One packet as it is on the wire, owned by the test: a header and its payload, by value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/wire.h"

namespace peal::test {

struct Frame {
  peal_wire_header header{};
  std::vector<uint8_t> payload;

  [[nodiscard]] uint32_t bytes() const {
    return PEAL_HEADER_BYTES + static_cast<uint32_t>(payload.size());
  }
};

// CRC32C (Castagnoli), bit by bit: deliberately not the firmware's code, so that each checks the
// other.
uint32_t reference_crc32c(const void* data, size_t bytes, uint32_t seed = 0);

// Fills in length and both checksums, from what the other fields and the payload hold now.
void seal(Frame& frame);
// The same, but leaves `length` as the test set it.
void seal_checksums(Frame& frame);

// "OK", "PEER_DEAD", … for a line of text; "STATUS-n" for what the ABI does not know.
std::string status_text(uint32_t status);

// The terse line that protocol tests compare: `1>3 DATA seq=0 piece=0 origin=1 hop=1 len=64`. The
// receiver is the card index in the destination address.
std::string frame_text(const peal_wire_header& header, const uint8_t* payload);
inline std::string frame_text(const Frame& frame) {
  return frame_text(frame.header, frame.payload.data());
}

}  // namespace peal::test
