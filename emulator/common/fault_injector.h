// SPDX-License-Identifier: BSD-2-Clause
// What a bad wire does to frames, decided from a seed: loss, duplication, reordering, delay,
// corruption, partitions. It only judges; the wire that asks carries the verdict out (and copies a
// shared payload before it flips a bit in it). No clock and no thread of its own, so it serves
// peal-nic and the virtual-time cluster alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/common/random.h"

namespace peal::emulator {

using TimeNs = uint64_t;
inline constexpr TimeNs kForever = ~TimeNs{0};

// Between from_ns and until_ns no frame passes between cards first..last and all the others.
struct Partition {
  uint32_t first_card = 0;
  uint32_t last_card = 0;
  TimeNs from_ns = 0;
  TimeNs until_ns = kForever;
};

// Nothing happens to frames between cards first..last, and they are not judged.
struct Spared {
  uint32_t first_card = 0;
  uint32_t last_card = 0;
};

struct FaultPlan {
  double loss = 0;       // probabilities per frame, 0 to 1
  double duplicate = 0;  // a second copy
  double reorder = 0;    // held back by up to reorder_ns, so that later frames overtake
  double delay = 0;      // held back by up to delay_ns
  double corrupt = 0;    // one bit of one copy flipped, anywhere in the frame
  TimeNs reorder_ns = 20'000;
  TimeNs delay_ns = 200'000;
  TimeNs until_ns =
      kForever;  // from then on the wire is healed (partitions have times of their own)
  std::vector<Partition> partitions;
  std::vector<Spared> spared;

  // Whether any fault can ever happen.
  [[nodiscard]] bool any() const;
  // Empty when the plan makes sense, else what is wrong with it.
  [[nodiscard]] std::string problem() const;
};

// Reads `name=value` terms separated by commas: loss, duplicate, reorder, delay, corrupt
// (probabilities), reorder_us, delay_us, until_us (numbers), partition=FIRST-LAST:FROM_US-UNTIL_US
// and spare=FIRST-LAST (cards; both repeatable). Terms are added to what the plan holds. Empty on
// success, else what was wrong.
[[nodiscard]] std::string parse_fault_plan(std::string_view text, FaultPlan* plan);
// The same plan as text that parse_fault_plan reads back.
[[nodiscard]] std::string format_fault_plan(const FaultPlan& plan);

inline constexpr uint32_t kCopiesMax = 2;
inline constexpr uint32_t kNoBit = ~0u;

// One copy of a frame.
struct FrameCopy {
  TimeNs delay_ns = 0;  // on top of the wire's own latency
  uint32_t corrupt_bit =
      kNoBit;  // bit to flip: byte corrupt_bit / 8 of the frame, bit corrupt_bit % 8
};

struct Verdict {
  uint32_t copies = 1;  // 0: lost; 2: duplicated
  FrameCopy copy[kCopiesMax];
};

struct FaultCounts {
  uint64_t judged = 0;
  uint64_t lost = 0;
  uint64_t partitioned = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t delayed = 0;
  uint64_t corrupted = 0;
};

class FaultInjector {
 public:
  // The plan must have no problem().
  FaultInjector(FaultPlan plan, uint64_t seed);

  // The fate of one frame of frame_bytes (header and payload). The same seed and the same sequence
  // of calls give the same verdicts; every judgement draws the same number of random numbers,
  // whatever its outcome.
  Verdict judge(uint32_t from_card, uint32_t to_card, uint32_t frame_bytes, TimeNs now_ns);

  // No faults any more, from now on; partitions end too.
  void heal();

  [[nodiscard]] bool active() const { return active_; }
  [[nodiscard]] const FaultPlan& plan() const { return plan_; }
  [[nodiscard]] const FaultCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] bool spares(uint32_t from_card, uint32_t to_card) const;
  [[nodiscard]] bool parted(uint32_t from_card, uint32_t to_card, TimeNs now_ns) const;

  FaultPlan plan_;
  Random random_;
  FaultCounts counts_;
  // Probabilities as fractions of 2^53, compared with the top 53 bits of a draw.
  uint64_t loss_;
  uint64_t duplicate_;
  uint64_t reorder_;
  uint64_t delay_;
  uint64_t corrupt_;
  bool active_;
};

}  // namespace peal::emulator
