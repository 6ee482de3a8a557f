// SPDX-License-Identifier: BSD-2-Clause
// Windows of a card that cannot load its host's memory: it posts reads and writes, and whoever
// carries them out (the test, for a fabric) does so later. A window is served in rounds: its host's
// page is read, then the entry at the head, then the new head is written.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>

#include "abi/ring.h"
#include "emulator/common/windows.h"
#include "firmware/card.h"

namespace peal::emulator::test {

class PostedWindows final : public Windows {
 public:
  explicit PostedWindows(Card& card) : card_(card) {}

  // `remote` is for the fabric only.
  void open(ContextId context, uint8_t* remote);
  // The fabric carries out the oldest of what was posted; false when there is nothing.
  bool carry_out();
  [[nodiscard]] size_t posted() const { return posted_.size(); }

  void set_owner(WindowOwner* owner) override { owner_ = owner; }
  void end(ContextId context) override { slots_[context].served = false; }
  [[nodiscard]] bool take_submitted(ContextId context, TimeNs now) override;
  [[nodiscard]] bool let_go(ContextId context) override;
  bool poll(uint32_t limit, TimeNs now) override;
  void complete(ContextId context, const peal_completion& entry) override;
  // Its hosts do not sleep, nor does it, and nobody looks whether it lives.
  void flush() override {}
  void set_card_sleeping(bool) override {}
  void beat(uint64_t, uint32_t) override {}
  [[nodiscard]] bool has_unread() const override { return false; }
  [[nodiscard]] bool has_blocked() const override { return false; }

 private:
  enum class Round : uint8_t { kIdle, kPageUnderWay, kPage, kEntryUnderWay, kEntry };

  struct Slot {
    uint8_t* remote = nullptr;
    bool served = false;
    bool reset = false;         // how it ended
    bool acknowledged = false;  // written, perhaps not carried out
    Round round = Round::kIdle;
    bool asked = false;      // for what was submitted by now
    bool answers = false;    // the page was read since then
    bool none_left = false;  // and nothing waited
    uint32_t under_way = 0;
    uint64_t head = 0;
    uint64_t tail = 0;  // of completions
    peal_host_page page{};
    std::array<uint8_t, 64> entry{};
  };

  void read(ContextId context, size_t offset, void* to, size_t bytes, Round then);
  template <typename Value>
  void write(ContextId context, size_t offset, const Value& value);
  bool serve(ContextId context, TimeNs now);
  bool look_at_page(ContextId context, TimeNs now);
  bool take_entry(ContextId context, TimeNs now);
  bool ended(ContextId context, WindowEnd why, TimeNs now);

  Card& card_;
  WindowOwner* owner_ = nullptr;
  std::array<Slot, kContexts> slots_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace peal::emulator::test
