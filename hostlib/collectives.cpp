// SPDX-License-Identifier: BSD-2-Clause
// The operations: arguments become one submission entry.
#include "abi/wire.h"
#include "base/names.h"
#include "hostlib/blocks.h"
#include "hostlib/buffers.h"
#include "hostlib/handles.h"
#include "hostlib/memory.h"
#include "hostlib/outcome.h"
#include "hostlib/persistent.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

// What the arguments of one call come to.
struct Call {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint32_t root = 0;
  size_t block_bytes = 0;
  bool in_place = false;
  Buffer send;
  Buffer receive;
};

// The memory of an operation that sends so many blocks and receives so many. Lengths may wrap
// around here: what is too long is refused before anybody looks at a buffer.
[[gnu::always_inline]] inline void two_buffers(Call& call, const void* send, size_t send_blocks,
                                               void* receive, size_t receive_blocks) {
  call.in_place = send == PEAL_IN_PLACE;
  call.receive = {receive, call.block_bytes * receive_blocks};
  if (!call.in_place) call.send = {send, call.block_bytes * send_blocks};
}

[[gnu::always_inline]] inline Call barrier(const peal_group&) {
  Call call;
  call.operation = PEAL_OPERATION_BARRIER;
  return call;
}

[[gnu::always_inline]] inline Call broadcast(const peal_group& group, void* buffer, size_t bytes,
                                             uint32_t root) {
  Call call;
  call.operation = PEAL_OPERATION_BROADCAST;
  call.root = root;
  call.block_bytes = bytes;
  if (group.rank == root) {
    call.send = {buffer, bytes};
  } else {
    call.receive = {buffer, bytes};
  }
  return call;
}

[[gnu::always_inline]] inline Call allgather(const peal_group& group, const void* send,
                                             void* receive, size_t block_bytes) {
  Call call;
  call.operation = PEAL_OPERATION_ALLGATHER;
  call.block_bytes = block_bytes;
  two_buffers(call, send, 1, receive, group.size);
  return call;
}

[[gnu::always_inline]] inline Call alltoall(const peal_group& group, const void* send,
                                            void* receive, size_t block_bytes) {
  Call call;
  call.operation = PEAL_OPERATION_ALLTOALL;
  call.block_bytes = block_bytes;
  two_buffers(call, send, group.size, receive, group.size);
  return call;
}

[[gnu::always_inline]] inline PartsCall allgatherv(const peal_group&, const void* send,
                                                   void* receive, const size_t* bytes,
                                                   const size_t* offsets) {
  return {PEAL_OPERATION_ALLGATHERV, send, receive, {bytes, offsets}, {}};
}

[[gnu::always_inline]] inline PartsCall alltoallv(const peal_group&, const void* send,
                                                  const size_t* send_bytes,
                                                  const size_t* send_offsets, void* receive,
                                                  const size_t* receive_bytes,
                                                  const size_t* receive_offsets) {
  return {PEAL_OPERATION_ALLTOALLV,
          send,
          receive,
          {receive_bytes, receive_offsets},
          {send_bytes, send_offsets}};
}

Blocks receive_blocks(const peal_group& group, const PartsCall& call) {
  return {call.receive, call.received.bytes, call.received.offsets, group.size, "receive"};
}

// None in place. What an allgatherv sends is as long as what this rank has in the receive buffer.
Blocks send_blocks(const peal_group& group, const PartsCall& call) {
  if (call.in_place()) return {};
  if (call.sends_parts())
    return {call.send, call.sent.bytes, call.sent.offsets, group.size, "send"};
  return {call.send, call.received.bytes + group.rank, nullptr, 1, "send"};
}

bool overlap(const Buffer& a, const Buffer& b) {
  const auto a_start = reinterpret_cast<uintptr_t>(a.address);
  const auto b_start = reinterpret_cast<uintptr_t>(b.address);
  return a_start < b_start + b.bytes && b_start < a_start + a.bytes;
}

// What is wrong whatever memory is registered.
enum class Flaw : uint8_t { kNone, kRoot, kLength, kOverlap };

[[gnu::always_inline]] inline Flaw flaw_of(const peal_group& group, const Call& call) {
  if (call.root != 0 && call.root >= group.size) return Flaw::kRoot;
  if (call.block_bytes > UINT32_MAX) return Flaw::kLength;
  const bool both =
      call.send.bytes != 0 && call.receive.bytes != 0 && overlap(call.send, call.receive);
  return both ? Flaw::kOverlap : Flaw::kNone;
}

// By value: a call that somebody might point to would have to lie in memory.
[[gnu::cold, gnu::noinline]] peal_error refuse(Flaw flaw, const peal_group& group, Call call) {
  const std::string name = names::operation(call.operation);
  switch (flaw) {
    case Flaw::kRoot:
      return fail(PEAL_ERR_BAD_ROOT, "%s: root %u, but the group has the ranks 0 to %u",
                  name.c_str(), call.root, group.size - 1);
    case Flaw::kLength:
      return fail(PEAL_ERR_BAD_LENGTH, "%s: blocks of %zu bytes, the limit is %u", name.c_str(),
                  call.block_bytes, UINT32_MAX);
    case Flaw::kOverlap:
      return fail(PEAL_ERR_INVALID_ARGUMENT,
                  "%s: the send buffer %p and the receive buffer %p overlap: use PEAL_IN_PLACE",
                  name.c_str(), call.send.address, call.receive.address);
    case Flaw::kNone:
      break;
  }
  return PEAL_OK;
}

// What the card is told.
[[gnu::always_inline]] inline peal_error describe_posting(peal_group& group, const Call& call,
                                                          Posting* posting) {
  const Flaw flaw = flaw_of(group, call);
  if (flaw != Flaw::kNone) [[unlikely]]
    return refuse(flaw, group, call);
  Name receive;
  Name send;
  const uint64_t version = memory_version(*group.context);
  peal_error error = name_buffer<Side::kReceive>(group, version, call.operation, call.receive,
                                                 call.in_place, &receive);
  if (error != PEAL_OK) return error;
  error = name_buffer<Side::kSend>(group, version, call.operation, call.send, false, &send);
  if (error != PEAL_OK) return error;
  const peal_algorithm algorithm = group.choice.algorithm(call.operation, call.block_bytes);
  posting->operation = static_cast<uint8_t>(call.operation);
  posting->algorithm = static_cast<uint8_t>(algorithm);
  posting->flags = static_cast<uint16_t>(call.in_place ? PEAL_SUBMIT_IN_PLACE : 0);
  posting->send_offset = send.offset;
  posting->receive_offset = receive.offset;
  posting->block_bytes = call.block_bytes;
  posting->send_key = send.key;
  posting->receive_key = receive.key;
  posting->root = call.root;
  return PEAL_OK;
}

// Inlined into the calls that do not wait, where every instruction counts (tools/host-cost).
[[gnu::always_inline]] inline peal_error post_call(peal_group& group, const Call& call,
                                                   peal_request** request) {
  Posting posting = {};
  const peal_error error = describe_posting(group, call, &posting);
  return error == PEAL_OK ? submit(group, posting, request) : error;
}

peal_error post(peal_group& group, const Call& call, peal_request** request) {
  return post_call(group, call, request);
}

Buffer whole(const Extent& extent) {
  return {reinterpret_cast<const void*>(extent.start), extent.bytes};
}

// What is wrong whatever memory is registered; else the memory from first to last byte.
peal_error check_blocks(const peal_group& group, const PartsCall& call, Extent* receive,
                        Extent* send) {
  const std::string name = names::operation(call.operation);
  const Blocks received = receive_blocks(group, call);
  peal_error error = measure_blocks(name.c_str(), received, receive);
  if (error != PEAL_OK) return error;
  const Blocks sent = send_blocks(group, call);
  if (sent.count != 0) error = measure_blocks(name.c_str(), sent, send);
  if (error != PEAL_OK || send->bytes == 0 || receive->bytes == 0) return error;
  if (!overlap(whole(*send), whole(*receive)) || !blocks_overlap(sent, received)) return PEAL_OK;
  return fail(PEAL_ERR_INVALID_ARGUMENT,
              "%s: blocks of the send buffer %p and of the receive buffer %p overlap: use "
              "PEAL_IN_PLACE",
              name.c_str(), call.send, call.receive);
}

// The group's first operation of this kind brings the memory of all of them. What it has named
// already makes no room for it.
peal_error make_part_tables(peal_group& group, const Posting& named) {
  if (group.part_tables.made()) return PEAL_OK;
  const uint32_t parts = 2 * group.size;
  HeldKeys keys;
  for (const uint32_t key : {named.send_key, named.receive_key})
    keys.hold(group.context->cache, key);
  Allocation memory;
  const peal_error error =
      allocate_memory(*group.context, PartTables::bytes_of(group.outstanding_max, parts), &memory);
  if (error == PEAL_OK) group.part_tables.make(memory, group.outstanding_max, parts);
  return error;
}

// The algorithm goes by what all ranks know: of an all-to-all they know no common length.
uint64_t deciding_bytes(const PartsCall& call, const Extent& receive) {
  return call.operation == PEAL_OPERATION_ALLGATHERV ? receive.longest : 0;
}

// What the card is told, but for the table.
peal_error name_blocks(peal_group& group, const PartsCall& call, Posting* posting) {
  Extent receive;
  Extent send;
  peal_error error = check_blocks(group, call, &receive, &send);
  if (error != PEAL_OK) return error;
  posting->operation = call.operation;
  posting->algorithm =
      static_cast<uint8_t>(group.choice.algorithm(call.operation, deciding_bytes(call, receive)));
  posting->flags = call.in_place() ? PEAL_SUBMIT_IN_PLACE : 0;
  Name receive_name;
  Name send_name;
  const uint64_t version = memory_version(*group.context);
  error = name_buffer<Side::kReceive>(group, version, call.operation, whole(receive),
                                      call.in_place(), &receive_name);
  if (error != PEAL_OK) return error;
  error = name_buffer<Side::kSend>(group, version, call.operation, whole(send), false, &send_name);
  if (error != PEAL_OK) return error;
  posting->receive_key = receive_name.key;
  posting->send_key = send_name.key;
  // Else the table says where the blocks lie.
  if (!call.sends_parts()) posting->send_offset = send_name.offset;
  return PEAL_OK;
}

void write_table(const peal_group& group, const PartsCall& call, peal_part* parts) {
  if (call.sends_parts()) {
    write_parts(send_blocks(group, call), group.send_hit.region.start, parts);
    parts += group.size;
  }
  write_parts(receive_blocks(group, call), group.receive_hit.region.start, parts);
}

void name_table(const peal_group& group, uint32_t table, Posting* posting) {
  posting->member = group.member;
  posting->parts_key = group.part_tables.key();
  posting->parts_offset = group.part_tables.offset(table);
}

void use_table(peal_group& group, const PartsCall& call, uint32_t table, Posting* posting) {
  write_table(group, call, group.part_tables.at(table));
  name_table(group, table, posting);
}

// What the card is told of what is sent, without a word; see tell_in_one_pass().
[[gnu::always_inline]] inline bool tell_sent(peal_group& group, uint64_t version,
                                             const PartsCall& call, peal_part* parts,
                                             Posting* posting, Extent* sent) {
  const Region* const region = last_region<Side::kSend>(group, version, false);
  if (region == nullptr) [[unlikely]]
    return false;
  posting->send_key = region->key;
  if (call.operation == PEAL_OPERATION_ALLTOALLV) {
    if (call.sent.bytes == nullptr) [[unlikely]]
      return false;
    const Blocks blocks = {call.send, call.sent.bytes, call.sent.offsets, group.size};
    return write_parts_in(*region, blocks, false, parts, sent);
  }
  sent->start = reinterpret_cast<uintptr_t>(call.send);
  sent->bytes = call.received.bytes[group.rank];
  posting->send_offset = region->offset_of(call.send);
  return sent->bytes != 0 && region->covers(sent->start, sent->bytes);
}

// Looks at all blocks and writes the table in one pass, as long as there is nothing to be said:
// some are not empty, they lie in the memory that served the last call's, those that are sent apart
// from those that are received. Else false, with anything in the table and the posting.
[[gnu::always_inline]] inline bool tell_in_one_pass(peal_group& group, uint64_t version,
                                                    const PartsCall& call, peal_part* parts,
                                                    Posting* posting) {
  const bool pairs = call.operation == PEAL_OPERATION_ALLTOALLV;
  const bool in_place = call.in_place();
  const Region* const region = last_region<Side::kReceive>(group, version, in_place);
  if (region == nullptr || call.received.bytes == nullptr) [[unlikely]]
    return false;
  Extent received;
  Extent sent;
  const Blocks blocks = {call.receive, call.received.bytes, call.received.offsets, group.size};
  peal_part* const received_parts = pairs && !in_place ? parts + group.size : parts;
  if (!write_parts_in(*region, blocks, !pairs, received_parts, &received)) return false;
  if (!in_place) {
    if (!tell_sent(group, version, call, parts, posting, &sent)) return false;
    if (overlap(whole(sent), whole(received))) return false;
  }
  posting->operation = call.operation;
  posting->algorithm =
      static_cast<uint8_t>(group.choice.algorithm(call.operation, deciding_bytes(call, received)));
  posting->flags = in_place ? PEAL_SUBMIT_IN_PLACE : 0;
  posting->receive_key = region->key;
  return true;
}

// Of a group with one table.
peal_error describe_posting(peal_group& group, const PartsCall& call, Posting* posting) {
  peal_error error = name_blocks(group, call, posting);
  if (error == PEAL_OK) error = make_part_tables(group, *posting);
  if (error == PEAL_OK) use_table(group, call, 0, posting);
  return error;
}

// There is room: a table that nobody reads any more.
[[gnu::always_inline]] inline PartTables::Table& free_table(peal_group& group) {
  return group.part_tables.find(
      [](const peal_request& user, uint64_t cookie) { return is_pending(user, cookie); });
}

// Whose the table and the posted request are; the latter is nobody's if `request` is null.
[[gnu::always_inline]] inline void note_user(PartTables::Table& table, peal_request& made,
                                             uint64_t cookie, peal_request** request) {
  table.user = &made;
  table.cookie = cookie;
  hand_out(made, request);
}

// There is room.
peal_error submit_with(peal_group& group, PartTables::Table& table, Posting& posting,
                       peal_request** request) {
  peal_request* made = nullptr;
  const peal_error error = submit_in_room(group, posting, &made);
  if (error != PEAL_OK) return error;
  note_user(table, *made, cookie_of(*made), request);
  return PEAL_OK;
}

// The table that is free, if it was written for this call and there is room; else null.
[[gnu::always_inline]] inline PartTables::Table* known_table(peal_group& group,
                                                             const PartsCall& call) {
  if (!has_room(group)) [[unlikely]]
    return nullptr;
  PartTables::Table& table = free_table(group);
  return table.shape.is_of(call, memory_version(*group.context)) ? &table : nullptr;
}

// The table that is free, written for this call where there is nothing to be said; else null.
[[gnu::always_inline]] inline PartTables::Table* written_table(peal_group& group,
                                                               const PartsCall& call) {
  if (!has_room(group) || !group.part_tables.made()) [[unlikely]]
    return nullptr;
  PartTables::Table& table = free_table(group);
  const uint32_t index = group.part_tables.index_of(table);
  const uint64_t version = memory_version(*group.context);
  Posting& posting = table.shape.posting();
  table.shape.forget();
  posting = {};
  name_table(group, index, &posting);
  if (!tell_in_one_pass(group, version, call, group.part_tables.at(index), &posting)) [[unlikely]]
    return nullptr;
  return table.shape.remember_in_room(call, group.size, version) ? &table : nullptr;
}

// Looks at all blocks, one side after the other, says what is wrong, and writes the table.
// By value, as in refuse().
[[gnu::cold, gnu::noinline]] peal_error post_with_words(peal_group& group, PartsCall call,
                                                        peal_request** request) {
  Posting posting = {};
  peal_error error = name_blocks(group, call, &posting);
  if (error == PEAL_OK) error = check_room(group);
  if (error == PEAL_OK) error = make_part_tables(group, posting);
  if (error != PEAL_OK) return error;
  PartTables::Table& table = free_table(group);
  table.shape.forget();
  use_table(group, call, group.part_tables.index_of(table), &posting);
  table.shape.remember(call, group.size, memory_version(*group.context), posting);
  return submit_with(group, table, posting, request);
}

peal_error post_call(peal_group& group, const PartsCall& call, peal_request** request) {
  PartTables::Table* table = known_table(group, call);
  if (table == nullptr) table = written_table(group, call);
  if (table == nullptr) return post_with_words(group, call, request);
  return submit_with(group, *table, table->shape.posting(), request);
}

peal_error post(peal_group& group, const PartsCall& call, peal_request** request) {
  return post_call(group, call, request);
}

const uint8_t* bytes_at(const void* address) { return static_cast<const uint8_t*>(address); }

// What a program of it is to do.
peal_error describe_operation(peal_group& group, const Call& call, Posting* posting,
                              PersistentOperation* operation) {
  const peal_error error = describe_posting(group, call, posting);
  if (error != PEAL_OK) return error;
  // A broadcast's root has but a send buffer.
  const bool sends = call.operation == PEAL_OPERATION_BROADCAST && call.receive.bytes == 0;
  const Buffer& written = sends ? call.send : call.receive;
  operation->operation = call.operation;
  operation->root = call.root;
  operation->block_bytes = call.block_bytes;
  operation->in_place = call.in_place;
  operation->send = bytes_at(call.send.address);
  operation->receive = const_cast<uint8_t*>(bytes_at(written.address));
  operation->receive_bytes = written.bytes;
  if (call.operation != PEAL_OPERATION_ALLTOALL) return PEAL_OK;
  const uint8_t* const from = call.in_place ? operation->receive : operation->send;
  for (uint32_t rank = 0; rank < group.size; rank++) {
    const size_t offset = rank * call.block_bytes;
    operation->sends.push_back({from + offset, call.block_bytes});
    operation->receives.push_back({operation->receive + offset, call.block_bytes});
  }
  return PEAL_OK;
}

std::vector<PersistentPart> parts_of(const Blocks& blocks) {
  std::vector<PersistentPart> parts;
  size_t behind = 0;
  for (uint32_t i = 0; i < blocks.count; i++) {
    const size_t offset = blocks.offsets != nullptr ? blocks.offsets[i] : behind;
    parts.push_back({bytes_at(blocks.address) + offset, blocks.bytes[i]});
    behind += blocks.bytes[i];
  }
  return parts;
}

peal_error describe_operation(peal_group& group, const PartsCall& call, Posting* posting,
                              PersistentOperation* operation) {
  peal_error error = name_blocks(group, call, posting);
  Extent receive;
  if (error == PEAL_OK) {
    error = measure_blocks(names::operation(call.operation).c_str(), receive_blocks(group, call),
                           &receive);
  }
  if (error != PEAL_OK) return error;
  operation->operation = call.operation;
  operation->in_place = call.in_place();
  operation->receive = reinterpret_cast<uint8_t*>(receive.start);
  operation->receive_bytes = receive.bytes;
  operation->receives = parts_of(receive_blocks(group, call));
  if (call.sends_parts()) {
    operation->sends = parts_of(send_blocks(group, call));
  } else if (call.operation == PEAL_OPERATION_ALLGATHERV) {
    const PersistentPart own =
        call.in_place() ? operation->receives[group.rank]
                        : PersistentPart{bytes_at(call.send), call.received.bytes[group.rank]};
    operation->sends.assign(group.size, own);
  } else {
    operation->sends = operation->receives;
  }
  return PEAL_OK;
}

// The three forms of every call. `describe` makes a Call of the group and the caller's arguments.
template <auto describe, typename... Arguments>
peal_error run(const char* name, peal_group* group, Arguments... arguments) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: group is null", name);
  return guarded(*group->context, name, [&] {
    Lock lock(group->context->mutex);
    if (group->outstanding >= group->outstanding_max) {
      wait_outstanding(*group->context, *group, group->outstanding_max - 1, lock);
    }
    peal_request* request = nullptr;
    peal_error error = post(*group, describe(*group, arguments...), &request);
    if (error != PEAL_OK) return error;
    wait_done(*request->context, *request, kForever, lock);
    error = outcome(*request);
    release_request(*request);
    return error;
  });
}

template <auto describe, typename... Arguments>
[[gnu::always_inline]] inline peal_error start(const char* name, peal_group* group,
                                               peal_request** request, Arguments... arguments) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: group is null", name);
  peal_context& context = *group->context;
  const peal_error error = guarded(context, name, [&] {
    const std::lock_guard lock(context.mutex);
    return post_call(*group, describe(*group, arguments...), request);
  });
  if (error != PEAL_OK && request != nullptr) [[unlikely]]
    *request = nullptr;
  return error;
}

// How post_again() ends seldom.
[[gnu::cold, gnu::noinline]] peal_error refuse_and_unlock(peal_context& context,
                                                          peal_request** request) {
  const std::lock_guard lock(context.mutex, std::adopt_lock);
  if (request != nullptr) *request = nullptr;
  return refuse_full_ring(context);
}
[[gnu::cold, gnu::noinline]] peal_error wake_card_and_unlock(peal_context& context) {
  return guarded([&] {
    const std::lock_guard lock(context.mutex, std::adopt_lock);
    wake_card(context);
    return PEAL_OK;
  });
}
[[gnu::cold, gnu::noinline]] peal_error wake_next(peal_context& context) {
  context.mutex.wake_one();
  return PEAL_OK;
}

// Posts what this table was written for. There is room, and the lock is held, which this gives
// back.
[[gnu::always_inline]] inline peal_error post_again(peal_group& group, PartTables::Table& table,
                                                    peal_request** request) {
  peal_context& context = *group.context;
  peal_request& made = *context.free_requests;
  peal_request* const next_free = made.next_free;
  const uint64_t sequence = group.next_sequence;
  const uint64_t cookie = cookie_of(made);
  if (!post_unheard(group, table.shape.posting(), sequence, made)) [[unlikely]]
    return refuse_and_unlock(context, request);
  context.free_requests = next_free;
  group.next_sequence = sequence + 1;
  note_user(table, made, cookie, request);
  if (peal_host_ring_card_sleeps(&context.ring) != 0) [[unlikely]]
    return wake_card_and_unlock(context);
  return context.mutex.release() ? wake_next(context) : PEAL_OK;
}

// The calls that do not wait, of operations whose blocks differ in length. Nearly always the lock
// is free and a table written. For that case nothing is called that returns here, or up to eight
// arguments would be saved before it: what else there may be is a function of the same arguments,
// which is jumped to (tools/host-cost).
template <const char* name, auto describe, typename = decltype(describe)>
struct StartParts;
template <const char* name, auto describe, typename... Arguments>
struct StartParts<name, describe, PartsCall (*)(const peal_group&, Arguments...)> {
  [[gnu::always_inline]] static peal_error start(peal_group* group, Arguments... arguments,
                                                 peal_request** request) {
    if (group == nullptr || !group->context->owner.seems_own() || !group->context->mutex.try_lock())
        [[unlikely]]
      return start_as_any(group, arguments..., request);
    PartTables::Table* const table = known_table(*group, describe(*group, arguments...));
    if (table == nullptr) [[unlikely]]
      return post_anew_and_unlock(group, arguments..., request);
    return post_again(*group, *table, request);
  }

 private:
  [[gnu::noinline]] static peal_error start_as_any(peal_group* group, Arguments... arguments,
                                                   peal_request** request) {
    return host::start<describe>(name, group, request, arguments...);
  }
  // The lock is held.
  [[gnu::noinline]] static peal_error post_anew_and_unlock(peal_group* group,
                                                           Arguments... arguments,
                                                           peal_request** request) {
    PartTables::Table* const table = written_table(*group, describe(*group, arguments...));
    if (table == nullptr) [[unlikely]]
      return post_with_words_and_unlock(group, arguments..., request);
    return post_again(*group, *table, request);
  }
  [[gnu::cold, gnu::noinline]] static peal_error post_with_words_and_unlock(
      peal_group* group, Arguments... arguments, peal_request** request) {
    const peal_error error = guarded([&] {
      const std::lock_guard lock(group->context->mutex, std::adopt_lock);
      return post_with_words(*group, describe(*group, arguments...), request);
    });
    if (error != PEAL_OK && request != nullptr) *request = nullptr;
    return error;
  }
};

constexpr char kIallgatherv[] = "peal_iallgatherv";
constexpr char kIalltoallv[] = "peal_ialltoallv";
using StartAllgatherv = StartParts<kIallgatherv, allgatherv>;
using StartAlltoallv = StartParts<kIalltoallv, alltoallv>;

template <auto describe, typename... Arguments>
peal_error init(const char* name, peal_group* group, peal_request** request,
                Arguments... arguments) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: group is null", name);
  if (request == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: request is null", name);
  *request = nullptr;
  return guarded(*group->context, name, [&] {
    const auto describe_one = [&](peal_group& own, Posting* posting) {
      return describe_posting(own, describe(own, arguments...), posting);
    };
    const auto describe_program = [&](peal_group& parent, Posting* posting,
                                      PersistentOperation* operation) {
      return describe_operation(parent, describe(parent, arguments...), posting, operation);
    };
    return make_persistent(*group, describe_one, describe_program, request);
  });
}

}  // namespace
}  // namespace peal::host

namespace host = peal::host;

extern "C" peal_error peal_barrier(peal_group* group) {
  return host::run<host::barrier>("peal_barrier", group);
}

extern "C" peal_error peal_ibarrier(peal_group* group, peal_request** request) {
  return host::start<host::barrier>("peal_ibarrier", group, request);
}

extern "C" peal_error peal_bcast(peal_group* group, void* buffer, size_t bytes, uint32_t root) {
  return host::run<host::broadcast>("peal_bcast", group, buffer, bytes, root);
}

extern "C" peal_error peal_ibcast(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                                  peal_request** request) {
  return host::start<host::broadcast>("peal_ibcast", group, request, buffer, bytes, root);
}

extern "C" peal_error peal_allgather(peal_group* group, const void* send, void* receive,
                                     size_t block_bytes) {
  return host::run<host::allgather>("peal_allgather", group, send, receive, block_bytes);
}

extern "C" peal_error peal_iallgather(peal_group* group, const void* send, void* receive,
                                      size_t block_bytes, peal_request** request) {
  return host::start<host::allgather>("peal_iallgather", group, request, send, receive,
                                      block_bytes);
}

extern "C" peal_error peal_alltoall(peal_group* group, const void* send, void* receive,
                                    size_t block_bytes) {
  return host::run<host::alltoall>("peal_alltoall", group, send, receive, block_bytes);
}

extern "C" peal_error peal_ialltoall(peal_group* group, const void* send, void* receive,
                                     size_t block_bytes, peal_request** request) {
  return host::start<host::alltoall>("peal_ialltoall", group, request, send, receive, block_bytes);
}

extern "C" peal_error peal_allgatherv(peal_group* group, const void* send, void* receive,
                                      const size_t* bytes, const size_t* offsets) {
  return host::run<host::allgatherv>("peal_allgatherv", group, send, receive, bytes, offsets);
}

extern "C" peal_error peal_iallgatherv(peal_group* group, const void* send, void* receive,
                                       const size_t* bytes, const size_t* offsets,
                                       peal_request** request) {
  return host::StartAllgatherv::start(group, send, receive, bytes, offsets, request);
}

extern "C" peal_error peal_alltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                                     const size_t* send_offsets, void* receive,
                                     const size_t* receive_bytes, const size_t* receive_offsets) {
  return host::run<host::alltoallv>("peal_alltoallv", group, send, send_bytes, send_offsets,
                                    receive, receive_bytes, receive_offsets);
}

extern "C" peal_error peal_ialltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                                      const size_t* send_offsets, void* receive,
                                      const size_t* receive_bytes, const size_t* receive_offsets,
                                      peal_request** request) {
  return host::StartAlltoallv::start(group, send, send_bytes, send_offsets, receive, receive_bytes,
                                     receive_offsets, request);
}

extern "C" peal_error peal_barrier_init(peal_group* group, peal_request** request) {
  return host::init<host::barrier>("peal_barrier_init", group, request);
}

extern "C" peal_error peal_bcast_init(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                                      peal_request** request) {
  return host::init<host::broadcast>("peal_bcast_init", group, request, buffer, bytes, root);
}

extern "C" peal_error peal_allgather_init(peal_group* group, const void* send, void* receive,
                                          size_t block_bytes, peal_request** request) {
  return host::init<host::allgather>("peal_allgather_init", group, request, send, receive,
                                     block_bytes);
}

extern "C" peal_error peal_alltoall_init(peal_group* group, const void* send, void* receive,
                                         size_t block_bytes, peal_request** request) {
  return host::init<host::alltoall>("peal_alltoall_init", group, request, send, receive,
                                    block_bytes);
}

extern "C" peal_error peal_allgatherv_init(peal_group* group, const void* send, void* receive,
                                           const size_t* bytes, const size_t* offsets,
                                           peal_request** request) {
  return host::init<host::allgatherv>("peal_allgatherv_init", group, request, send, receive, bytes,
                                      offsets);
}

extern "C" peal_error peal_alltoallv_init(peal_group* group, const void* send,
                                          const size_t* send_bytes, const size_t* send_offsets,
                                          void* receive, const size_t* receive_bytes,
                                          const size_t* receive_offsets, peal_request** request) {
  return host::init<host::alltoallv>("peal_alltoallv_init", group, request, send, send_bytes,
                                     send_offsets, receive, receive_bytes, receive_offsets);
}
