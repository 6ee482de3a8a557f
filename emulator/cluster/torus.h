// SPDX-License-Identifier: BSD-2-Clause
// Links between cards that are the nodes of a torus of up to three dimensions. A frame goes along
// the first dimension, the shorter way, then along the second and the third, and through each
// switch as soon as its head is there (cut-through); a link carries one frame after the other, in
// the order in which their heads come. Along a dimension of two there is one link each way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cluster/sim_time.h"

namespace peal::sim {

class Torus {
 public:
  using Size = std::array<uint32_t, 3>;  // all zero: no torus

  explicit Torus(const Size& size) : size_(size), free_ns_(cards(size) * kLinks, 0) {}

  [[nodiscard]] bool any() const { return size_[0] != 0; }
  [[nodiscard]] static size_t cards(const Size& size) {
    return size_t{size[0]} * size[1] * size[2];
  }
  struct Hop {
    uint32_t next;  // the card at its other end
    size_t link;
  };
  // The next link from one card to another.
  [[nodiscard]] Hop hop(uint32_t at, uint32_t to) const;
  // A head comes to a link; when it goes on. The link is busy for `busy_ns` more.
  TimeNs enter(size_t link, TimeNs head_ns, TimeNs busy_ns);
  // Frames that had to wait for a link, and for how long.
  [[nodiscard]] uint64_t waits() const { return waits_; }
  [[nodiscard]] TimeNs waited_ns() const { return waited_ns_; }

 private:
  static constexpr size_t kLinks = 6;  // of a card: two in each dimension

  Size size_;
  std::vector<TimeNs> free_ns_;
  uint64_t waits_ = 0;
  TimeNs waited_ns_ = 0;
};

}  // namespace peal::sim
