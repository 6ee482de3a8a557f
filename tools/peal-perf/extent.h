// SPDX-License-Identifier: BSD-2-Clause
// How long something took that all ranks did together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace peal::perf {

class Extent {
 public:
  void add(uint64_t start_ns, uint64_t end_ns) {
    first_ns_ = std::min(first_ns_, start_ns);
    last_ns_ = std::max(last_ns_, end_ns);
    longest_ns_ = std::max(longest_ns_, end_ns - start_ns);
  }
  // From the first rank's start to the last one's end; where their clocks differ, of the slowest.
  [[nodiscard]] double us(bool common_clock) const {
    return static_cast<double>(common_clock ? last_ns_ - first_ns_ : longest_ns_) * 1e-3;
  }

 private:
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  uint64_t longest_ns_ = 0;
};

}  // namespace peal::perf
