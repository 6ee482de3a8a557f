// SPDX-License-Identifier: BSD-2-Clause
// How a member's room for each rank is shared out: of any group nothing lies where another thing
// does.
#include "firmware/group/by_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace peal::test {
namespace {

struct Stretch {
  const uint8_t* begin;
  const uint8_t* end;
};

template <typename What>
Stretch stretch(const What* first, size_t count) {
  return {reinterpret_cast<const uint8_t*>(first), reinterpret_cast<const uint8_t*>(first + count)};
}

TEST(ByRank, NothingOverlaps) {
  const auto member = std::make_unique<Member>();
  for (const uint32_t number : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 17u, 64u, 65u, 1000u, kPartRanks,
                                kPairRanks, uint32_t{CONFIG_GROUP_RANKS_MAX}}) {
    const uint32_t ranks = std::min<uint32_t>(number, CONFIG_GROUP_RANKS_MAX);
    member->membership.ranks = ranks;
    std::vector<Stretch> all;
    for (uint32_t place = 0; place < CONFIG_PART_TABLES && ranks <= kPartRanks; place++) {
      all.push_back(stretch(part_table_at(*member, place), 2 * size_t{ranks}));
    }
    const uint32_t runs = std::min((ranks + kAddressRun - 1) / kAddressRun, kAddressRuns);
    for (uint32_t place = 0; place < runs; place++) {
      all.push_back(stretch(addresses_at(*member, place), kAddressRun));
    }
    for (uint32_t slot = 0; slot < kChannels && ranks <= kPairRanks; slot++) {
      Pairs* const pairs = pairs_at(*member, slot);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pairs) % alignof(Pairs), 0u);
      all.push_back(stretch(pairs, 1));
      all.push_back(stretch(pairs->of(), ranks));
    }
    const uint8_t* behind = member->by_rank;
    for (const Stretch& each : all) {
      EXPECT_GE(each.begin, behind) << ranks << " ranks";
      behind = each.end;
    }
    EXPECT_LE(behind, member->by_rank + sizeof(member->by_rank)) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace peal::test
