// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/inquiry.h"

#include <bit>

#include "firmware/base/mutation.h"
#include "firmware/group/liveness.h"
#include "firmware/group/remote.h"

namespace peal {
namespace {

// A promise stands so many intervals, but no longer than a half of that time.
constexpr TimeNs kPromise = 8;
constexpr TimeNs kLongestPromise = 2;
// What an operation knows to be lost it asks for after that part of a first interval at the least,
// together: many blocks that are lost were lost where there were too many; and after this part at
// the most, whatever patience has learned of lateness.
constexpr TimeNs kLostPatience = 8;
constexpr TimeNs kLostPatienceMost = 4;
// Where something was lost before, what a peer has said of its edge is believed for so many first
// intervals, and longer where it was not said in the first twelfth of the silence: so a rank that
// is late is asked two or three times for it, until probes, which the silent get, say it often
// enough.
constexpr TimeNs kBelieved = 24;
constexpr TimeNs kEarly = 12;

// It may have sent since it said so, and nothing of that may have come.
bool was_said_long_ago(const Card& card, const Member& member, const Inquiry& inquiry,
                       TimeNs said_ns) {
  return !member.patience.lossless &&
         card.now - said_ns >= kBelieved * inquiry_interval(card, member) &&
         card.now - inquiry.heard_ns >= kEarly * (said_ns - inquiry.heard_ns);
}

// Has this peer said, in the present silence and lately (whoever is silent is probed), that all it
// had sent has come? Only where nothing of it is lost that no operation could ask for at that time,
// and for as long as nobody is dead: that ranks disagree may show by questions alone.
bool has_sent_nothing(const Card& card, const Member& member, const Inquiry& inquiry,
                      uint32_t entry) {
  const Peer& peer = member.membership.peers[entry];
  const TimeNs lately_ns = 2 * watch_interval(card) + card.timeouts.probe_interval_ns;
  return peer.complete_ns > inquiry.heard_ns && card.now - peer.complete_ns < lately_ns &&
         member.recycled >= peer.gaps_before && (member.patience.lossless || !inquiry.all_begun) &&
         card.now - inquiry.heard_ns < card.timeouts.dead_ns &&
         !was_said_long_ago(card, member, inquiry, peer.complete_ns);
}

// Has it been silent for as long as lateness has lasted?
bool is_silent_for_long(const Card& card, const Member& member, const Inquiry& inquiry) {
  return card.now - inquiry.heard_ns >= member.late_patience.wait_ns;
}

// Where questions have been in vain lately, one neighbour is asked at a time; of those that seem
// late, where it is known that ranks are, or nothing of the operation is known to be lost. Most
// likely all would say the same.
bool has_turn(const Member& member, Inquiry& inquiry, Wanted wanted) {
  const bool late =
      wanted == Wanted::kLate && (knows_of_lateness(member) || inquiry_is_lossless(inquiry));
  if (member.patience.calm < kCalmInVain && !late) return true;
  const uint32_t place = inquiry.owing++;
  return place == (inquiry.owing_before == 0 ? 0 : inquiry.turn % inquiry.owing_before);
}

// How long the silence was in which it was asked. Where something has come since, as long as
// patience at the least.
TimeNs silence_before(const Inquiry& inquiry, const Patience& patience, TimeNs asked_ns) {
  return asked_ns > inquiry.heard_ns ? asked_ns - inquiry.heard_ns : patience.wait_ns;
}

// It was late, as an answer to the last question says.
void learn_lateness(const Card& card, Member& member, const Inquiry& inquiry, uint32_t entry,
                    TimeNs asked_ns) {
  const bool late = (inquiry.seemed_late >> entry & 1) != 0;
  Patience& patience = late ? member.late_patience : member.patience;
  const TimeNs silent_ns = silence_before(inquiry, patience, asked_ns);
  if (late) {
    patience_late(patience, card.timeouts, asked_ns, silent_ns, card.now,
                  inquiry_is_lossless(inquiry));
  } else {
    patience_in_vain(patience, card.timeouts, asked_ns, silent_ns, card.now);
  }
}

// One answer at a time is timed.
void time_answer(const Card& card, Inquiry& inquiry, Rank asked) {
  if (inquiry.timed == Timed::kNot) {
    inquiry.timed = Timed::kOnce;
    inquiry.timed_rank = static_cast<uint16_t>(asked);
    inquiry.timed_ns = card.now;
  } else if (inquiry.timed_rank == asked && inquiry.timed_ns != card.now) {
    inquiry.timed = Timed::kAgain;
  }
}

}  // namespace

void inquiry_asked_for(Card& card, const Member& member, Inquiry& inquiry, Timer& timer) {
  const bool waits = timer.place != 0 && !inquiry.asked && !inquiry.hastened;
  if (!member.membership.losses || !waits || !inquiry_is_silent(card, inquiry)) return;
  inquiry.hurried = inquiry.hastened = inquiry.disturbed = true;
  if (card.now - inquiry.from_ns < inquiry.interval_ns) {
    inquiry.from_ns = card.now - inquiry.interval_ns;  // it is due
  }
  card.timers.arm_no_later(timer, card.now + 1);
}

void inquiry_begin(const Card& card, const Member& member, Inquiry& inquiry) {
  inquiry.heard_ns = inquiry.from_ns = card.now;
  inquiry.interval_ns = inquiry_first_interval(card, member, inquiry);
  inquiry.disturbed = inquiry.asked = inquiry.hastened = inquiry.told_late = false;
}

void inquiry_all_begun(const Card& card, const Member& member, Inquiry& inquiry) {
  if (inquiry.all_begun) return;
  inquiry.all_begun = inquiry.disturbed = true;
  inquiry.promised = 0;
  const TimeNs first_ns = inquiry_first_interval(card, member, inquiry);
  if (card.now + first_ns >= inquiry.from_ns + inquiry.interval_ns) return;
  inquiry.interval_ns = first_ns;
  inquiry_put_off(card, inquiry);
}

TimeNs inquiry_next(const Card& card, const Inquiry& inquiry) {
  TimeNs ask_ns = inquiry.from_ns + inquiry.interval_ns;
  // It was due, but for the card's queue: how long that is then the next look tells.
  if (ask_ns <= card.now) ask_ns = card.now + inquiry.interval_ns;
  TimeNs next_ns = card.now + watch_interval(card);
  if (ask_ns < next_ns) next_ns = ask_ns;
  if (inquiry.doubts != 0 && inquiry.doubt_at_ns < next_ns) next_ns = inquiry.doubt_at_ns;
  return next_ns;
}

bool inquiry_is_due(const Card& card, const Member& member, Inquiry& inquiry) {
  if (!inquiry.disturbed) {
    inquiry.interval_ns = inquiry_first_interval(card, member, inquiry);
  }
  const TimeNs queues_ns = kQueuesToWait * card.behind_ns;
  return card.now >=
         inquiry.from_ns + (inquiry.interval_ns > queues_ns ? inquiry.interval_ns : queues_ns);
}

void inquiry_rest(const Card& card, Inquiry& inquiry) {
  inquiry.from_ns = card.now + watch_interval(card);
}

bool inquiry_look(const Card& card, const Member& member, Inquiry& inquiry) {
  const bool due = inquiry_is_due(card, member, inquiry);
  const bool doubtful = inquiry.doubts != 0 && card.now >= inquiry.doubt_at_ns;
  if (doubtful) {
    // The question or its answer was lost, too; or nobody is there to answer.
    inquiry.suspects = inquiry.doubts;
    inquiry.doubt_ns *= 2;
    if (inquiry.doubt_ns > card.timeouts.nack_max_ns) {
      inquiry.doubt_ns = card.timeouts.nack_max_ns;
      inquiry.doubts &= inquiry.held | uint32_t{1} << kLostEntry;
    }
    inquiry.held = 0;
    inquiry.doubt_at_ns = card.now + inquiry.doubt_ns;
  }
  if (!due) {
    inquiry.asking = doubtful ? Asking::kSuspects : Asking::kNobody;
    inquiry.repeats = doubtful;
    return doubtful || card.now - inquiry.heard_ns >= watch_interval(card);
  }
  inquiry.asking = Asking::kAnybody;
  inquiry.first = !inquiry.asked && inquiry.interval_ns > card.timeouts.nack_ns;
  inquiry.disturbed = true;
  // Ever more slowly, whether the answer was "not yet" or nothing: a late rank, a slow card and a
  // partition must not be asked to death.
  if (!mutated(Mutation::kStormOnLate)) {
    const TimeNs most_ns =
        inquiry.told_late ? card.timeouts.dead_ns / kPatienceMost : card.timeouts.nack_max_ns;
    inquiry.interval_ns = 2 * inquiry.interval_ns < most_ns ? 2 * inquiry.interval_ns : most_ns;
  }
  inquiry_put_off(card, inquiry);
  return true;
}

bool inquiry_may_ask(Card& card, Member& member, Inquiry& inquiry, Rank peer, Wanted wanted) {
  const Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, peer, self.ranks);
  const uint32_t bit = uint32_t{1} << (entry == kNoPeer ? kRemoteEntry : entry);
  const uint32_t reasons = wanted == Wanted::kLost ? bit | uint32_t{1} << kLostEntry : bit;
  if (asks_suspects(inquiry) && (inquiry.suspects & reasons) == 0) return false;
  await_peer(card, member, peer);
  if (inquiry.asking == Asking::kNobody) return false;
  if (!asks_suspects(inquiry) && (inquiry.doubts & bit) == 0 && wanted != Wanted::kLost) {
    if ((inquiry.promised & bit) != 0 && card.now < inquiry.promised_until_ns) return false;
    if (wanted == Wanted::kLate && !is_silent_for_long(card, member, inquiry)) return false;
    if (may_be_unsent(wanted) && entry != kNoPeer &&
        has_sent_nothing(card, member, inquiry, entry)) {
      return false;
    }
  }
  if (inquiry.asking == Asking::kAnybody && may_be_unsent(wanted) &&
      !has_turn(member, inquiry, wanted)) {
    return false;
  }
  if (!pace_ask(member.pace, card.timeouts, card.now)) {
    count(card, PEAL_COUNTER_HELD_BACK_NACK);
    return false;
  }
  const bool certain = asks_suspects(inquiry) || inquiry.hurried;
  inquiry.certain = certain ? inquiry.certain | bit : inquiry.certain & ~bit;
  // Where a doubt asks, what seems late is not asked for after its own patience.
  const bool late = wanted == Wanted::kLate && (inquiry.doubts & bit) == 0;
  inquiry.seemed_late = late ? inquiry.seemed_late | bit : inquiry.seemed_late & ~bit;
  time_answer(card, inquiry, peer);
  // Whoever is silent for long must not be asked again and again.
  const bool may_be_lost = self.losses && entry != kNoPeer && inquiry.first;
  if (may_be_lost && (inquiry.doubts & bit) == 0) inquiry_doubt(card, member, inquiry, entry);
  inquiry.disturbed = inquiry.asked = inquiry.ever_asked = inquiry.asked_suspect = true;
  return true;
}

void inquiry_suspect(Inquiry& inquiry, uint32_t entry) {
  inquiry.asking = Asking::kSuspects;
  inquiry.suspects = uint32_t{1} << entry;
  inquiry.repeats = inquiry.asked_suspect = false;
}

bool inquiry_cleared(const Card& card, const Member& member, Inquiry& inquiry) {
  inquiry_looked(inquiry);
  if (!inquiry.asked_suspect) return false;
  inquiry_doubt(card, member, inquiry, static_cast<uint32_t>(std::countr_zero(inquiry.suspects)));
  inquiry.gaps |= inquiry.suspects;
  return true;
}

void inquiry_doubt(const Card& card, const Member& member, Inquiry& inquiry, uint32_t entry) {
  const TimeNs patience_ns = inquiry_interval(card, member);
  const TimeNs answers_ns = pace_patience(member.pace, card.timeouts);
  const TimeNs behind_ns = kQueuesToWait * card.behind_ns;
  const TimeNs queues_ns = answers_ns > behind_ns ? answers_ns : behind_ns;
  const TimeNs most_ns =
      entry == kLostEntry ? card.timeouts.nack_ns / kLostPatienceMost : card.timeouts.nack_ns;
  const TimeNs soon_ns = patience_ns < most_ns ? patience_ns : most_ns;
  inquiry.doubts |= uint32_t{1} << entry;
  inquiry.gaps &= ~(uint32_t{1} << entry);
  inquiry.doubt_ns = queues_ns > soon_ns ? queues_ns : soon_ns;
  const TimeNs least_ns = card.timeouts.nack_ns / kLostPatience;
  if (entry == kLostEntry && inquiry.doubt_ns < least_ns) inquiry.doubt_ns = least_ns;
  inquiry.doubt_at_ns = card.now + inquiry.doubt_ns;
}

void inquiry_settled(Inquiry& inquiry, uint32_t entry) {
  inquiry.doubts &= ~(uint32_t{1} << entry);
  inquiry.gaps &= inquiry.doubts;
}

void inquiry_held(Inquiry& inquiry, uint32_t entry) { inquiry.held |= uint32_t{1} << entry; }

void inquiry_answered(Inquiry& inquiry, uint32_t entry) {
  if (entry != kLostEntry && (inquiry.held >> entry & 1) == 0) inquiry_settled(inquiry, entry);
}

void inquiry_repaired(const Card& card, Member& member, Inquiry& inquiry, Rank rank) {
  if (inquiry.timed_rank != rank) return;
  if (inquiry.timed == Timed::kOnce) {
    pace_repaired_after(member.pace, card.timeouts, card.now - inquiry.timed_ns, card.behind_ns);
  }
  inquiry.timed = Timed::kNot;
}

void inquiry_in_doubt(const Card& card, Member& member, const Inquiry& inquiry, TimeNs after_ns,
                      bool late) {
  const TimeNs asked_ns = card.now - after_ns;
  patience_in_doubt(member.patience, card.timeouts, asked_ns,
                    silence_before(inquiry, member.patience, asked_ns), card.now, late);
}

void inquiry_promised(Card& card, Member& member, Inquiry& inquiry, uint32_t entry, TimeNs after_ns,
                      bool late) {
  inquiry_answered(inquiry, entry);
  if (!late) return;
  if (!inquiry_was_certain(inquiry, entry)) {
    learn_lateness(card, member, inquiry, entry, card.now - after_ns);
  }
  inquiry.disturbed = inquiry.told_late = true;
  if (inquiry.all_begun) {
    inquiry.all_begun = false;
    const TimeNs first_ns = inquiry_interval(card, member);
    if (inquiry.interval_ns < first_ns) inquiry.interval_ns = first_ns;
  }
  if (entry == kRemoteEntry) return;  // one's promise is not all others'
  inquiry.promised |= uint32_t{1} << entry;
  const TimeNs longest_ns = card.timeouts.dead_ns / kLongestPromise;
  const TimeNs promise_ns = kPromise * inquiry.interval_ns;
  inquiry.promised_until_ns = card.now + (promise_ns < longest_ns ? promise_ns : longest_ns);
}

}  // namespace peal
