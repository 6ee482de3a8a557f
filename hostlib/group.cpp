// SPDX-License-Identifier: BSD-2-Clause
// Making and ending groups. Two exchanges out of band: everybody's member address (reserved
// before), then whether everybody connected. A rank that fails says so in its record, so that all
// ranks fail together and nobody waits for it.
#include "hostlib/group.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "abi/wire.h"
#include "hostlib/administration.h"
#include "hostlib/context_pages.h"
#include "hostlib/ended.h"
#include "hostlib/handles.h"
#include "hostlib/memory.h"
#include "hostlib/oob_token.h"
#include "hostlib/outcome.h"
#include "hostlib/rings.h"
#include "hostlib/sized.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

constexpr uint32_t kRecordMagic = 0x67616570;  // "peag" in memory order
constexpr uint32_t kRecordVersion = 3;

// What ranks tell each other out of band. Little-endian, like everything in abi/.
struct GroupRecord {
  uint32_t magic;
  uint32_t version;
  uint32_t error;  // peal_error
  uint32_t rank;
  uint32_t size;
  uint32_t choice_hash;
  uint64_t group;  // rank 0's; others' are zero
  peal_peer_address address;
  uint32_t purpose;  // what the group is for, 0 for any
  uint8_t reserved[8];
};
static_assert(sizeof(GroupRecord) == PEAL_GROUP_RECORD_BYTES);
}  // namespace
}  // namespace peal::host

struct peal_group_builder {
  peal_context* context = nullptr;
  peal::host::GroupPointer group;
  peal::host::GroupRecord own = {};
  std::vector<peal::host::GroupRecord> records;  // everybody's, of this exchange
  bool connecting = false;                       // the first exchange is over
  bool reserved = false;                         // the card has a member for us
  // The first failure, here or another rank's.
  peal_error error = PEAL_OK;
  std::string text;
};

namespace peal::host {
namespace {

// Whoever knows the id can try to pass for a member, so there is nothing to fall back to.
peal_error draw_group_id(uint64_t* id) {
  OobNonce random = {};
  do {
    if (!draw(&random)) return fail_errno(PEAL_ERR_SYSTEM, "getrandom: no id for the group");
    memcpy(id, random.data(), sizeof(*id));
  } while (*id == 0);
  return PEAL_OK;
}

// The cards would drop each other's pieces, and ask for them for ever.
peal_error compare_geometry(std::span<const GroupRecord> records, const char* round) {
  const uint32_t wanted = records[0].address.geometry;
  for (const GroupRecord& record : records) {
    if (record.address.geometry == wanted) continue;
    return fail(PEAL_ERR_MISMATCH,
                "%s: rank %u's card has geometry %08x, rank 0's %08x: version, channels, "
                "pieces, MTU and channel bytes must be the same on all cards of a group",
                round, record.rank, record.address.geometry, wanted);
  }
  return PEAL_OK;
}

// OUT_OF_BAND when the exchange brought nonsense; PEER_REFUSED when some rank reports an error.
peal_error check_records(std::span<const GroupRecord> records, const GroupRecord& own,
                         const char* round) {
  for (uint32_t r = 0; r < records.size(); r++) {
    const GroupRecord& record = records[r];
    if (record.magic != kRecordMagic || record.version != kRecordVersion || record.rank != r) {
      return fail(PEAL_ERR_OUT_OF_BAND, "%s: block %u of the exchange is not rank %u's record",
                  round, r, r);
    }
  }
  for (uint32_t r = 0; r < records.size(); r++) {
    const GroupRecord& record = records[r];
    if (record.error != PEAL_OK) {
      return fail(PEAL_ERR_PEER_REFUSED, "%s: rank %u failed: %s", round, r,
                  peal_strerror(static_cast<peal_error>(record.error)));
    }
    if (record.size != own.size || record.choice_hash != own.choice_hash) {
      return fail(PEAL_ERR_MISMATCH,
                  "%s: rank %u has size %u and choice table %08x, this rank size %u and %08x",
                  round, r, record.size, record.choice_hash, own.size, own.choice_hash);
    }
    if (record.purpose != own.purpose) {
      return fail(PEAL_ERR_MISMATCH, "%s: rank %u makes it for another operation, root or length",
                  round, r);
    }
  }
  return compare_geometry(records, round);
}

// Where the card cannot use a table, it need not have one.
bool wants_table(const peal_context& context, uint32_t size) {
  const uint32_t most = context.ring.card->device.remembered_addresses;
  return peal_all_are_peers(size) == 0 && peal_may_talk_to_all(size, most) != 0;
}

// All ranks' addresses, in memory that the card can read: for algorithms that talk to everybody.
peal_error make_table(peal_context& context, std::span<const GroupRecord> records,
                      AddressTables::Place* table) {
  const auto bytes = static_cast<uint32_t>(records.size() * sizeof(peal_peer_address));
  Lock lock(context.mutex);
  *table = context.tables.take(bytes);
  while (table->address == nullptr) {
    lock.unlock();
    Allocation memory;
    const peal_error error = allocate_unlocked(context, AddressTables::block_bytes(bytes), &memory);
    if (error != PEAL_OK) return error;
    lock.lock();
    context.tables.add(memory);
    *table = context.tables.take(bytes);  // none where another thread was faster
  }
  lock.unlock();
  uint8_t* at = table->address;
  for (const GroupRecord& record : records) {
    memcpy(at, &record.address, sizeof(record.address));
    at += sizeof(record.address);
  }
  return PEAL_OK;
}

// peers[2j] is rank + 2^j, peers[2j+1] is rank - 2^j: all that a card must remember of a group.
peal_error connect(peal_context& context, std::span<const GroupRecord> records, uint32_t rank,
                   uint32_t member, uint32_t choice_hash, AddressTables::Place* table) {
  const auto size = static_cast<uint32_t>(records.size());
  const auto rounds = static_cast<uint32_t>(std::bit_width(size - 1));
  peal_peer_address peers[PEAL_PEERS_MAX] = {};
  if (2 * rounds > PEAL_PEERS_MAX) return fail(PEAL_ERR_BAD_RANK, "groups of %u ranks", size);
  for (uint32_t j = 0; j < rounds; j++) {
    const uint32_t distance = (1u << j) % size;
    peers[2 * j] = records[(rank + distance) % size].address;
    peers[2 * j + 1] = records[(rank + size - distance) % size].address;
  }
  if (wants_table(context, size)) {
    const peal_error error = make_table(context, records, table);
    if (error != PEAL_OK) return error;
  }
  return connect_group(*context.transport, member, records[0].group, choice_hash, peers, 2 * rounds,
                       *table);
}

// What the caller and the environment want of the group.
peal_error set_up(peal_group& group, const peal_group_params* callers) {
  peal_group_params params;
  const peal_error error = take_struct(callers, "peal_group_params", &params);
  if (error != PEAL_OK) return error;
  if ((params.flags & ~PEAL_GROUP_REGISTER) != 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "unknown group flags 0x%x", params.flags);
  }
  group.flags = params.flags;
  ChoiceSources sources = sources_of_environment();
  // The caller's may be no value of the enumeration.
  static_assert(sizeof(sources.allgather) == sizeof(params.allgather_algorithm));
  memcpy(&sources.allgather, &params.allgather_algorithm, sizeof(sources.allgather));
  sources.rules = params.algorithms;
  const uint32_t addresses = group.context->ring.card->device.remembered_addresses;
  return make_choice_table({group.size, addresses}, sources, &group.choice);
}

// Everything about the group that needs nobody else.
peal_error prepare(peal_group_builder& builder, const GroupSource& source) {
  peal_context& context = *builder.context;
  GroupRecord& own = builder.own;
  peal_group& group = *builder.group;
  peal_error error = check_owner(context, "peal_group_create");
  if (error != PEAL_OK) return error;
  group.rank = own.rank;
  group.size = own.size;
  // The card parks what may not start yet, and refuses what it cannot park. When others are slow to
  // recycle that may be all that is outstanding, so this many are never refused.
  group.outstanding_max = std::max(context.ring.card->device.parked_max, 1u);
  if (source.parent != nullptr) {
    group.flags = source.parent->flags;
    group.choice = source.parent->choice;
  } else {
    error = set_up(group, source.params);
    if (error != PEAL_OK) return error;
  }
  own.choice_hash = group.choice.hash();
  error = reserve_group(*context.transport, own.size, own.rank, &own.address);
  if (error != PEAL_OK) return error;
  builder.reserved = true;
  group.member = own.address.member;
  return own.rank == 0 ? draw_group_id(&own.group) : PEAL_OK;
}

}  // namespace

void note(peal_group_builder& builder, peal_error error) {
  if (builder.error != PEAL_OK || error == PEAL_OK) return;
  builder.error = error;
  builder.text = last_error_text();
  builder.own.error = error;
}

peal_error begin_group(peal_context& context, uint32_t rank, uint32_t size,
                       const GroupSource& source, peal_group_builder** result) {
  auto builder = std::make_unique<peal_group_builder>();
  builder->context = &context;
  builder->group = make_group(context);
  builder->own.magic = kRecordMagic;
  builder->own.version = kRecordVersion;
  builder->own.rank = rank;
  builder->own.size = size;
  builder->records.resize(size);
  note(*builder, prepare(*builder, source));
  *result = builder.get();
  if (context.owner.inherited()) {  // its lock and lists are the parent's
    (void)builder.release();
    return PEAL_OK;
  }
  const std::lock_guard guard(context.mutex);
  context.builders.emplace_back(builder.release());
  return PEAL_OK;
}

peal_group& group_of(peal_group_builder& builder) { return *builder.group; }

void set_purpose(peal_group_builder& builder, uint32_t purpose) { builder.own.purpose = purpose; }

namespace {

// Out of its context's hands.
std::unique_ptr<peal_group_builder> take_builder(peal_group_builder* builder) {
  peal_context& context = *builder->context;
  if (!context.owner.inherited()) {
    const std::lock_guard guard(context.mutex);
    for (auto& each : context.builders) {
      if (each.get() == builder) (void)each.release();
    }
    std::erase_if(context.builders, [](const auto& each) { return each == nullptr; });
  }
  return std::unique_ptr<peal_group_builder>(builder);
}

// A group that does not come to be gives its member back.
void give_back(peal_group_builder& builder) {
  if (!builder.context->owner.inherited()) {
    if (builder.reserved) {
      (void)abandon_group(*builder.context->transport, builder.group->member);
    }
    const std::lock_guard guard(builder.context->mutex);
    drop_table(*builder.context, &builder.group->table);
    leave_memory(*builder.context, builder.group->part_tables.memory());
  }
  builder.reserved = false;
}

peal_error advance_group(peal_group_builder* builder, const void* blocks, peal_group** result) {
  GroupRecord& own = builder->own;
  std::vector<GroupRecord>& records = builder->records;
  memcpy(records.data(), blocks, records.size() * sizeof(GroupRecord));
  note(*builder,
       check_records(records, own,
                     builder->connecting ? "connecting the group" : "reserving the group"));
  // Nonsense: whether the others take part in a second exchange, nobody knows.
  const bool more = !builder->connecting && builder->error != PEAL_ERR_OUT_OF_BAND;
  if (more) {
    builder->connecting = true;
    if (builder->error == PEAL_OK) {
      note(*builder, connect(*builder->context, records, own.rank, builder->group->member,
                             own.choice_hash, &builder->group->table));
    }
    return PEAL_OK;
  }
  const std::unique_ptr<peal_group_builder> last = take_builder(builder);
  if (builder->error != PEAL_OK) {
    give_back(*builder);
    return fail(builder->error, "%s", builder->text.c_str());
  }
  peal_context& context = *builder->context;
  const std::lock_guard guard(context.mutex);
  context.groups.push_back(std::move(builder->group));
  *result = context.groups.back().get();
  return PEAL_OK;
}

void cancel_group(peal_group_builder* builder) {
  const std::unique_ptr<peal_group_builder> last = take_builder(builder);
  give_back(*builder);
}

}  // namespace

peal_error finish_group(peal_group_builder* builder, peal_exchange_callback exchange,
                        void* argument, peal_group** group) {
  std::vector<GroupRecord> records(builder->own.size);
  peal_error error = PEAL_OK;
  for (const char* round : {"reserving", "connecting"}) {
    const int failed = exchange(argument, &builder->own, records.data(), sizeof(GroupRecord));
    if (failed != 0) {
      cancel_group(builder);
      return fail(PEAL_ERR_OUT_OF_BAND, "%s the group: the out-of-band exchange returned %d", round,
                  failed);
    }
    error = advance_group(builder, records.data(), group);
    if (error != PEAL_OK || *group != nullptr) return error;
  }
  return error;
}

namespace {

// It needs its company (persistent_program.h) no more, which ends when no request does either. Its
// destroy waits for no free request: the other ranks wait for it, whatever this one has in use.
void leave_company(peal_group& parent, Lock& lock) {
  peal_group* const company = std::exchange(parent.company, nullptr);
  if (company == nullptr || --company->users > 0) return;
  peal_context& context = *parent.context;
  wait_place(context, lock);
  company->over = context.broken != PEAL_OK || submit_destroy(*company) != PEAL_OK;
}

peal_error abort_group(peal_group* group) {
  peal_context& context = *group->context;
  Lock lock(context.mutex);
  if (group->destroying) {
    return fail(PEAL_ERR_CLOSED, "peal_group_abort: it is being destroyed already");
  }
  group->destroying = true;
  group->aborted = true;
  lock.unlock();
  peal_error error = abandon_group(*context.transport, group->member);
  // Of a group that is dead already the card has buried the member.
  if (error == PEAL_ERR_BAD_GROUP) error = PEAL_OK;
  lock.lock();
  if (error != PEAL_OK && error != PEAL_ERR_CARD_GONE && context.broken == PEAL_OK) {
    group->destroying = group->aborted = false;
    return error;
  }
  wait_idle(context, *group, lock);
  leave_company(*group, lock);
  forget_group(context, group);
  return error;
}

peal_error wait_group(peal_group* group) {
  Lock lock(group->context->mutex);
  wait_idle(*group->context, *group, lock);
  const peal_request failure = group->detached_failure;
  group->detached_failure = {};
  return outcome(failure);
}

peal_error check_place(uint32_t rank, uint32_t size) {
  if (size != 0 && rank < size && size <= PEAL_RANKS_MAX) return PEAL_OK;
  return fail(PEAL_ERR_BAD_RANK, "rank %u of %u: groups have 1 to %d ranks", rank, size,
              PEAL_RANKS_MAX);
}

// Success and death end a member on its card; disagreement leaves it standing, and nobody will have
// a handle of it.
bool outlives_destroy(const peal_context& context, peal_error error) {
  return error != PEAL_OK && error != PEAL_ERR_PEER_DEAD && error != PEAL_ERR_CLOSED &&
         context.broken == PEAL_OK;
}

peal_error destroy_group(peal_group* group) {
  peal_context& context = *group->context;
  Lock lock(context.mutex);
  if (group->destroying) {
    return fail(PEAL_ERR_CLOSED, "peal_group_destroy: it is being destroyed already");
  }
  group->destroying = true;  // before the lock is given up
  wait_idle(context, *group, lock);
  wait_place(context, lock);
  peal_error error = submit_destroy(*group);
  if (error == PEAL_OK) {
    wait_done(context, group->own_request, kForever, lock);
    error = group->own_request.result;
    const uint32_t rank = group->own_request.failed_rank;
    if (outlives_destroy(context, error)) {  // the others would wait for it for ever
      lock.unlock();
      (void)abandon_group(*context.transport, group->member);
      lock.lock();
    }
    if (error == PEAL_ERR_PEER_DEAD) {
      fail(error, "destroying the group: rank %u is dead", rank);
    } else if (error != PEAL_OK) {
      fail(error, "destroying the group: %s", peal_strerror(error));
    }
  }
  leave_company(*group, lock);
  forget_group(context, group);
  return error;
}

}  // namespace

}  // namespace peal::host

void peal::host::DeleteBuilder::operator()(peal_group_builder* builder) const { delete builder; }

using peal::host::fail;
using peal::host::guarded;

extern "C" peal_error peal_group_create(peal_context* context, uint32_t rank, uint32_t size,
                                        peal_exchange_callback exchange, void* argument,
                                        const peal_group_params* params, peal_group** group) {
  if (context == nullptr || exchange == nullptr || group == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_group_create: an argument is null");
  }
  *group = nullptr;
  const peal_error error = peal::host::check_place(rank, size);
  if (error != PEAL_OK) return error;
  return guarded([&] {
    peal_group_builder* builder = nullptr;
    const peal_error begun =
        peal::host::begin_group(*context, rank, size, {params, nullptr}, &builder);
    if (begun != PEAL_OK) return begun;
    return peal::host::finish_group(builder, exchange, argument, group);
  });
}

extern "C" peal_error peal_group_begin(peal_context* context, uint32_t rank, uint32_t size,
                                       const peal_group_params* params,
                                       peal_group_builder** builder) {
  if (context == nullptr || builder == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_group_begin: an argument is null");
  }
  *builder = nullptr;
  const peal_error error = peal::host::check_place(rank, size);
  if (error != PEAL_OK) return error;
  return guarded(*context, "peal_group_begin", [&] {
    return peal::host::begin_group(*context, rank, size, {params, nullptr}, builder);
  });
}

extern "C" const void* peal_group_record(const peal_group_builder* builder) {
  return builder != nullptr ? &builder->own : nullptr;
}

extern "C" peal_error peal_group_advance(peal_group_builder* builder, const void* records,
                                         peal_group** group) {
  if (builder == nullptr || records == nullptr || group == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_group_advance: an argument is null");
  }
  *group = nullptr;
  return guarded(*builder->context, "peal_group_advance",
                 [&] { return peal::host::advance_group(builder, records, group); });
}

extern "C" void peal_group_cancel(peal_group_builder* builder) {
  if (builder != nullptr) peal::host::cancel_group(builder);
}

extern "C" peal_error peal_group_abort(peal_group* group) {
  if (group == nullptr) return PEAL_OK;
  return guarded(*group->context, "peal_group_abort",
                 [&] { return peal::host::abort_group(group); });
}

extern "C" peal_error peal_group_wait(peal_group* group) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_group_wait: group is null");
  return guarded(*group->context, "peal_group_wait", [&] { return peal::host::wait_group(group); });
}

extern "C" peal_error peal_group_destroy(peal_group* group) {
  if (group == nullptr) return PEAL_OK;
  return guarded(*group->context, "peal_group_destroy",
                 [&] { return peal::host::destroy_group(group); });
}

extern "C" uint32_t peal_group_rank(const peal_group* group) {
  return group != nullptr ? group->rank : 0;
}

extern "C" uint32_t peal_group_size(const peal_group* group) {
  return group != nullptr ? group->size : 0;
}

extern "C" int peal_group_failed_rank(peal_group* group) {
  if (group == nullptr || group->context->owner.inherited()) return -1;
  const std::lock_guard guard(group->context->mutex);
  return group->failed_rank == PEAL_NO_RANK ? -1 : static_cast<int>(group->failed_rank);
}
