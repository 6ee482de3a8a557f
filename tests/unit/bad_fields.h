// SPDX-License-Identifier: BSD-2-Clause
// Header fields that cannot be, for the tests of whoever takes in packets: a packet that one spoils
// is dropped for the reason that is named, and leaves no other trace.
#pragma once

#include <functional>
#include <vector>

#include "tests/unit/card_fixture.h"

namespace peal::test {

struct BadField {
  const char* name;
  std::function<void(peal_wire_header& header)> spoil;
  const char* counted;
};

// A packet of another rank, whose card it knows.
inline std::function<void(peal_wire_header& header)> from_rank(uint16_t rank) {
  return [rank](peal_wire_header& header) {
    header.sender = rank;
    header.identity = identity_of(rank);
  };
}

// Whatever the algorithm, of an operation of one piece.
inline std::vector<BadField> fields_that_cannot_be() {
  using H = peal_wire_header;
  return {
      {"signature", [](H& h) { h.signature ^= 1; }, "+1 drop_signature"},
      {"signature's high bit", [](H& h) { h.signature ^= 0x80000000u; }, "+1 drop_signature"},
      {"sequence future", [](H& h) { h.sequence = CONFIG_CHANNELS; }, "+1 drop_future"},
      {"piece", [](H& h) { h.piece = 1; }, "+1 drop_piece"},
      {"piece all ones", [](H& h) { h.piece = ~0u; }, "+1 drop_piece"},
      {"hop 255", [](H& h) { h.hop = 255; }, "+1 drop_hop"},
      {"fragment all ones", [](H& h) { h.fragment = 0xff; }, "+1 drop_fragment"},
  };
}

// `good` would be taken as it is.
inline void expect_dropped(CardBench& bench, const Frame& good, const std::vector<BadField>& bads) {
  for (const BadField& bad : bads) {
    Frame frame = good;
    bad.spoil(frame.header);
    seal(frame);
    const TimeNs deadline = card_next_deadline(bench.card());
    const auto before = bench.counters();
    bench.deliver(frame);
    EXPECT_EQ(bench.counter_changes(before), bad.counted) << bad.name;
    EXPECT_EQ(bench.take_log(), "") << bad.name;
    EXPECT_EQ(card_next_deadline(bench.card()), deadline) << bad.name;
  }
}

}  // namespace peal::test
