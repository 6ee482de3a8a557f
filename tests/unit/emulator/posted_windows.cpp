// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/emulator/posted_windows.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace peal::emulator::test {

void PostedWindows::open(ContextId context, uint8_t* remote) {
  slots_[context] = Slot{};
  slots_[context].remote = remote;
  slots_[context].served = true;
}

bool PostedWindows::carry_out() {
  if (posted_.empty()) return false;
  posted_.front()();
  posted_.pop_front();
  return true;
}

void PostedWindows::read(ContextId context, size_t offset, void* to, size_t bytes, Round then) {
  Slot& slot = slots_[context];
  slot.under_way++;
  posted_.emplace_back([&slot, offset, to, bytes, then] {
    std::memcpy(to, slot.remote + offset, bytes);
    slot.round = then;
    slot.under_way--;
  });
}

template <typename Value>
void PostedWindows::write(ContextId context, size_t offset, const Value& value) {
  Slot& slot = slots_[context];
  slot.under_way++;
  posted_.emplace_back([&slot, offset, value] {
    std::memcpy(slot.remote + offset, &value, sizeof(value));
    slot.under_way--;
  });
}

// The first round that begins from now on, and finds nothing, knows.
bool PostedWindows::take_submitted(ContextId context, TimeNs) {
  Slot& slot = slots_[context];
  slot.asked = !slot.none_left;
  return std::exchange(slot.none_left, false);
}

bool PostedWindows::let_go(ContextId context) {
  Slot& slot = slots_[context];
  if (slot.reset && !slot.acknowledged) {
    slot.acknowledged = true;
    write(context, PEAL_WINDOW_CARD_PAGE + offsetof(peal_card_page, reset.epoch),
          static_cast<uint32_t>(slot.page.reset_epoch.value));
  }
  return slot.under_way == 0;
}

bool PostedWindows::poll(uint32_t, TimeNs now) {
  bool any = false;
  for (ContextId context = 0; context < kContexts; context++)
    any |= slots_[context].served && serve(context, now);
  return any;
}

bool PostedWindows::serve(ContextId context, TimeNs now) {
  Slot& slot = slots_[context];
  switch (slot.round) {
    case Round::kIdle:
      slot.round = Round::kPageUnderWay;
      slot.answers = slot.asked;
      read(context, PEAL_WINDOW_HOST_PAGE, &slot.page, sizeof(slot.page), Round::kPage);
      return true;
    case Round::kPage:
      return look_at_page(context, now);
    case Round::kEntry:
      return take_entry(context, now);
    case Round::kPageUnderWay:
    case Round::kEntryUnderWay:
      return false;
  }
  return false;
}

bool PostedWindows::look_at_page(ContextId context, TimeNs now) {
  Slot& slot = slots_[context];
  slot.round = Round::kIdle;
  if (slot.page.reset_epoch.value != 0) return ended(context, WindowEnd::kReset, now);
  const uint64_t waiting = slot.page.indices.submission_tail - slot.head;
  const uint64_t unread = slot.tail - slot.page.indices.completion_head;
  if (waiting > kRingEntries || unread > kRingEntries)
    return ended(context, WindowEnd::kWildIndex, now);
  slot.none_left = slot.answers && waiting == 0;
  if (waiting == 0 || kRingEntries - unread <= card_outstanding(card_, context)) return false;
  slot.round = Round::kEntryUnderWay;
  read(context, PEAL_WINDOW_SUBMISSIONS + (slot.head & (kRingEntries - 1)) * slot.entry.size(),
       slot.entry.data(), slot.entry.size(), Round::kEntry);
  return true;
}

bool PostedWindows::take_entry(ContextId context, TimeNs now) {
  Slot& slot = slots_[context];
  slot.round = Round::kIdle;
  peal_submission entry;
  if (slot.entry.back() != peal_ring_phase(slot.head, kRingEntries)) return false;
  std::memcpy(&entry, slot.entry.data(), sizeof(entry));
  slot.head++;
  write(context, PEAL_WINDOW_CARD_PAGE + offsetof(peal_card_page, indices.submission_head),
        slot.head);
  card_on_submission(card_, context, entry, now);
  return true;
}

void PostedWindows::complete(ContextId context, const peal_completion& entry) {
  Slot& slot = slots_[context];
  if (!slot.served) return;
  std::array<uint8_t, 64> bytes;
  std::memcpy(bytes.data(), &entry, sizeof(entry));
  bytes.back() = peal_ring_phase(slot.tail, kRingEntries);
  write(context,
        PEAL_WINDOW_COMPLETIONS(kRingEntries) + (slot.tail & (kRingEntries - 1)) * bytes.size(),
        bytes);
  slot.tail++;
}

bool PostedWindows::ended(ContextId context, WindowEnd why, TimeNs now) {
  slots_[context].served = false;
  slots_[context].reset = why == WindowEnd::kReset;
  owner_->window_ended(context, why, now);
  return true;
}

}  // namespace peal::emulator::test
