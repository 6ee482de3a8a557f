// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/torus.h"

namespace peal::sim {

Torus::Hop Torus::hop(uint32_t at, uint32_t to) const {
  uint32_t stride = 1;
  for (uint32_t dimension = 0; dimension < size_.size(); stride *= size_[dimension++]) {
    const uint32_t extent = size_[dimension];
    const uint32_t place = at / stride % extent;
    const uint32_t ahead = (to / stride % extent + extent - place) % extent;
    if (ahead == 0) continue;
    const bool back = ahead > extent - ahead;
    const uint32_t next = (place + (back ? extent - 1 : 1)) % extent;
    return {at - place * stride + next * stride, at * kLinks + 2 * dimension + (back ? 1 : 0)};
  }
  return {at, 0};
}

TimeNs Torus::enter(size_t link, TimeNs head_ns, TimeNs busy_ns) {
  TimeNs& free_ns = free_ns_[link];
  if (free_ns > head_ns) {
    waits_++;
    waited_ns_ += free_ns - head_ns;
    head_ns = free_ns;
  }
  free_ns = head_ns + busy_ns;
  return head_ns;
}

}  // namespace peal::sim
