// SPDX-License-Identifier: BSD-2-Clause
// The two mempools behind packets. In the lcore's cache an allocation is a few instructions.
#include "emulator/nic/packet_pool.h"

#include <rte_errno.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "peal_config.h"

namespace peal::nic {
namespace {

static_assert(std::is_standard_layout_v<PacketSlot> && offsetof(PacketSlot, packet) == 0);
static_assert(sizeof(rte_mbuf) % alignof(PacketSlot) == 0);

constexpr uint32_t kCache = 256;  // per lcore
constexpr uint16_t kFreshRoom = RTE_PKTMBUF_HEADROOM + PEAL_HEADER_BYTES + CONFIG_MTU_BYTES;
constexpr uint16_t kHeaderRoom = RTE_PKTMBUF_HEADROOM + PEAL_HEADER_BYTES;

rte_mempool* create_pool(const char* name, uint32_t count, uint16_t room) {
  const uint32_t cache = count >= 4 * kCache ? kCache : 0;
  return rte_pktmbuf_pool_create(name, count, cache, sizeof(PacketSlot), room, SOCKET_ID_ANY);
}

uint64_t element_bytes(uint16_t room) {
  constexpr uint64_t kMempoolHeader = 64;
  return kMempoolHeader + sizeof(rte_mbuf) + sizeof(PacketSlot) + room + 64;
}

}  // namespace

std::string PacketPool::create(uint32_t fresh) {
  fresh_ = create_pool("peal_packets", fresh, kFreshRoom);
  headers_ = create_pool("peal_headers", fresh, kHeaderRoom);
  if (fresh_ != nullptr && headers_ != nullptr) return {};
  return "cannot create pools of " + std::to_string(fresh) +
         " packet buffers: " + rte_strerror(rte_errno) + "; give fewer with --packet-buffers";
}

PacketPool::~PacketPool() {
  rte_mempool_free(fresh_);
  rte_mempool_free(headers_);
}

uint64_t PacketPool::memory_bytes(uint32_t fresh) {
  return fresh * (element_bytes(kFreshRoom) + element_bytes(kHeaderRoom));
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
