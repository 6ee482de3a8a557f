// SPDX-License-Identifier: BSD-2-Clause
// Bad news that the test makes up: verdicts in packets of played peers.
#pragma once

#include <cstring>
#include <string>

#include "tests/unit/card_fixture.h"

namespace peal::test {

class Verdict : public GroupTest {
 protected:
  static Frame with_verdict(Frame frame, uint32_t rank, uint32_t status) {
    const peal_verdict verdict{rank, status};
    std::memcpy(frame.payload.data(), &verdict, sizeof(verdict));
    seal(frame);
    return frame;
  }
  static constexpr const char* kFlood =
      "send 1>2 DEATH rank=3\n"
      "send 1>0 DEATH rank=3\n"
      "send 1>3 DEATH rank=3\n";
};

}  // namespace peal::test
