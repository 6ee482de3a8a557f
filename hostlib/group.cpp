// SPDX-License-Identifier: BSD-2-Clause
// Making and ending groups. Two out-of-band rounds: everybody's member address (reserved before),
// then whether everybody connected. A rank that fails says so in the round, so that all ranks fail
// together and nobody waits for it.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "abi/wire.h"
#include "hostlib/context.h"
#include "hostlib/oob_token.h"
#include "hostlib/rings.h"
#include "hostlib/sized.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

constexpr uint32_t kRecordMagic = 0x67616570;  // "peag" in memory order
constexpr uint32_t kRecordVersion = 2;

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
  uint32_t reserved;
};
static_assert(sizeof(GroupRecord) == 56);

struct Exchange {
  peal_exchange_callback allgather;
  void* argument;
  uint32_t rank;
  uint32_t size;
};

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
peal_error compare_geometry(const std::vector<GroupRecord>& records, const char* round) {
  const uint32_t wanted = records[0].address.geometry;
  for (const GroupRecord& record : records) {
    if (record.address.geometry == wanted) continue;
    return fail(PEAL_ERR_MISMATCH,
                "%s: rank %u's card has geometry %08x, rank 0's %08x: channels, pieces, MTU and "
                "channel bytes must be the same on all cards of a group",
                round, record.rank, record.address.geometry, wanted);
  }
  return PEAL_OK;
}

// One round. OUT_OF_BAND when the callback fails or brings nonsense; PEER_REFUSED when some rank
// reports an error.
peal_error exchange_records(const Exchange& exchange, const GroupRecord& own,
                            std::vector<GroupRecord>* all, const char* round) {
  all->assign(exchange.size, GroupRecord{});
  const int failed = exchange.allgather(exchange.argument, &own, all->data(), sizeof(GroupRecord));
  if (failed != 0) {
    return fail(PEAL_ERR_OUT_OF_BAND, "%s: the out-of-band allgather returned %d", round, failed);
  }
  for (uint32_t r = 0; r < exchange.size; r++) {
    const GroupRecord& record = (*all)[r];
    if (record.magic != kRecordMagic || record.version != kRecordVersion || record.rank != r) {
      return fail(PEAL_ERR_OUT_OF_BAND,
                  "%s: block %u of the out-of-band allgather is not rank %u's record", round, r, r);
    }
  }
  if (own.error != PEAL_OK) return static_cast<peal_error>(own.error);  // its text is set already
  for (uint32_t r = 0; r < exchange.size; r++) {
    const GroupRecord& record = (*all)[r];
    if (record.error != PEAL_OK) {
      return fail(PEAL_ERR_PEER_REFUSED, "%s: rank %u failed: %s", round, r,
                  peal_strerror(static_cast<peal_error>(record.error)));
    }
    if (record.size != own.size || record.choice_hash != own.choice_hash) {
      return fail(PEAL_ERR_MISMATCH,
                  "%s: rank %u has size %u and choice table %08x, this rank size %u and %08x",
                  round, r, record.size, record.choice_hash, own.size, own.choice_hash);
    }
  }
  return compare_geometry(*all, round);
}

// peers[2j] is rank + 2^j, peers[2j+1] is rank - 2^j: all that a card needs to know of a group.
peal_error connect(peal_context& context, const std::vector<GroupRecord>& records, uint32_t rank,
                   uint32_t member, uint32_t choice_hash) {
  const auto size = static_cast<uint32_t>(records.size());
  const auto rounds = static_cast<uint32_t>(std::bit_width(size - 1));
  peal_peer_address peers[PEAL_PEERS_MAX] = {};
  if (2 * rounds > PEAL_PEERS_MAX) return fail(PEAL_ERR_BAD_RANK, "groups of %u ranks", size);
  for (uint32_t j = 0; j < rounds; j++) {
    const uint32_t distance = (1u << j) % size;
    peers[2 * j] = records[(rank + distance) % size].address;
    peers[2 * j + 1] = records[(rank + size - distance) % size].address;
  }
  return context.transport->connect_group(member, records[0].group, choice_hash, peers, 2 * rounds);
}

peal_error prepare(peal_context& context, const Exchange& exchange,
                   const peal_group_params* callers, peal_group* group) {
  peal_group_params params;
  const peal_error taken = take_struct(callers, "peal_group_params", &params);
  if (taken != PEAL_OK) return taken;
  if ((params.flags & ~PEAL_GROUP_REGISTER) != 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "unknown group flags 0x%x", params.flags);
  }
  const peal_error inherited = check_owner(context, "peal_group_create");
  if (inherited != PEAL_OK) return inherited;
  const peal_device& device = context.ring.card->device;
  group->context = &context;
  group->rank = exchange.rank;
  group->size = exchange.size;
  group->flags = params.flags;
  // The card parks what may not start yet, and refuses what it cannot park. When others are slow to
  // recycle that may be all that is outstanding, so this many are never refused.
  group->outstanding_max = std::max(device.parked_max, 1u);
  return make_choice_table(exchange.size, params.allgather_algorithm,
                           getenv("PEAL_ALLGATHER_ALGORITHM"), &group->choice);
}

peal_error create_group(peal_context& context, const Exchange& exchange,
                        const peal_group_params* params, peal_group** result) {
  auto group = std::make_unique<peal_group>();
  std::vector<GroupRecord> records;
  records.reserve(exchange.size);

  GroupRecord own = {};
  own.magic = kRecordMagic;
  own.version = kRecordVersion;
  own.rank = exchange.rank;
  own.size = exchange.size;
  peal_error error = prepare(context, exchange, params, group.get());
  own.choice_hash = group->choice.hash();
  bool reserved = false;
  if (error == PEAL_OK) {
    error = context.transport->reserve_group(exchange.size, exchange.rank, &own.address);
    reserved = error == PEAL_OK;
    group->member = own.address.member;
  }
  if (error == PEAL_OK && exchange.rank == 0) error = draw_group_id(&own.group);
  own.error = error;
  error = exchange_records(exchange, own, &records, "reserving the group");
  const bool second_round = error != PEAL_ERR_OUT_OF_BAND;

  if (error == PEAL_OK) {
    error = connect(context, records, exchange.rank, group->member, own.choice_hash);
  }
  if (second_round) {
    own.error = error;
    error = exchange_records(exchange, own, &records, "connecting the group");
  }
  if (error != PEAL_OK) {
    // The failure's text is worth more than that of giving the member back.
    if (reserved) {
      const std::string text = last_error_text();
      (void)context.transport->abandon_group(group->member);
      return fail(error, "%s", text.c_str());
    }
    return error;
  }
  const std::lock_guard<std::mutex> guard(context.mutex);
  *result = group.get();
  context.groups.push_back(std::move(group));
  return PEAL_OK;
}

peal_error destroy_group(peal_group* group) {
  peal_context& context = *group->context;
  Lock lock(context.mutex);
  if (group->destroying) {
    return fail(PEAL_ERR_CLOSED, "peal_group_destroy: it is being destroyed already");
  }
  wait_outstanding(context, *group, 0, lock);
  group->destroying = true;
  wait_place(context, lock);
  peal_error error = submit_farewell(*group);
  if (error == PEAL_OK) {
    wait_done(context, group->farewell, kForever, lock);
    error = group->farewell.result;
    const uint32_t rank = group->farewell.failed_rank;
    if (error == PEAL_ERR_PEER_DEAD) {
      fail(error, "destroying the group: rank %u is dead", rank);
    } else if (error != PEAL_OK) {
      fail(error, "destroying the group: %s", peal_strerror(error));
    }
  }
  std::erase_if(context.groups, [group](const auto& each) { return each.get() == group; });
  return error;
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;
using peal::host::guarded;

extern "C" peal_error peal_group_create(peal_context* context, uint32_t rank, uint32_t size,
                                        peal_exchange_callback allgather, void* argument,
                                        const peal_group_params* params, peal_group** group) {
  if (context == nullptr || allgather == nullptr || group == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_group_create: an argument is null");
  }
  *group = nullptr;
  if (size == 0 || rank >= size || size > PEAL_RANKS_MAX) {
    return fail(PEAL_ERR_BAD_RANK, "rank %u of %u: groups have 1 to %d ranks", rank, size,
                PEAL_RANKS_MAX);
  }
  const peal::host::Exchange exchange = {allgather, argument, rank, size};
  return guarded([&] { return peal::host::create_group(*context, exchange, params, group); });
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
  if (group == nullptr || group->context->guard.inherited()) return -1;
  const std::lock_guard<std::mutex> guard(group->context->mutex);
  return group->failed_rank == PEAL_NO_RANK ? -1 : static_cast<int>(group->failed_rank);
}
