// SPDX-License-Identifier: BSD-2-Clause
// The checkers: each knows one thing that must always hold and only what can be seen from outside
// the cards. They include no firmware header and share no code with it.
//   exactly-once   every post is completed once, by the right card, with the fields it was posted
//                  with, and the ring delivers it
//   right-bytes    a successful result is right in every byte, and nothing around it was written
//                  (user_memory.h)
//   user-buffers   no access to a buffer before its post or after its completion
//   barrier        nothing succeeds before every rank has posted it; or its root, if it needs no
//                  other
//   isolation      DMA stays in registered memory (as the card's own table of regions says)
//   quiet          no DMA under way into memory that the card has given back
//   dead-memory    no DMA starts in the buffers of a process that is gone
//   running-ahead  nobody is K operations ahead of the slowest member
//   wire           frames are well-formed, to and from members
//   status         operations fail only where a failure was made, and name a rank that is dead
//   collapse       packets per packet needed stay below what the kind of scenario allows (run.cpp)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/cluster/observer.h"
#include "emulator/cluster/world.h"

namespace peal::sim {

class WireChecker final : public Observer {
 public:
  explicit WireChecker(World& world) : world_(world) {}
  void on_send(TimeNs now_ns, const FrameView& frame) override;

  // Frames sent, by enum peal_packet_type; repairs apart.
  [[nodiscard]] const std::array<uint64_t, PEAL_PACKET_TYPE_COUNT>& sent() const { return sent_; }
  [[nodiscard]] uint64_t repairs() const { return repairs_; }
  // Of the signals: those of recycling.
  [[nodiscard]] uint64_t recycle_signals() const { return recycle_signals_; }

 private:
  [[nodiscard]] bool is_home(uint32_t group, uint32_t card);
  void check_running_ahead(TimeNs now_ns, const GroupState& group, const peal_wire_header& header);
  void wrong(TimeNs now_ns, const peal_wire_header& header, const std::string& text);

  World& world_;
  std::array<uint64_t, PEAL_PACKET_TYPE_COUNT> sent_{};
  uint64_t repairs_ = 0;
  uint64_t recycle_signals_ = 0;
  std::vector<uint64_t> finished_below_;  // by group: a lower bound of the slowest member's
  std::vector<std::vector<bool>> homes_;  // by group and card: does a member live there?
};

class MemoryChecker final : public Observer {
 public:
  explicit MemoryChecker(World& world) : world_(world) {}
  void on_dma(TimeNs now_ns, const DmaView& dma) override;

 private:
  World& world_;
};

class CompletionChecker {
 public:
  explicit CompletionChecker(World& world) : world_(world) {}
  // Returns the member that the completion belongs to, or kNoMember when it must be ignored.
  uint32_t check(TimeNs now_ns, uint32_t card, uint32_t context, const peal_completion& entry);

 private:
  void check_status(TimeNs now_ns, MemberState& member, uint64_t index,
                    const peal_completion& entry);
  void check_success(TimeNs now_ns, const MemberState& member, uint64_t index,
                     const peal_completion& entry);

  World& world_;
};

// Whether something happened to the rank by which others may believe it dead, by now.
[[nodiscard]] bool may_be_dead(const World& world, uint32_t group, uint32_t rank, TimeNs now_ns);
// Whether the rank has taken its memory away by now.
[[nodiscard]] bool may_be_unmapped(const World& world, uint32_t group, uint32_t rank,
                                   TimeNs now_ns);
// Every post of a member that lives must have been made and completed.
void check_progress(World& world, TimeNs now_ns);
// No free buffer's garbage may have changed.
void check_garbage(World& world, TimeNs now_ns);

// The cookie of a post.
inline uint64_t make_cookie(uint32_t member, uint64_t sequence) {
  return uint64_t{member} << 32 | (sequence & 0xffffffffu);
}

}  // namespace peal::sim
