// SPDX-License-Identifier: BSD-2-Clause
// The two mempools behind packets. In the lcore's cache an allocation is a few instructions.
#include "emulator/nic/packet_pool.h"

#include <rte_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <thread>
#include <type_traits>

#include "emulator/common/zeroed_memory.h"
#include "firmware/payload.h"

namespace peal::nic {
namespace {

static_assert(std::is_standard_layout_v<PacketSlot> && offsetof(PacketSlot, packet) == 0);
static_assert(sizeof(rte_mbuf) % alignof(PacketSlot) == 0);

constexpr uint32_t kCache = 256;  // per lcore
// What came back last is taken first, and is still in the processor's caches. DPDK's usual ring
// would hand out all the buffers in turn as soon as more come and go than the lcore's cache holds.
constexpr const char* kOps = "stack";
// Of several loops one may have to give way in the middle of it: then no other one waits.
constexpr const char* kOpsOfSeveralLoops = "lf_stack";
constexpr uint16_t kFreshRoom = RTE_PKTMBUF_HEADROOM + PEAL_HEADER_BYTES + kPayloadBytes;
constexpr uint16_t kHeaderRoom = RTE_PKTMBUF_HEADROOM + PEAL_HEADER_BYTES;

// A pool up to this size has large pages, of which packets in turn need few, as far as the kernel
// has some (and then takes all of it). Of a longer one most is not touched.
constexpr size_t kLargePagesMost = size_t{256} << 20;

// As rte_pktmbuf_pool_create(), but in our own memory, since DPDK's has small pages where there is
// no hugetlbfs; and buffers may cross pages, or an element would take a multiple of 4 KiB.
// Buffers that a device reads by bus address would need the other way.
rte_mempool* create_pool(const char* name, uint32_t count, uint16_t room, uint32_t cache,
                         const char* stack, emulator::ZeroedMemory* memory) {
  const uint32_t element = sizeof(rte_mbuf) + sizeof(PacketSlot) + room;
  rte_mempool* const pool =
      rte_mempool_create_empty(name, count, element, cache, sizeof(rte_pktmbuf_pool_private),
                               SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (pool == nullptr) return nullptr;
  const auto refuse = [pool](int error) -> rte_mempool* {
    rte_mempool_free(pool);
    rte_errno = error;
    return nullptr;
  };
  rte_pktmbuf_pool_private settings = {};
  settings.mbuf_data_room_size = room;
  settings.mbuf_priv_size = sizeof(PacketSlot);
  const int ops = rte_mempool_set_ops_byname(pool, stack, nullptr);
  if (ops != 0) return refuse(-ops);
  rte_pktmbuf_pool_init(pool, &settings);
  const size_t bytes = size_t{count} * (pool->header_size + pool->elt_size + pool->trailer_size) +
                       RTE_CACHE_LINE_SIZE;
  try {
    *memory = emulator::ZeroedMemory(
        bytes, bytes <= kLargePagesMost ? emulator::Touched::kWhole : emulator::Touched::kSparsely);
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM);
  }
  const int populated =
      rte_mempool_populate_virt(pool, reinterpret_cast<char*>(memory->data()), memory->bytes(),
                                PEAL_PAGE_BYTES, nullptr, nullptr);
  if (populated < 0) return refuse(-populated);
  if (static_cast<uint32_t>(populated) < count) return refuse(ENOMEM);
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

// At most a quarter of what a card has for everything else.
constexpr uint32_t kSentShare = 4;

}  // namespace

std::string PacketPool::create(uint32_t fresh, uint32_t cards, uint32_t loops) {
  several_loops_ = loops > 1;
  buffers_per_card_ = fresh / cards;
  sent_per_card_ = std::min<uint32_t>(CONFIG_SENT_BLOCKS, buffers_per_card_ / kSentShare);
  const uint32_t all = fresh + cards * sent_per_card_;
  // What lies in the caches of those that are idle, others lack.
  const uint32_t cache = fresh >= 4 * kCache * loops ? kCache : 0;
  const char* const stack = loops == 1 ? kOps : kOpsOfSeveralLoops;
  fresh_ = create_pool("peal_packets", all, kFreshRoom, cache, stack, &fresh_memory_);
  headers_ = create_pool("peal_headers", all, kHeaderRoom, cache, stack, &headers_memory_);
  if (fresh_ != nullptr && headers_ != nullptr) return {};
  return "cannot create pools of " + std::to_string(all) +
         " packet buffers: " + rte_strerror(rte_errno) + "; give fewer with --packet-buffers";
}

PacketPool::~PacketPool() {
  rte_mempool_free(fresh_);
  rte_mempool_free(headers_);
}

uint64_t PacketPool::memory_bytes(uint32_t fresh) {
  constexpr uint64_t kElement = 4 * sizeof(void*);  // of a pool's stack
  const uint64_t all = uint64_t{fresh} + fresh / kSentShare;
  return 2 * all * kElement;
}

// Whoever lends it takes nothing back of it from here on, or is doing so now.
void PacketPool::let_go_of_lent(PacketSlot* owner) {
  for (;;) {
    uintptr_t word = owner->lent.load(std::memory_order_acquire);
    const uintptr_t state = word & kLentStates;
    if (state == kHere || state == kDelivered) return;
    if (state == kLent && owner->lent.compare_exchange_strong(word, word | kDelivered)) {
      owner->place->store(nullptr, std::memory_order_release);
      return;
    }
    std::this_thread::yield();
  }
}

Packet* PacketPool::copy(const Packet* packet) {
  Packet* const result = allocate();
  if (result == nullptr) return nullptr;
  std::memcpy(result->header, packet->header, sizeof(peal_wire_header));
  std::memcpy(result->payload, packet->payload, packet->payload_bytes);
  result->payload_bytes = packet->payload_bytes;
  return result;
}

uint32_t PacketPool::in_use() const {
  return rte_mempool_in_use_count(fresh_) + rte_mempool_in_use_count(headers_);
}

}  // namespace peal::nic
