// SPDX-License-Identifier: BSD-2-Clause
// The tests' own card; see fake_card.h.
#include "tests/unit/hostlib/fake_card.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "hostlib/administration.h"
#include "hostlib/rings.h"

namespace peal::host {
namespace {

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(FakeCard* card) : card_(card) {
    window_ = Window{card->window, PEAL_WINDOW_BYTES(kFakeEntries), kFakeEntries};
  }
  // The connection's end.
  ~FakeTransport() override { card_->keys.clear(); }

  [[nodiscard]] const Window& window() const override { return window_; }

  peal_error allocate(size_t bytes, Allocation* allocation) override {
    const peal_error error = take_key(&allocation->key);
    if (error != PEAL_OK) return error;
    allocation->address = static_cast<uint8_t*>(calloc(1, bytes));
    allocation->mapped_bytes = bytes;
    const std::lock_guard<std::mutex> guard(keys_mutex_);
    card_->mapped.insert(allocation->key);
    return PEAL_OK;
  }
  peal_error release(const Allocation& allocation) override {
    const peal_error error = unregister_memory(*this, allocation.key);
    if (error == PEAL_OK) unmap(allocation);
    return error;
  }
  void unmap(const Allocation& allocation) override {
    free(allocation.address);
    const std::lock_guard<std::mutex> guard(keys_mutex_);
    card_->mapped.erase(allocation.key);
  }
  void end_context(int) override {
    card_->ended++;
    card_->mapped_at_end = card_->mapped;
  }
  peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) override {
    switch (command.opcode) {
      case PEAL_ADMIN_REGISTER_MEMORY:
        card_->registered = command.u.register_memory;
        return register_next(&reply->u.register_memory.key);
      case PEAL_ADMIN_UNREGISTER_MEMORY:
        return unregister(command.u.unregister_memory.key);
      case PEAL_ADMIN_RESERVE_GROUP:
        return reserve(command.u.reserve, &reply->u.reserve.address);
      case PEAL_ADMIN_CONNECT_GROUP:
        return connect(command.u.connect);
      case PEAL_ADMIN_ABANDON_GROUP:
        return abandon(command.u.abandon.member);
      case PEAL_ADMIN_READ_COUNTERS:
        count_on(command.u.counters.first, &reply->u.counters);
        return PEAL_OK;
      case PEAL_ADMIN_COMMIT_PROGRAM:
        return commit(command.u.commit_program, &reply->u.commit_program);
      case PEAL_ADMIN_FREE_PROGRAM:
        if (card_->refuse_free != PEAL_OK) return fail(card_->refuse_free, "refused");
        if (card_->busy_frees > 0) {
          card_->busy_frees--;
          return fail(PEAL_ERR_BUSY, "busy");
        }
        card_->programs.erase(command.u.free_program.program);
        return PEAL_OK;
      default:
        return fail(PEAL_ERR_BAD_OPCODE, "opcode %u", command.opcode);
    }
  }
  [[nodiscard]] const std::atomic<uint64_t>* departures() const override {
    return &card_->departures;
  }
  bool next_departed(uint32_t* key) override {
    if (card_->departed.empty()) return false;
    *key = card_->departed.front();
    card_->departed.pop_front();
    return true;
  }
  void ring_doorbell() override { card_->doorbells++; }
  uint32_t sleep_token() override {
    const std::lock_guard<std::mutex> guard(card_->mutex);
    return card_->wake_word;
  }
  void sleep(uint32_t token, int timeout_ms) override {
    std::unique_lock<std::mutex> lock(card_->mutex);
    card_->sleeps++;
    card_->changed.notify_all();  // for tests that wait for a sleeper
    card_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                            [&] { return card_->wake_word != token; });
  }
  void wake() override {
    const std::lock_guard<std::mutex> guard(card_->mutex);
    card_->wake_word++;
    card_->changed.notify_all();
  }
  bool connected() override {
    const std::lock_guard<std::mutex> guard(card_->mutex);
    return card_->connected;
  }

  void give_up() noexcept override {
    const std::lock_guard<std::mutex> guard(card_->mutex);
    card_->connected = false;
  }

  void leave_to_parent() noexcept override { card_->left++; }

 private:
  peal_error register_next(uint32_t* key) {
    card_->registrations++;
    return take_key(key);
  }
  peal_error take_key(uint32_t* key) {
    const std::lock_guard<std::mutex> guard(keys_mutex_);
    if (card_->keys.size() >= card_->keys_max) return fail(PEAL_ERR_NO_RESOURCES, "no key left");
    *key = card_->next_key++;
    card_->keys.insert(*key);
    return PEAL_OK;
  }
  peal_error unregister(uint32_t key) {
    const std::lock_guard<std::mutex> guard(keys_mutex_);
    if (card_->busy_keys.count(key) != 0) return fail(PEAL_ERR_BUSY, "busy");
    if (card_->keys.erase(key) == 1) return PEAL_OK;
    card_->unknown_keys++;
    return fail(PEAL_ERR_BAD_KEY, "no such key");
  }
  peal_error reserve(const peal_reserve_group& body, peal_peer_address* address) {
    if (card_->refuse_reserve != PEAL_OK) return fail(card_->refuse_reserve, "refused");
    address->rank = static_cast<uint16_t>(body.rank);
    address->member = card_->next_member++;
    address->geometry = card_->geometry;
    card_->reserved.insert(address->member);
    return PEAL_OK;
  }
  peal_error connect(const peal_connect_group& body) {
    if (card_->refuse_connect != PEAL_OK) return fail(card_->refuse_connect, "refused");
    card_->group_id = body.group;
    card_->peers.assign(body.peers, body.peers + body.peer_count);
    card_->addresses_key = body.addresses_key;
    card_->addresses_offset = body.addresses_offset;
    card_->connected_members.insert(body.member);
    return PEAL_OK;
  }
  peal_error abandon(uint32_t member) {
    if (card_->refuse_abandon != PEAL_OK) return fail(card_->refuse_abandon, "refused");
    const std::lock_guard<std::mutex> guard(card_->mutex);
    card_->connected_members.erase(member);
    card_->changed.notify_all();
    return card_->reserved.erase(member) == 1 ? PEAL_OK : fail(PEAL_ERR_BAD_GROUP, "no member");
  }
  peal_error commit(const peal_commit_program& body, peal_commit_program_reply* made) {
    if (card_->refuse_commit != PEAL_OK) return fail(card_->refuse_commit, "refused");
    for (const uint32_t handle : card_->programs) {
      const peal_commit_program& other = card_->committed[handle - 1];
      if (other.member == body.member && other.name == body.name)
        return fail(PEAL_ERR_BUSY, "the name is another program's");
    }
    card_->committed.push_back(body);
    made->program = static_cast<uint32_t>(card_->committed.size());
    made->starts = kFakeStarts;
    card_->programs.insert(made->program);
    return PEAL_OK;
  }
  static void count_on(uint32_t first, peal_read_counters_reply* part) {
    part->total = 40;
    part->count = std::min<uint32_t>(PEAL_COUNTERS_PER_REPLY, part->total - first);
    for (uint32_t i = 0; i < part->count; i++) part->values[i] = first + i;
  }

  FakeCard* card_;
  Window window_;
  std::mutex keys_mutex_;  // several threads ask for memory at once
};

void add_block(peal_directory& directory, peal_block_type type, uint32_t offset, uint32_t bytes) {
  peal_block& block = directory.blocks[directory.block_count++];
  block.type = static_cast<uint16_t>(type);
  block.version = 1;
  block.offset = offset;
  block.bytes = bytes;
  block.home = PEAL_HOME_WINDOW;
}

}  // namespace

void lay_out_window(void* window, uint32_t entries) {
  memset(window, 0, PEAL_WINDOW_BYTES(entries));
  auto* page = static_cast<peal_card_page*>(window);
  peal_directory& directory = page->directory;
  directory.abi_version = PEAL_ABI_VERSION;
  directory.window_bytes = PEAL_WINDOW_BYTES(entries);
  add_block(directory, PEAL_BLOCK_DEVICE, offsetof(peal_card_page, device), sizeof(peal_device));
  add_block(directory, PEAL_BLOCK_HEARTBEAT, offsetof(peal_card_page, heartbeat),
            sizeof(peal_heartbeat));
  add_block(directory, PEAL_BLOCK_SUBMISSION, PEAL_WINDOW_SUBMISSIONS, entries * 64);
  add_block(directory, PEAL_BLOCK_COMPLETION, PEAL_WINDOW_COMPLETIONS(entries), entries * 64);
  page->device.ring_entries = entries;
  page->device.channels = 4;
  page->device.parked_max = kFakeParked;
  page->device.ranks_max = PEAL_RANKS_MAX;
  page->device.remembered_addresses = PEAL_RANKS_MAX;
  page->heartbeat.heartbeat_interval_us = kFakeHeartbeatUs;
  directory.magic = PEAL_WINDOW_MAGIC;
}

FakeCard::FakeCard() : memory(PEAL_WINDOW_BYTES(kFakeEntries) + PEAL_PAGE_BYTES) {
  const auto start = reinterpret_cast<uintptr_t>(memory.data());
  window = memory.data() + (PEAL_PAGE_BYTES - start % PEAL_PAGE_BYTES) % PEAL_PAGE_BYTES;
  lay_out_window(window, kFakeEntries);
  peal_card_ring_init(&ring, window, kFakeEntries);
}

bool FakeCard::take(peal_submission* entry) {
  return peal_card_ring_poll(&ring, entry) == PEAL_RING_ENTRY;
}

peal_submission FakeCard::await_entry() {
  peal_submission entry = {};
  while (!take(&entry)) std::this_thread::yield();
  return entry;
}

void FakeCard::await_sleeper() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return sleeps > 0; });
}

void FakeCard::complete(const peal_submission& entry, uint32_t status, uint32_t failed_rank) {
  answer(entry, {}, status, failed_rank);
}

void FakeCard::complete_message(const peal_submission& entry, uint64_t bytes, uint64_t tag,
                                uint32_t status) {
  peal_completion done = {};
  done.bytes = bytes;
  done.tag = tag;
  answer(entry, done, status, PEAL_NO_RANK);
}

void FakeCard::complete_start(const peal_submission& entry, uint32_t status, uint64_t index,
                              uint64_t reason, uint32_t failed_rank) {
  peal_completion done = {};
  done.bytes = index;
  done.tag = reason;
  answer(entry, done, status, failed_rank);
}

void FakeCard::answer(const peal_submission& entry, peal_completion done, uint32_t status,
                      uint32_t failed_rank) {
  done.cookie = entry.cookie;
  done.sequence = entry.sequence;
  done.member = entry.member;
  done.operation = entry.operation;
  done.status = static_cast<uint16_t>(status);
  done.failed_rank = failed_rank;
  done.card_ns = 1234;
  peal_card_ring_complete(&ring, &done);
  if (peal_card_ring_host_sleeps(&ring) != 0) {
    const std::lock_guard<std::mutex> guard(mutex);
    wake_word++;
    changed.notify_all();
  }
}

void FakeCard::beat() { __atomic_fetch_add(&ring.card->heartbeat.beats, 1, __ATOMIC_RELAXED); }

void FakeCard::depart(uint32_t key) {
  departed.push_back(key);
  departures++;
}

std::unique_ptr<Transport> make_fake_transport(FakeCard* card) {
  return std::make_unique<FakeTransport>(card);
}

peal_context* open_fake(FakeCard* card, uint64_t spin_ns) {
  auto context = std::make_unique<peal_context>();
  context->transport = make_fake_transport(card);
  context->habit.spin_ns = spin_ns;
  context->cache.watch(*context->transport->departures());
  start_rings(*context);
  return context.release();
}

peal_group* make_fake_group(peal_context* context) {
  const auto alone = [](void*, const void* own, void* all, size_t bytes) {
    memcpy(all, own, bytes);
    return 0;
  };
  peal_group* group = nullptr;
  return peal_group_create(context, 0, 1, alone, nullptr, nullptr, &group) == PEAL_OK ? group
                                                                                      : nullptr;
}

std::vector<peal_group*> make_fake_groups(std::span<peal_context* const> contexts,
                                          const peal_group_params* params) {
  const auto size = static_cast<uint32_t>(contexts.size());
  std::vector<peal_group_builder*> builders(size);
  std::vector<peal_group*> groups(size);
  for (uint32_t rank = 0; rank < size; rank++) {
    if (peal_group_begin(contexts[rank], rank, size, params, &builders[rank]) != PEAL_OK) return {};
  }
  for (int exchange = 0; exchange < 2; exchange++) {
    const std::vector<uint8_t> records = records_of(builders);
    for (uint32_t rank = 0; rank < size; rank++) {
      if (peal_group_advance(builders[rank], records.data(), &groups[rank]) != PEAL_OK) return {};
    }
  }
  return groups;
}

std::vector<uint8_t> records_of(std::span<peal_group_builder* const> builders) {
  std::vector<uint8_t> records;
  for (const peal_group_builder* builder : builders) {
    const auto* record = static_cast<const uint8_t*>(peal_group_record(builder));
    records.insert(records.end(), record, record + PEAL_GROUP_RECORD_BYTES);
  }
  return records;
}

}  // namespace peal::host
