// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/one_group.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/names.h"

namespace peal::sim {

void require(peal_status status, const char* what) {
  if (status == PEAL_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + names::status(status));
}

void open_process(Cluster& cluster, RankProcess& process) {
  require(cluster.open_context(process.card, &process.context), "open context");
}

uint32_t add_memory(Cluster& cluster, const RankProcess& process, size_t bytes, uint32_t* key) {
  const uint32_t region = cluster.memory().add(process.card, bytes);
  require(cluster.register_memory(process.card, process.context, region, bytes,
                                  PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, key),
          "register memory");
  return region;
}

void make_one_group(Cluster& cluster, const std::vector<RankProcess*>& ranks) {
  const auto count = static_cast<uint32_t>(ranks.size());
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < count; rank++) {
    peal_reserve_group request{};
    request.ranks = count;
    request.rank = rank;
    RankProcess& own = *ranks[rank];
    require(cluster.reserve_group(own.card, own.context, request, &own.address), "reserve group");
    everybody.push_back(own.address);
  }
  for (uint32_t rank = 0; rank < count; rank++) {
    const RankProcess& own = *ranks[rank];
    peal_connect_group request{};
    request.member = own.address.member;
    request.group = 77;
    request.choice_hash = 1;
    const size_t bytes = everybody.size() * sizeof(peal_peer_address);
    const uint32_t table = add_memory(cluster, own, bytes, &request.addresses_key);
    std::memcpy(cluster.memory().data(table), everybody.data(), bytes);
    for (uint32_t distance = 1; distance < count; distance *= 2) {
      request.peers[request.peer_count++] = everybody[(rank + distance) % count];
      request.peers[request.peer_count++] = everybody[(rank + count - distance) % count];
    }
    require(cluster.connect_group(own.card, own.context, request), "connect group");
  }
}

}  // namespace peal::sim
