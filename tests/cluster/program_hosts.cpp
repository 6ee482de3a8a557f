// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/program_hosts.h"

#include <cstring>
#include <stdexcept>

#include "base/names.h"

namespace peal::sim {
namespace {

constexpr uint16_t kName = 3;  // of the programs

}  // namespace

ProgramHosts::ProgramHosts(const ClusterOptions& options, size_t bytes, const Make& make)
    : cluster_(options, nullptr, this), bytes_(bytes), ranks_(options.cards) {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    Rank& own = ranks_[rank];
    require(cluster_.open_context(rank, &own.context), "open context");
    own.send = add_memory(rank, bytes, &own.send_key);
    own.receive = add_memory(rank, bytes, &own.receive_key);
    receives_.push_back({.key = own.receive_key, .offset = 0});
  }
  make_group();
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    commit(rank, make({rank, send(rank), receive(rank), receives_}));
  }
  start_all(0);
  run();
}

void ProgramHosts::require(peal_status status, const char* what) {
  if (status == PEAL_STATUS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + names::status(status));
}

uint32_t ProgramHosts::add_memory(uint32_t rank, size_t bytes, uint32_t* key) {
  const uint32_t region = cluster_.memory().add(rank, bytes);
  require(cluster_.register_memory(rank, ranks_[rank].context, region, bytes,
                                   PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, key),
          "register memory");
  return region;
}

void ProgramHosts::make_group() {
  const auto ranks = static_cast<uint32_t>(ranks_.size());
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    peal_reserve_group request{};
    request.ranks = ranks;
    request.rank = rank;
    Rank& own = ranks_[rank];
    require(cluster_.reserve_group(rank, own.context, request, &own.address), "reserve group");
    everybody.push_back(own.address);
  }
  for (uint32_t rank = 0; rank < ranks; rank++) {
    peal_connect_group request{};
    request.member = ranks_[rank].address.member;
    request.group = 77;
    request.choice_hash = 1;
    const size_t bytes = everybody.size() * sizeof(peal_peer_address);
    const uint32_t table = add_memory(rank, bytes, &request.addresses_key);
    std::memcpy(cluster_.memory().data(table), everybody.data(), bytes);
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
      request.peers[request.peer_count++] = everybody[(rank + distance) % ranks];
      request.peers[request.peer_count++] = everybody[(rank + ranks - distance) % ranks];
    }
    require(cluster_.connect_group(rank, ranks_[rank].context, request), "connect group");
  }
}

uint8_t* ProgramHosts::send(uint32_t rank) { return cluster_.memory().data(ranks_[rank].send); }
uint8_t* ProgramHosts::receive(uint32_t rank) {
  return cluster_.memory().data(ranks_[rank].receive);
}

void ProgramHosts::commit(uint32_t rank, host::Program program) {
  Rank& own = ranks_[rank];
  program.set_name(kName);
  peal_commit_program request{};
  const uint32_t memory = add_memory(rank, program.bytes(), &request.key);
  const auto find = [&](const void* address, uint64_t length, bool, uint32_t* key,
                        uint64_t* offset) {
    const auto* at = static_cast<const uint8_t*>(address);
    for (const auto& [start, known] :
         {std::pair{send(rank), own.send_key}, std::pair{receive(rank), own.receive_key}}) {
      if (at < start || at + length > start + bytes_) continue;
      *key = known;
      *offset = static_cast<uint64_t>(at - start);
      return true;
    }
    return false;
  };
  uint32_t bad = 0;
  if (!program.encode(find, cluster_.memory().data(memory), &bad)) {
    throw std::runtime_error("memory of descriptor " + std::to_string(bad));
  }
  request.member = own.address.member;
  request.count = program.count();
  request.counters = static_cast<uint32_t>(program.sources().size());
  request.scheduled = program.shape().scheduled;
  request.name = kName;
  request.mode = static_cast<uint8_t>(program.shape().mode);
  require(cluster_.commit_program(rank, own.context, request, &own.program), "commit program");
}

void ProgramHosts::post(uint32_t rank, uint64_t passes) {
  Rank& own = ranks_[rank];
  peal_submission entry{};
  entry.operation = PEAL_OPERATION_START;
  entry.member = own.address.member;
  entry.sequence = own.next;
  entry.cookie = own.next;
  entry.send_key = own.program;
  entry.block_bytes = passes;
  own.next += passes;
  if (!cluster_.submit(rank, own.context, entry)) throw std::runtime_error("the ring is full");
}

void ProgramHosts::start(uint32_t rank, uint64_t passes, TimeNs late_ns) {
  Rank& own = ranks_[rank];
  own.outstanding++;
  if (late_ns == 0) return post(rank, passes);
  own.planned.push_back(passes);
  cluster_.at(cluster_.now() + late_ns, rank);
}

void ProgramHosts::start_all(uint64_t passes) {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) start(rank, passes);
}

void ProgramHosts::on_host_event(TimeNs, uint32_t rank) {
  Rank& own = ranks_[rank];
  const uint64_t passes = own.planned.front();
  own.planned.erase(own.planned.begin());
  post(rank, passes);
}

void ProgramHosts::on_completion(TimeNs, uint32_t rank, uint32_t, const peal_completion& entry) {
  Rank& own = ranks_[rank];
  own.outstanding--;
  if (entry.status == PEAL_STATUS_OK) return;
  own.trouble += "rank " + std::to_string(rank) + ": start " + std::to_string(entry.sequence) +
                 " ended with " + names::status(entry.status) + " at " +
                 std::to_string(entry.bytes) + ", " + names::program_reason(uint32_t(entry.tag)) +
                 "\n";
}

TimeNs ProgramHosts::run() {
  const TimeNs from = cluster_.now();
  const auto pending = [&] {
    for (const Rank& rank : ranks_) {
      if (rank.outstanding > 0) return true;
    }
    return false;
  };
  while (pending() && cluster_.step()) {
  }
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    peal_completion taken;
    while (cluster_.poll(rank, ranks_[rank].context, &taken)) {
    }
  }
  return cluster_.now() - from;
}

std::string ProgramHosts::problems() const {
  std::string text;
  for (const Rank& rank : ranks_) {
    text += rank.trouble;
    if (rank.outstanding > 0) {
      text += "rank " + std::to_string(&rank - ranks_.data()) + ": " +
              std::to_string(rank.outstanding) + " starts are not over\n";
    }
  }
  return text;
}

std::string ProgramHosts::leaks() {
  // Acknowledgements and closing connections.
  const TimeNs until = cluster_.now() + 1'000'000'000;
  while (cluster_.next_event_ns() < until && cluster_.step()) {
  }
  std::string text;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    const peal_status freed =
        cluster_.free_program(rank, ranks_[rank].context, ranks_[rank].program);
    if (freed != PEAL_STATUS_OK) text += "free program: " + names::status(freed) + "\n";
    if (cluster_.packets_held(rank) != 0 || cluster_.dma_under_way(rank) != 0) {
      text += "card " + std::to_string(rank) + " holds packets or DMA\n";
    }
  }
  return text;
}

}  // namespace peal::sim
