// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/sharing_hosts.h"

#include <algorithm>

namespace peal::sim {
namespace {

constexpr uint64_t kPutCookie = 1;
constexpr uint64_t kCollectiveCookie = 2;

}  // namespace

SharingHosts::SharingHosts(const ClusterOptions& options, const Sharing& sharing)
    : GroupHosts(options, nullptr),
      costs_(options.costs),
      sharing_(sharing),
      ranks_(options.cards) {
  const size_t gathered = size_t{sharing.block_bytes} * (1 + ranks());
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    (void)add_memory(rank, gathered + 2 * size_t{sharing.put_bytes}, &ranks_[rank].key);
  }
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    if (sharing.collective != PEAL_OPERATION_NONE) post_later(rank, What::kCollective);
    for (uint32_t i = 0; i < sharing.puts; i++) post_later(rank, What::kPut);
  }
}

void SharingHosts::post_later(uint32_t rank, What what) {
  cluster_.at(cluster_.now() + costs_.completion_ns, rank << 1 | static_cast<uint32_t>(what));
}

void SharingHosts::on_host_event(TimeNs, uint32_t item) {
  const uint32_t rank = item >> 1;
  if ((item & 1) == static_cast<uint32_t>(What::kPut)) return post_put(rank);
  post_collective(rank);
}

void SharingHosts::post_collective(uint32_t rank) {
  Rank& own = ranks_[rank];
  peal_submission entry{};
  entry.operation = static_cast<uint8_t>(sharing_.collective);
  entry.algorithm = static_cast<uint8_t>(sharing_.collective == PEAL_OPERATION_BARRIER
                                             ? PEAL_ALGORITHM_DISSEMINATION
                                             : PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
  entry.member = processes_[rank].address.member;
  entry.sequence = own.sequence++;
  entry.cookie = kCollectiveCookie;
  if (sharing_.block_bytes > 0) {
    entry.block_bytes = sharing_.block_bytes;
    entry.send_key = entry.receive_key = own.key;
    entry.receive_offset = sharing_.block_bytes;
  }
  own.posted_ns = cluster_.now();
  own.under_way = true;
  failures_ += cluster_.submit(rank, processes_[rank].context, entry) ? 0 : 1;
}

void SharingHosts::post_put(uint32_t rank) {
  const uint32_t to = (rank + 1) % ranks();
  const uint64_t behind = uint64_t{sharing_.block_bytes} * (1 + ranks());
  peal_submission entry{};
  entry.operation = PEAL_OPERATION_PUT;
  entry.member = processes_[rank].address.member;
  entry.cookie = kPutCookie;
  entry.root = to;
  entry.block_bytes = sharing_.put_bytes;
  entry.send_key = ranks_[rank].key;
  entry.send_offset = behind;
  entry.receive_key = ranks_[to].key;
  entry.receive_offset = behind + sharing_.put_bytes;
  failures_ += cluster_.submit(rank, processes_[rank].context, entry) ? 0 : 1;
}

void SharingHosts::on_completion(TimeNs now, uint32_t rank, uint32_t,
                                 const peal_completion& entry) {
  Rank& own = ranks_[rank];
  failures_ += entry.status == PEAL_STATUS_OK ? 0 : 1;
  if (entry.cookie == kPutCookie) {
    own.puts++;
    return post_later(rank, What::kPut);
  }
  own.collectives++;
  own.under_way = false;
  slowest_ns_ = std::max(slowest_ns_, now - own.posted_ns);
  post_later(rank, What::kCollective);
}

void SharingHosts::run_until(TimeNs time) {
  while (cluster_.now() < time && cluster_.step()) {
    take_completions();
  }
}

SharingHosts::Done SharingHosts::run(TimeNs warm_ns, TimeNs length_ns) {
  run_until(cluster_.now() + warm_ns);
  const std::vector<Rank> before = ranks_;
  const TimeNs from = cluster_.now();
  slowest_ns_ = 0;
  run_until(from + length_ns);
  const auto passed = static_cast<double>(cluster_.now() - from);
  Done done;
  const uint64_t collectives = ranks_[0].collectives - before[0].collectives;
  if (collectives > 0) done.collective_ns = passed / static_cast<double>(collectives);
  // One that is still under way has taken so long at least.
  if (sharing_.collective != PEAL_OPERATION_NONE) {
    for (const Rank& rank : ranks_) {
      if (rank.under_way) slowest_ns_ = std::max(slowest_ns_, cluster_.now() - rank.posted_ns);
    }
  }
  done.slowest_ns = slowest_ns_;
  uint64_t puts = 0;
  for (uint32_t rank = 0; rank < ranks(); rank++) puts += ranks_[rank].puts - before[rank].puts;
  done.put_bytes_per_ns =
      static_cast<double>(puts) * sharing_.put_bytes / (passed * static_cast<double>(ranks()));
  return done;
}

}  // namespace peal::sim
