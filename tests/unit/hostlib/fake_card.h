// SPDX-License-Identifier: BSD-2-Clause
// A card for tests of libpeal: a real window, rings and registrations in this process, without
// firmware. The test plays the card: it takes submissions and completes them as it likes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "abi/admin.h"
#include "abi/ring.h"
#include "hostlib/handles.h"
#include "hostlib/transport.h"

namespace peal::host {

inline constexpr uint32_t kFakeEntries = 16;
inline constexpr uint32_t kFakeParked = 6;
inline constexpr uint32_t kFakeStarts = 3;  // of a program
// An hour. Libpeal gives up a card that does not beat for ten intervals of looking, and how long a
// test looks is the machine's affair: only tests that make up the time ask for less.
inline constexpr uint32_t kFakeHeartbeatUs = 3'600'000'000;

// Lays out a card page as abi/window.h says.
void lay_out_window(void* window, uint32_t entries);

// What a test sees of the transport, and how it misbehaves. Outlives the context.
struct FakeCard {
  FakeCard();

  // Card side of the rings.
  bool take(peal_submission* entry);
  // The next entry of another thread, however late that is.
  peal_submission await_entry();
  // Until a thread of the context sleeps, for the first time.
  void await_sleeper();
  void complete(const peal_submission& entry, uint32_t status = 0,
                uint32_t failed_rank = PEAL_NO_RANK);
  // Of point-to-point: what was moved, and the tag of the message that a receive got.
  void complete_message(const peal_submission& entry, uint64_t bytes, uint64_t tag = 0,
                        uint32_t status = 0);
  // Of a start that failed.
  void complete_start(const peal_submission& entry, uint32_t status, uint64_t index,
                      uint64_t reason, uint32_t failed_rank);
  void beat();
  void set_heartbeat_interval(uint32_t us) { ring.card->heartbeat.heartbeat_interval_us = us; }
  // Registered memory leaves the process.
  void depart(uint32_t key);
  void set_sleeping(bool sleeping) { peal_card_ring_set_sleeping(&ring, sleeping ? 1 : 0); }

  std::vector<uint8_t> memory;  // page-aligned window within
  uint8_t* window = nullptr;
  peal_card_ring ring = {};

  std::mutex mutex;
  std::condition_variable changed;
  uint32_t wake_word = 0;
  bool connected = true;
  int left = 0;  // to the parent, by a child of fork()
  int ended = 0;
  std::set<uint32_t> mapped_at_end;
  std::atomic<uint64_t> departures = 0;
  std::deque<uint32_t> departed;  // and not yet asked for
  int doorbells = 0;
  int sleeps = 0;

  // Administration.
  uint32_t next_key = 1;
  size_t keys_max = 1000;
  int registrations = 0;  // asked for, ever
  int unknown_keys = 0;   // that were to be given back, ever
  std::set<uint32_t> keys;
  std::set<uint32_t> mapped;             // keys of its own memory that the library has
  peal_register_memory registered = {};  // the last time it was asked for
  std::set<uint32_t> busy_keys;
  uint32_t next_member = 1;
  uint32_t geometry = 0x9e03;
  uint64_t group_id = 0;  // of the last connect
  std::set<uint32_t> reserved;
  std::set<uint32_t> connected_members;
  std::vector<peal_peer_address> peers;        // of the last connect
  uint32_t addresses_key = 0;                  // of the last connect
  uint64_t addresses_offset = 0;               // of the last connect
  std::vector<peal_commit_program> committed;  // ever; the handle is the number behind its index
  std::set<uint32_t> programs;                 // that are not freed
  peal_error refuse_reserve = PEAL_OK;
  peal_error refuse_commit = PEAL_OK;
  peal_error refuse_free = PEAL_OK;
  int busy_frees = 0;  // so often a program is not freed yet
  peal_error refuse_connect = PEAL_OK;
  peal_error refuse_abandon = PEAL_OK;

 private:
  void answer(const peal_submission& entry, peal_completion done, uint32_t status,
              uint32_t failed_rank);
};

std::unique_ptr<Transport> make_fake_transport(FakeCard* card);

// A context on that card, as peal_open() would make it.
peal_context* open_fake(FakeCard* card, uint64_t spin_ns = 0);

// A group of one rank, made without asking anybody.
peal_group* make_fake_group(peal_context* context);
// One group of as many ranks, each with a card of its own.
std::vector<peal_group*> make_fake_groups(std::span<peal_context* const> contexts,
                                          const peal_group_params* params);
// What an exchange brings to all whose groups are being made: everybody's record, by rank.
std::vector<uint8_t> records_of(std::span<peal_group_builder* const> builders);

}  // namespace peal::host
