// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/mapped_windows.h"

#include <cassert>

namespace peal::emulator {

void MappedWindows::open(ContextId context, void* memory, uint32_t capabilities, HostWaker* waker,
                         WindowMemory state) {
  flush();  // so that an id that comes back is in no list
  Slot& slot = slots_[context];
  assert(!slot.served);
  slot.window.open(memory, kRingEntries, card_, context, capabilities, waker, state);
  slot.window.beat(beats_, beat_interval_us_);
  slot.served = true;
  open_[open_count_++] = context;
}

void MappedWindows::end(ContextId context) {
  if (!slots_[context].served) return;
  slots_[context].served = false;
  for (uint32_t i = 0; i < open_count_; i++) {
    if (open_[i] != context) continue;
    open_[i] = open_[--open_count_];
    return;
  }
}

bool MappedWindows::let_go(ContextId context) {
  ContextWindow& window = slots_[context].window;
  if (window.state() == WindowState::kReset) window.acknowledge_reset();
  window.close();
  return true;
}

// Returns how many it took. The window may end.
uint32_t MappedWindows::serve(ContextId context, uint32_t limit, TimeNs now) {
  ContextWindow& window = slots_[context].window;
  const uint32_t taken = window.poll(card_, limit, now);
  if (window.state() == WindowState::kRunning) return taken;
  const WindowEnd why =
      window.state() == WindowState::kReset ? WindowEnd::kReset : WindowEnd::kWildIndex;
  end(context);
  if (owner_ != nullptr) owner_->window_ended(context, why, now);
  return taken;
}

bool MappedWindows::take_submitted(ContextId context, TimeNs now) {
  const Slot& slot = slots_[context];
  if (slot.served && slot.window.has_news()) serve(context, kRingEntries, now);
  return !slot.served || !slot.window.has_news();
}

bool MappedWindows::poll(uint32_t limit, TimeNs now) {
  bool any = false;
  unread_ = false;
  for (uint32_t i = 0; i < open_count_;) {
    const ContextId context = open_[i];
    const Slot& slot = slots_[context];
    if (slot.window.has_news()) {
      const uint32_t taken = serve(context, limit, now);
      any |= taken > 0 || !slot.served;
      if (!slot.served) continue;  // another has moved here
      unread_ |= taken == limit && slot.window.has_news();
    }
    i++;
  }
  return any;
}

void MappedWindows::complete(ContextId context, const peal_completion& entry) {
  if (context >= kContexts || !slots_[context].served) return;
  ContextWindow& window = slots_[context].window;
  if (!window.dirty() && window.state() == WindowState::kRunning) dirty_[dirty_count_++] = context;
  window.complete(entry);
  completed_++;
}

void MappedWindows::flush() {
  for (uint32_t i = 0; i < dirty_count_; i++) slots_[dirty_[i]].window.flush();
  dirty_count_ = 0;
}

void MappedWindows::set_card_sleeping(bool sleeping) {
  for (uint32_t i = 0; i < open_count_; i++) slots_[open_[i]].window.set_card_sleeping(sleeping);
}

void MappedWindows::beat(uint64_t beats, uint32_t interval_us) {
  beats_ = beats;
  beat_interval_us_ = interval_us;
  for (uint32_t i = 0; i < open_count_; i++) slots_[open_[i]].window.beat(beats, interval_us);
}

bool MappedWindows::has_blocked() const {
  for (uint32_t i = 0; i < open_count_; i++) {
    if (slots_[open_[i]].window.waits_for_room()) return true;
  }
  return false;
}

}  // namespace peal::emulator
