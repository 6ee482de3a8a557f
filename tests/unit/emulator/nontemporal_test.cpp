// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/nontemporal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace peal::emulator {
namespace {

// From and to every place of a line, of lengths around one line and several.
TEST(Nontemporal, CopiesWhatWasAskedForAndNothingElse) {
  constexpr uint32_t kLine = 64;
  constexpr uint32_t kRoom = 8 * kLine;
  std::vector<uint8_t> from(kRoom);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (uint32_t to_at = 0; to_at < kLine; to_at++) {
    for (const uint32_t from_at : {0u, 1u, 8u, 63u}) {
      for (const uint32_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 300u}) {
        std::vector<uint8_t> to(kRoom, 0xee);
        std::vector<uint8_t> wanted = to;
        std::memcpy(wanted.data() + to_at, from.data() + from_at, bytes);
        copy_nontemporal(to.data() + to_at, from.data() + from_at, bytes);
        ASSERT_EQ(to, wanted) << to_at << " from " << from_at << ", " << bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace peal::emulator
