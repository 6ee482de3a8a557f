// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/program_hosts.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/names.h"

namespace peal::sim {
namespace {

constexpr uint16_t kFirstName = 3;  // of the programs
constexpr TimeNs kEndNs = 60'000'000'000;

}  // namespace

host::Programs only(host::Program program) {
  host::Programs programs;
  programs.push_back(std::make_unique<host::Program>(std::move(program)));
  return programs;
}

ProgramHosts::ProgramHosts(const ClusterOptions& options, size_t bytes, const Make& make,
                           Observer* observer)
    : ProgramHosts(
          options, Layout{.bytes = bytes}, [&](const Place& place) { return only(make(place)); },
          observer) {}

ProgramHosts::ProgramHosts(const ClusterOptions& options, const Layout& layout,
                           const MakeSeveral& make, Observer* observer)
    : violations_(findings_, observer),
      cluster_(options, &violations_, this),
      post_ns_(options.costs.post_ns),
      completion_ns_(options.costs.completion_ns),
      bytes_(layout.bytes),
      ranks_(options.cards * layout.ranks_per_card) {
  std::vector<RankProcess*> everybody;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    Rank& own = ranks_[rank];
    own.process.card = rank / layout.ranks_per_card;
    open_process(cluster_, own.process);
    everybody.push_back(&own.process);
    own.send = add_memory(cluster_, own.process, bytes_, &own.send_key);
    own.receive = add_memory(cluster_, own.process, bytes_, &own.receive_key);
    receives_.push_back({.key = own.receive_key, .offset = 0});
  }
  make_one_group(cluster_, everybody);
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    commit(rank, make({rank, send(rank), receive(rank), receives_}));
  }
  start_all(0);
  run();
}

uint8_t* ProgramHosts::send(uint32_t rank) { return cluster_.memory().data(ranks_[rank].send); }
uint8_t* ProgramHosts::receive(uint32_t rank) {
  return cluster_.memory().data(ranks_[rank].receive);
}

void ProgramHosts::commit(uint32_t rank, const host::Programs& programs) {
  uint16_t name = kFirstName;
  for (const auto& program : programs) program->set_name(name++);
  for (const auto& program : programs) commit(rank, *program);
}

void ProgramHosts::encode(uint32_t rank, const Committed& program) {
  Rank& own = ranks_[rank];
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
  if (!program.written.encode(find, cluster_.memory().data(program.memory), &bad)) {
    throw std::runtime_error("memory of descriptor " + std::to_string(bad));
  }
}

bool ProgramHosts::lose_send(uint32_t rank) {
  const Rank& own = ranks_[rank];
  const peal_status status =
      cluster_.unregister_memory(own.process.card, own.process.context, own.send_key);
  if (status != PEAL_STATUS_BUSY) require(status, "unregister memory");
  return status == PEAL_STATUS_OK;
}

void ProgramHosts::regain_send(uint32_t rank) {
  Rank& own = ranks_[rank];
  require(cluster_.register_memory(own.process.card, own.process.context, own.send, bytes_,
                                   PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, &own.send_key),
          "register memory");
  for (const Committed& program : own.programs) encode(rank, program);
}

void ProgramHosts::commit(uint32_t rank, const host::Program& program) {
  Rank& own = ranks_[rank];
  peal_commit_program request{};
  Committed committed;
  committed.written = program;
  committed.memory = add_memory(cluster_, own.process, program.bytes(), &request.key);
  encode(rank, committed);
  request.member = own.process.address.member;
  request.count = program.count();
  request.counters = static_cast<uint32_t>(program.sources().size());
  request.scheduled = program.shape().scheduled;
  request.name = program.name();
  request.mode = program.mode();
  request.engine = program.shape().engine;
  const peal_status status =
      cluster_.commit_program(own.process.card, own.process.context, request, &committed.handle);
  if (status == PEAL_STATUS_BAD_FLAGS && request.engine > 0) {
    throw std::runtime_error("these cards have no transmit engine " +
                             std::to_string(request.engine) + "; those of peal-sim-papers have");
  }
  require(status, "commit program");
  own.programs.push_back(committed);
}

void ProgramHosts::post(uint32_t rank, const Planned& start) {
  Rank& own = ranks_[rank];
  own.computes_until = cluster_.now() + work_ns_;
  for (size_t i = 0; i < own.programs.size(); i++) {
    if (start.program != kAll && start.program != i) continue;
    Committed& program = own.programs[i];
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_START;
    entry.member = own.process.address.member;
    entry.sequence = program.next;
    entry.cookie = own.next_cookie++;
    own.posted[entry.cookie] = program.next;
    entry.send_key = program.handle;
    entry.block_bytes = start.passes;
    program.next += start.passes;
    if (!cluster_.submit(own.process.card, own.process.context, entry)) {
      throw std::runtime_error("the ring is full");
    }
  }
}

void ProgramHosts::start(uint32_t rank, uint64_t passes, TimeNs late_ns) {
  Rank& own = ranks_[rank];
  own.outstanding += own.programs.size();
  if (late_ns == 0) return post(rank, {passes, kAll});
  own.planned.push_back({passes, kAll});
  cluster_.at(cluster_.now() + late_ns, rank);
}

void ProgramHosts::start_one(uint32_t rank, size_t program, TimeNs late_ns) {
  Rank& own = ranks_[rank];
  own.outstanding++;
  own.planned.push_back({1, program});
  cluster_.at(cluster_.now() + late_ns, rank);
}

void ProgramHosts::start_all(uint64_t passes) {
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) start(rank, passes);
}

void ProgramHosts::on_host_event(TimeNs, uint32_t rank) {
  Rank& own = ranks_[rank];
  const Planned start = own.planned.front();
  own.planned.erase(own.planned.begin());
  post(rank, start);
}

void ProgramHosts::on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                                 const peal_completion& entry) {
  const auto found = std::ranges::find_if(ranks_, [&](const Rank& rank) {
    return rank.process.card == card && rank.process.context == context;
  });
  if (found == ranks_.end()) {
    trouble_ += "card " + std::to_string(card) + ": a completion for context " +
                std::to_string(context) + ", which is no rank's\n";
    return;
  }
  Rank& own = *found;
  const auto rank = static_cast<uint32_t>(&own - ranks_.data());
  const auto posted = own.posted.extract(entry.cookie);
  if (posted.empty()) {
    trouble_ += "rank " + std::to_string(rank) + ": a completion of nothing, or a second one\n";
    return;
  }
  if (entry.sequence != posted.mapped() || entry.member != own.process.address.member ||
      entry.operation != PEAL_OPERATION_START) {
    trouble_ += "rank " + std::to_string(rank) + ": a completion differs from its start\n";
  }
  own.outstanding--;
  if (entry.status != PEAL_STATUS_OK) note_failure(rank, entry);
  if (on_completion_of) on_completion_of(rank, entry);
  if (own.outstanding == 0) {
    own.over = std::max(now_ns + completion_ns_, own.computes_until);
    if (own.more > 0) {
      own.more--;
      start(rank, 1, own.over + post_ns_ - now_ns);
    }
  }
}

void ProgramHosts::note_failure(uint32_t rank, const peal_completion& entry) {
  Rank& own = ranks_[rank];
  own.failures.push_back(entry);
  const auto reason = static_cast<uint32_t>(entry.tag & ~uint64_t{PEAL_PROGRAM_ELSEWHERE});
  own.trouble += "rank " + std::to_string(rank) + ": start " + std::to_string(entry.sequence) +
                 " ended with " + names::status(entry.status) + " at " +
                 std::to_string(entry.bytes) + ", " + names::program_reason(reason) + "\n";
}

std::vector<peal_completion> ProgramHosts::take_failures(uint32_t rank) {
  ranks_[rank].trouble.clear();
  return std::exchange(ranks_[rank].failures, {});
}

TimeNs ProgramHosts::run() {
  const TimeNs from = cluster_.now();
  const auto pending = [&] {
    for (const Rank& rank : ranks_) {
      if (rank.outstanding > 0) return true;
    }
    return false;
  };
  while (pending() && cluster_.now() < from + kEndNs && cluster_.step()) {
  }
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    peal_completion taken;
    while (cluster_.poll(ranks_[rank].process.card, ranks_[rank].process.context, &taken)) {
    }
  }
  return cluster_.now() - from;
}

TimeNs ProgramHosts::run_computing(uint64_t starts, TimeNs work_ns) {
  const TimeNs from = std::max(cluster_.now(), last_over());
  work_ns_ = work_ns;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    ranks_[rank].more = starts - 1;
    start(rank, 1, from + post_ns_ - cluster_.now());
  }
  run();
  work_ns_ = 0;
  return last_over() - from;
}

TimeNs ProgramHosts::last_over() const {
  TimeNs last = 0;
  for (const Rank& rank : ranks_) last = std::max(last, rank.over);
  return last;
}

std::string ProgramHosts::problems() const {
  std::string text = findings_.text() + trouble_;
  for (const Rank& rank : ranks_) {
    text += rank.trouble;
    if (rank.outstanding > 0) {
      text += "rank " + std::to_string(&rank - ranks_.data()) + ": " +
              std::to_string(rank.outstanding) + " starts are not over\n";
    }
  }
  return text;
}

bool ProgramHosts::only_stuck() const {
  const auto is_well = [](const Rank& rank) { return rank.trouble.empty(); };
  const auto is_over = [](const Rank& rank) { return rank.outstanding == 0; };
  return findings_.none() && trouble_.empty() && std::ranges::all_of(ranks_, is_well) &&
         !std::ranges::all_of(ranks_, is_over);
}

std::string ProgramHosts::leaks() {
  // Acknowledgements and closing connections.
  const TimeNs until = cluster_.now() + 1'000'000'000;
  while (cluster_.next_event_ns() < until && cluster_.step()) {
  }
  std::string text;
  for (const Rank& rank : ranks_) {
    for (const Committed& program : rank.programs) {
      const peal_status freed =
          cluster_.free_program(rank.process.card, rank.process.context, program.handle);
      if (freed != PEAL_STATUS_OK) text += "free program: " + names::status(freed) + "\n";
    }
  }
  for (uint32_t card = 0; card < cluster_.card_count(); card++) {
    if (cluster_.packets_held(card) != cluster_.holds(card).sent_blocks ||
        cluster_.dma_under_way(card) != 0) {
      text += "card " + std::to_string(card) + " holds packets or DMA\n";
    }
  }
  return text;
}

}  // namespace peal::sim
