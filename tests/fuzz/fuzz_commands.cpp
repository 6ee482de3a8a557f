// SPDX-License-Identifier: BSD-2-Clause
// Arbitrary submissions, registrations and closes from two contexts of one card. Every entry ends
// in exactly one completion or counts as outstanding; no DMA leaves a registered region of its own
// context (the port watches); nothing leaks.
#include <map>

#include "firmware/channels.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/talk_draw.h"
#include "tests/support/wire_maker.h"

namespace peal::test {
namespace {

constexpr int kEventsMax = 200;

class CommandFuzz {
 public:
  explicit CommandFuzz(FuzzInput& input) : input_(input), bench_(BenchOptions{.index = 1}) {
    contexts_[0] = bench_.context();
    contexts_[1] = bench_.open_context();
    for (int i = 0; i < 2; i++) {
      keys_[i] = bench_.add_memory_of(contexts_[i], "memory" + std::to_string(i), 20'000,
                                      PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
      read_only_[i] =
          bench_.add_memory_of(contexts_[i], "const" + std::to_string(i), 3000, PEAL_ACCESS_READ);
    }
    solo_ = bench_.join(1, 0, 9);    // completes by itself
    group_ = bench_.join(4, 1, 10);  // waits for played ranks
    bench_.port.log_dma = false;
  }

  void run() {
    for (int i = 0; i < kEventsMax && !input_.empty(); i++) {
      event();
      bench_.port.take_sent();
      bench_.port.take_log();
      reap();
    }
    for (int i = 0; i < 20; i++) {
      bench_.finish_all_dma();
      bench_.port.take_sent();
      reap();
      if (!bench_.advance_to_deadline()) break;
    }
    bench_.finish_all_dma();
    reap();
    const std::string problems = bench_.problems();
    fuzz_require(problems.empty(), problems);
  }

 private:
  void event() {
    switch (input_.byte() % 8) {
      case 0:
        bench_.finish_all_dma();
        break;
      case 1:
        bench_.advance(TimeNs{input_.byte()} * 20'000);
        break;
      case 2:
        memory_call();
        break;
      case 3:
        group_call();
        break;
      case 4:
        submit(input_.take<peal_submission>());
        break;
      default:
        submit(made_entry());
    }
  }

  // A good entry, perhaps with a stretch spoilt.
  peal_submission made_entry() {
    Membership& member = input_.byte() % 2 ? solo_ : group_;
    uint64_t& next = &member == &solo_ ? next_solo_ : next_group_;
    peal_submission entry{};
    const uint8_t drawn = input_.byte();
    const uint8_t kind = drawn % 8;
    if (kind == 0) {
      entry = barrier_entry(member, next, 0);
    } else if (kind == 1 && input_.byte() % 8 == 0) {
      entry = destroy_entry(member, next, 0);
    } else if (kind == 4) {
      TalkDraw<FuzzInput> draw(input_, member, keys_[0]);
      entry = draw.submission(0);
    } else {
      const auto algorithm = drawn / 8 % 8 == 3   ? PEAL_ALGORITHM_DIRECT
                             : drawn / 8 % 8 == 7 ? PEAL_ALGORITHM_RING
                             : kind % 2           ? PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST
                                                  : PEAL_ALGORITHM_RECURSIVE_DOUBLING;
      entry = allgather_entry(member, next, 0, algorithm, input_.take<uint16_t>() % 6000,
                              input_.byte() % 4 ? read_only_[0].key : keys_[0].key, keys_[0].key);
      entry.send_offset = input_.take<uint16_t>() % 4000;
      entry.receive_offset = input_.take<uint16_t>() % 4000;
      if (kind == 7) entry.flags = PEAL_SUBMIT_IN_PLACE;
      if (kind >= 6 && input_.byte() % 2 == 0) {
        entry.operation = PEAL_OPERATION_ALLTOALL;
        entry.algorithm = input_.byte() % 2 ? PEAL_ALGORITHM_BRUCK : PEAL_ALGORITHM_DIRECT;
      } else if (kind == 5) {
        entry.operation = input_.byte() % 2 ? PEAL_OPERATION_ALLGATHERV : PEAL_OPERATION_ALLTOALLV;
        entry.algorithm = entry.operation == PEAL_OPERATION_ALLTOALLV && input_.byte() % 2
                              ? PEAL_ALGORITHM_BRUCK
                              : PEAL_ALGORITHM_DIRECT;
        entry.block_bytes = 0;
        entry.parts_key = keys_[0].key;
        entry.parts_offset = input_.take<uint16_t>() % 4000;
        if (entry.operation == PEAL_OPERATION_ALLTOALLV) entry.send_offset = 0;
        if (input_.byte() % 4 == 0) entry.flags = PEAL_SUBMIT_IN_PLACE;
      } else if (kind == 6) {
        entry.operation = PEAL_OPERATION_BROADCAST;
        entry.algorithm = PEAL_ALGORITHM_BINOMIAL;
        entry.root = input_.byte() % 4;
      }
    }
    if (input_.byte() % 3 == 0) input_.spoil(&entry, sizeof(entry));
    return entry;
  }

  void submit(peal_submission entry) {
    const int side = input_.byte() % 8 == 0 ? 1 : 0;
    entry.cookie = ++last_cookie_;
    pending_[entry.cookie] = side;
    expected_ = entry.cookie;
    refused_ = false;
    bench_.submit_in(contexts_[side], entry);
    reap();
    if (closed_[side]) {
      // (Its process is gone.)
      fuzz_require(pending_.erase(entry.cookie) == 1, "a completion in a closed context");
      return;
    }
    if (refused_) return;
    // Point-to-point is not counted in the group's sequence.
    if (entry.operation >= PEAL_OPERATION_SEND && entry.operation <= PEAL_OPERATION_FENCE) return;
    if (entry.member == solo_.handle()) next_solo_++;
    if (entry.member == group_.handle()) next_group_++;
  }

  void memory_call() {
    const int side = input_.byte() % 2;
    if (closed_[side]) return;
    RegionId region = 0;
    const uint32_t key = input_.byte() % 4 ? keys_[input_.byte() % 2].key : input_.take<uint32_t>();
    const peal_status status = card_unregister_memory(bench_.card(), contexts_[side], key, &region);
    if (status == PEAL_STATUS_OK) {
      bench_.port.remove_region(region);  // from here on any DMA into it is a problem
      for (int i = 0; i < 2; i++) {
        if (keys_[i].region != region || closed_[i]) continue;
        keys_[i] = bench_.add_memory_of(contexts_[i], "memory", 20'000,
                                        PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
      }
    }
    uint32_t made = 0;
    if (input_.byte() % 4 == 0) {
      (void)card_register_memory(bench_.card(),
                                 input_.byte() % 2 ? contexts_[side] : input_.take<uint32_t>(),
                                 keys_[side].region, 100, input_.take<uint32_t>() % 8, &made);
    }
  }

  void group_call() {
    const ContextId context =
        input_.byte() % 4 ? contexts_[input_.byte() % 2] : input_.take<uint32_t>();
    switch (input_.byte() % 5) {
      case 0: {
        if (reserved_ >= 8) break;
        peal_reserve_group request{};
        request.ranks = input_.take<uint16_t>() % (2 * CONFIG_GROUP_RANKS_MAX);
        request.rank = input_.take<uint16_t>() % (CONFIG_GROUP_RANKS_MAX + 2);
        if (input_.byte() % 8 == 0) input_.spoil(&request, sizeof(request));
        const RegionId channels = bench_.port.add_region("channel", kChannelsBytes);
        peal_peer_address address{};
        const peal_status status =
            card_reserve_group(bench_.card(), context, request, channels, bench_.now, &address);
        reserved_++;
        if (status == PEAL_STATUS_OK) handle_ = address.member;
        break;
      }
      case 1: {
        peal_connect_group request{};
        request.member = input_.byte() % 4 ? handle_ : input_.take<uint32_t>();
        request.group = input_.byte();
        request.peer_count = input_.byte() % (PEAL_PEERS_MAX + 2);
        for (auto& peer : request.peers) peer = CardBench::played_address(input_.byte() % 8);
        (void)card_connect_group(bench_.card(), context, request, bench_.now);
        break;
      }
      case 2:
        (void)card_abandon_group(bench_.card(), context,
                                 input_.byte() % 4 ? handle_ : input_.take<uint32_t>(), bench_.now);
        break;
      case 3: {
        RegionId channels = 0;
        while (card_channel_released(bench_.card(), &channels)) bench_.port.remove_region(channels);
        break;
      }
      default:
        close_context();
    }
  }

  void close_context() {
    const int side = input_.byte() % 2;
    if (closed_[side] || input_.byte() % 4 != 0) return;
    card_close_context(bench_.card(), contexts_[side], bench_.now);
    closed_[side] = true;
    for (auto at = pending_.begin(); at != pending_.end();) {
      at = at->second == side ? pending_.erase(at) : std::next(at);
    }
  }

  void reap() {
    for (const auto& [context, done] : bench_.port.take_completions()) {
      const auto found = pending_.find(done.cookie);
      fuzz_require(found != pending_.end(), "a completion for nothing, or a second one");
      fuzz_require(contexts_[found->second] == context, "a completion in another context");
      fuzz_require(done.status < PEAL_STATUS_COUNT, "a status that is none");
      if (done.cookie == expected_) {
        refused_ = done.status != PEAL_STATUS_OK && done.status != PEAL_STATUS_PEER_DEAD &&
                   done.status != PEAL_STATUS_MISMATCH && done.status != PEAL_STATUS_DMA_FAULT;
      }
      pending_.erase(found);
    }
    for (int side = 0; side < 2; side++) {
      if (closed_[side]) continue;
      uint32_t open = 0;
      for (const auto& [cookie, whose] : pending_) open += whose == side;
      fuzz_require(card_outstanding(bench_.card(), contexts_[side]) == open,
                   "the card's count of outstanding operations is not ours");
    }
  }

  FuzzInput& input_;
  CardBench bench_;
  ContextId contexts_[2];
  bool closed_[2] = {false, false};
  Memory keys_[2];
  Memory read_only_[2];
  Membership solo_;
  Membership group_;
  uint64_t next_solo_ = 0;
  uint64_t next_group_ = 0;
  uint64_t last_cookie_ = 0;
  uint64_t expected_ = 0;
  bool refused_ = false;
  uint32_t handle_ = 0;
  int reserved_ = 0;
  std::map<uint64_t, int> pending_;  // cookie, whose
};

}  // namespace
}  // namespace peal::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  peal::test::FuzzInput input(data, bytes);
  peal::test::CommandFuzz(input).run();
  return 0;
}
