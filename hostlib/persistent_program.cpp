// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/persistent_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hostlib/card_exchange.h"
#include "hostlib/ended.h"
#include "hostlib/group.h"
#include "hostlib/memory.h"
#include "hostlib/program_collectives.h"
#include "hostlib/programs.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

constexpr uint32_t kCompanyPurpose = 0x63707267;
// Measured on peal-nic (docs/performance/programs-and-p2p.md).
constexpr uint64_t kSegmentBytes = 64 << 10;
constexpr uint64_t kSegmentsMax = 4096;
constexpr uint32_t kWindow = 16;
constexpr uint32_t kTurns = 2;

// What ranks tell each other before they write their programs. Little-endian, like all of abi/.
struct Record {
  uint32_t error;
  uint32_t purpose;
  uint32_t able;  // whether this rank can make a program of it
  uint32_t key;   // of the receive buffer
  uint64_t offset;
  uint32_t work_keys[kTurns];  // of the collective buffers
  uint32_t reserved[8];
};
static_assert(sizeof(Record) == PEAL_GROUP_RECORD_BYTES);

// What one rank tells another: where its block belongs, and how long it is to be.
struct Place {
  uint64_t bytes;
  uint64_t offset;
  uint32_t key;
  uint32_t reserved[3];
};
static_assert(sizeof(Place) == 32);

bool by_pairs(const PersistentOperation& operation) {
  return operation.operation == PEAL_OPERATION_ALLTOALL ||
         operation.operation == PEAL_OPERATION_ALLTOALLV ||
         operation.operation == PEAL_OPERATION_ALLGATHERV;
}

bool has_own_lengths(const PersistentOperation& operation) {
  return operation.operation == PEAL_OPERATION_ALLTOALLV ||
         operation.operation == PEAL_OPERATION_ALLGATHERV;
}

// Makes the program of one rank.
class Maker {
 public:
  Maker(peal_group& group, const PersistentOperation& operation)
      : group_(group), context_(*group.context), own_(operation) {}
  ~Maker() {
    const Lock lock(context_.mutex);
    for (const Allocation& work : work_) leave_memory(context_, work);
  }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  // What this rank has for the others. Not able: the program would need what is not there.
  Record prepare(peal_error own, uint32_t purpose) {
    Record record = {};
    record.error = static_cast<uint32_t>(own);
    record.purpose = purpose;
    if (own != PEAL_OK) return record;
    able_ = context_.programs && name_receive() && make_work();
    record.able = able_ ? 1 : 0;
    record.key = receive_.key;
    record.offset = receive_.offset;
    for (uint32_t turn = 0; turn < kTurns; turn++) record.work_keys[turn] = work_[turn].key;
    return record;
  }
  void learn(const std::vector<Record>& records) {
    for (const Record& record : records) {
      receives_.push_back({.key = record.key, .offset = record.offset});
      for (uint32_t turn = 0; turn < kTurns; turn++)
        works_[turn].push_back({.key = record.work_keys[turn], .offset = 0});
    }
  }
  // Of exchanges by pairs whose blocks differ, everybody's word for everybody.
  peal_error exchange_places(CardExchange& exchange) {
    if (!has_own_lengths(own_)) return PEAL_OK;
    std::vector<Place> given(group_.size);
    for (uint32_t from = 0; from < group_.size; from++) {
      const PersistentPart& part = own_.receives[from];
      given[from].bytes = part.bytes;
      if (part.bytes == 0) continue;
      given[from].key = receive_.key;
      given[from].offset = receive_.offset + static_cast<uint64_t>(part.at - own_.receive);
    }
    places_.resize(group_.size);
    const peal_error error = exchange.to_each(given.data(), places_.data(), sizeof(Place));
    if (error != PEAL_OK) return error;
    for (uint32_t to = 0; to < group_.size; to++) {
      if (places_[to].bytes == own_.sends[to].bytes || skips(to)) continue;
      return fail(PEAL_ERR_MISMATCH, "rank %u expects %llu bytes of this rank, which has %zu", to,
                  static_cast<unsigned long long>(places_[to].bytes), own_.sends[to].bytes);
    }
    return PEAL_OK;
  }

  // Programs that are started in turn.
  [[nodiscard]] uint32_t turns() const { return collects() ? kTurns : 1; }
  Program write(uint32_t turn) {
    switch (own_.operation) {
      case PEAL_OPERATION_BARRIER:
        return dissemination_barrier(group_.rank, group_.size);
      case PEAL_OPERATION_BROADCAST:
        return broadcast();
      case PEAL_OPERATION_ALLGATHER:
        return collects() ? collected_allgather(collecting(turn)) : allgather();
      default:
        return collects() ? collected_alltoall(collecting(turn)) : pairs();
    }
  }
  // Whoever takes it releases it.
  Allocation take_work(uint32_t turn) { return std::exchange(work_[turn], {}); }

 private:
  // All ranks choose alike: their tables were compared when the group was made.
  [[nodiscard]] ProgramWay way() const {
    return group_.choice.program(own_.operation, own_.block_bytes);
  }
  // All blocks go through collective buffers.
  [[nodiscard]] bool collects() const {
    return own_.block_bytes != 0 && way() == ProgramWay::kCollected;
  }
  // In place the own block is where it belongs.
  [[nodiscard]] bool skips(uint32_t to) const { return own_.in_place && to == group_.rank; }
  [[nodiscard]] bool copies_all() const {
    return own_.in_place && by_pairs(own_) && own_.operation != PEAL_OPERATION_ALLGATHERV &&
           !collects();
  }

  // What arrives is passed on from where it lies, so the card has to read there as well.
  bool name_receive() {
    if (own_.receive_bytes == 0) return true;
    const bool passes_on = (!by_pairs(own_) && !collects()) || own_.in_place;
    const bool is_root = own_.operation == PEAL_OPERATION_BROADCAST && own_.root == group_.rank;
    const uint32_t access = is_root ? PEAL_READ : passes_on ? PEAL_READ | PEAL_WRITE : PEAL_WRITE;
    Region region;
    const Lock lock(context_.mutex);
    if (context_.memory.find(own_.receive, own_.receive_bytes, access, "receive", &region) !=
        PEAL_OK) {
      return false;
    }
    receive_ = {.key = region.key, .offset = region.offset_of(own_.receive)};
    return true;
  }
  bool make_work() {
    if (!collects() && !copies_all()) return true;
    for (uint32_t turn = 0; turn < turns() && own_.receive_bytes != 0; turn++)
      if (allocate_unlocked(context_, own_.receive_bytes, &work_[turn]) != PEAL_OK) return false;
    return true;
  }

  Program broadcast() const {
    if (way() == ProgramWay::kBinomial) {
      return binomial_broadcast(group_.rank, group_.size, own_.root, own_.receive, own_.block_bytes,
                                receives_);
    }
    const uint64_t segment =
        std::max(kSegmentBytes, (own_.block_bytes + kSegmentsMax - 1) / kSegmentsMax);
    return chain_broadcast(group_.rank, group_.size, own_.root, own_.receive, own_.block_bytes,
                           segment, receives_);
  }
  Program allgather() const {
    Gathering gathering;
    gathering.rank = group_.rank;
    gathering.ranks = group_.size;
    gathering.receive = own_.receive;
    gathering.send = own_.in_place ? own_.receive + group_.rank * own_.block_bytes : own_.send;
    gathering.block_bytes = own_.block_bytes;
    gathering.own = receive_;
    gathering.receives = receives_;
    return way() == ProgramWay::kRing ? ring_allgather(gathering) : doubling_allgather(gathering);
  }
  Collecting collecting(uint32_t turn) const {
    Collecting made;
    made.rank = group_.rank;
    made.ranks = group_.size;
    made.send = own_.in_place ? own_.receive : own_.send;
    made.in_place = own_.in_place;
    made.block_bytes = own_.block_bytes;
    made.own = receive_;
    made.collective = work_[turn].address;
    made.collectives = works_[turn];
    return made;
  }
  Program pairs() const {
    std::vector<PairBlock> blocks(group_.size);
    std::vector<PairBlock> copied;
    for (uint32_t to = 0; to < group_.size; to++) {
      if (skips(to)) continue;
      const PersistentPart& part = own_.sends[to];
      blocks[to] = {part.at, part.bytes, place_of(to)};
      if (!copies_all() || part.bytes == 0) continue;
      const auto offset = static_cast<uint64_t>(part.at - own_.receive);
      copied.push_back({part.at, part.bytes, {.key = work_[0].key, .offset = offset}});
      blocks[to].from = work_[0].address + offset;
    }
    return pairwise_exchange(group_.rank, blocks, kWindow, copied);
  }
  [[nodiscard]] Program::Remote place_of(uint32_t to) const {
    if (has_own_lengths(own_)) return {.key = places_[to].key, .offset = places_[to].offset};
    return {.key = receives_[to].key,
            .offset = receives_[to].offset + group_.rank * own_.block_bytes};
  }

  peal_group& group_;
  peal_context& context_;
  const PersistentOperation& own_;
  bool able_ = false;
  Program::Remote receive_;
  Allocation work_[kTurns];
  std::vector<Program::Remote> receives_;
  std::vector<Program::Remote> works_[kTurns];
  std::vector<Place> places_;
};

// The parent's company; null where there can be none.
peal_error join_company(peal_group& parent) {
  peal_context& context = *parent.context;
  if (parent.company != nullptr || parent.alone) return PEAL_OK;
  CardExchange exchange(parent);
  peal_group_builder* builder = nullptr;
  peal_error error = begin_group(context, parent.rank, parent.size, {nullptr, &parent}, &builder);
  if (error != PEAL_OK) return error;
  group_of(*builder).users = 1;
  set_purpose(*builder, kCompanyPurpose);
  peal_group* group = nullptr;
  error = finish_group(builder, CardExchange::run, &exchange, &group);
  if (exchange.failure() != PEAL_OK) return exchange.failure();
  parent.company = group;
  parent.alone = error != PEAL_OK;  // the card has no place for it
  return PEAL_OK;
}

// Everybody's word on the request. OK and not *able: it is to be no program.
peal_error compare(const std::vector<Record>& records, peal_error own, const std::string& text,
                   bool* able) {
  if (own != PEAL_OK) return fail(own, "%s", text.c_str());
  *able = true;
  for (uint32_t rank = 0; rank < records.size(); rank++) {
    const Record& record = records[rank];
    if (record.error != PEAL_OK) {
      return fail(PEAL_ERR_PEER_REFUSED, "making the request: rank %u failed: %s", rank,
                  peal_strerror(static_cast<peal_error>(record.error)));
    }
    if (record.purpose != records[0].purpose) {
      return fail(PEAL_ERR_MISMATCH, "rank %u makes it for another operation, root or length",
                  rank);
    }
    *able = *able && record.able != 0;
  }
  return PEAL_OK;
}

// Whose table differs from another's tells it, so that all know.
peal_error agree_on_places(CardExchange& exchange, uint32_t ranks, peal_error own) {
  const std::string text = own == PEAL_OK ? "" : last_error_text();
  Record record = {};
  record.error = static_cast<uint32_t>(own);
  std::vector<Record> records(ranks);
  const peal_error error = exchange.gather(&record, records.data(), sizeof(record));
  if (error != PEAL_OK) return error;
  if (own != PEAL_OK) return fail(own, "%s", text.c_str());
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (records[rank].error == PEAL_OK) continue;
    return fail(static_cast<peal_error>(records[rank].error), "making the request: rank %u: %s",
                rank, peal_strerror(static_cast<peal_error>(records[rank].error)));
  }
  return PEAL_OK;
}

// What was committed before something failed. (The text of the failure stays.)
void give_up(peal_context& context, const Persistent& persistent) {
  const Lock lock(context.mutex);
  for (peal_program* program : persistent.programs)
    if (program != nullptr) note_ended(context, program);
}

}  // namespace

peal_error make_program(peal_group& parent, peal_error own, uint32_t purpose,
                        const PersistentOperation& operation, Persistent** made) {
  *made = nullptr;
  const std::string text = own == PEAL_OK ? "" : last_error_text();
  peal_context& context = *parent.context;
  peal_error error = join_company(parent);
  if (error != PEAL_OK || parent.company == nullptr) return error;
  peal_group& company = *parent.company;
  CardExchange exchange(company);
  Maker maker(company, operation);
  const Record record = maker.prepare(own, purpose);
  std::vector<Record> records(company.size);
  error = exchange.gather(&record, records.data(), sizeof(record));
  if (error != PEAL_OK) return error;
  bool able = false;
  error = compare(records, own, text, &able);
  if (error != PEAL_OK || !able) return error;
  maker.learn(records);
  if (has_own_lengths(operation)) {
    error = maker.exchange_places(exchange);
    if (error != PEAL_OK && error != PEAL_ERR_MISMATCH) return error;
    error = agree_on_places(exchange, company.size, error);
    if (error != PEAL_OK) return error;
  }
  auto persistent = std::make_unique<Persistent>();
  persistent->turns = static_cast<uint8_t>(maker.turns());
  for (uint32_t turn = 0; turn < maker.turns() && error == PEAL_OK; turn++) {
    Program written = maker.write(turn);  // while the buffer is the maker's
    error = commit_written(company, std::move(written), maker.take_work(turn),
                           &persistent->programs[turn]);
  }
  if (error != PEAL_OK) give_up(context, *persistent);
  if (error == PEAL_ERR_PEER_DEAD || error == PEAL_ERR_CARD_GONE || error == PEAL_ERR_CARD_ANSWER) {
    return error;
  }
  if (error != PEAL_OK) return PEAL_OK;  // on all ranks: some card has no room for it
  const Lock lock(context.mutex);
  persistent->group = &company;
  persistent->posting = start_of(*persistent->programs[0]);
  for (uint32_t i = 0; i < kTurns; i++)
    persistent->handles[i] = start_of(*persistent->programs[i % maker.turns()]).send_key;
  company.users++;
  *made = persistent.get();
  context.persistents.push_back(std::move(persistent));
  return PEAL_OK;
}

}  // namespace peal::host
