// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/group_hosts.h"

#include <cstring>
#include <stdexcept>

#include "base/names.h"

namespace peal::sim {

GroupHosts::GroupHosts(const ClusterOptions& options)
    : cluster_(options, nullptr, this), processes_(options.cards) {
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    require(cluster_.open_context(rank, &processes_[rank].context), "open context");
  }
  make_group();
}

void GroupHosts::require(peal_status status, const char* what) {
  if (status == PEAL_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + names::status(status));
}

uint32_t GroupHosts::add_memory(uint32_t rank, size_t bytes, uint32_t* key) {
  const uint32_t region = cluster_.memory().add(rank, bytes);
  require(cluster_.register_memory(rank, processes_[rank].context, region, bytes,
                                   PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, key),
          "register memory");
  return region;
}

void GroupHosts::make_group() {
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    peal_reserve_group request{};
    request.ranks = ranks();
    request.rank = rank;
    Process& own = processes_[rank];
    require(cluster_.reserve_group(rank, own.context, request, &own.address), "reserve group");
    everybody.push_back(own.address);
  }
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    peal_connect_group request{};
    request.member = processes_[rank].address.member;
    request.group = 77;
    request.choice_hash = 1;
    const size_t bytes = everybody.size() * sizeof(peal_peer_address);
    const uint32_t table = add_memory(rank, bytes, &request.addresses_key);
    std::memcpy(cluster_.memory().data(table), everybody.data(), bytes);
    for (uint32_t distance = 1; distance < ranks(); distance *= 2) {
      request.peers[request.peer_count++] = everybody[(rank + distance) % ranks()];
      request.peers[request.peer_count++] = everybody[(rank + ranks() - distance) % ranks()];
    }
    require(cluster_.connect_group(rank, processes_[rank].context, request), "connect group");
  }
}

void GroupHosts::take_completions() {
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    peal_completion taken;
    while (cluster_.poll(rank, processes_[rank].context, &taken)) {
    }
  }
}

void GroupHosts::calm_down() {
  const TimeNs until = cluster_.now() + 1'000'000'000;
  while (cluster_.next_event_ns() < until && cluster_.step()) {
  }
}

std::string GroupHosts::held() const {
  std::string text;
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    if (cluster_.silent(rank)) continue;
    if (cluster_.packets_held(rank) != 0 || cluster_.dma_under_way(rank) != 0) {
      text += "card " + std::to_string(rank) + " holds packets or DMA\n";
    }
  }
  return text;
}

}  // namespace peal::sim
