// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/submission.h"

#include "abi/admin.h"
#include "firmware/group/member.h"
#include "firmware/host/keys.h"

namespace peal::p2p {
namespace {

uint8_t operation_of(Kind kind) {
  switch (kind) {
    case Kind::kSend:
      return PEAL_OPERATION_SEND;
    case Kind::kReceive:
      return PEAL_OPERATION_RECEIVE;
    case Kind::kPut:
      return PEAL_OPERATION_PUT;
    case Kind::kGet:
      return PEAL_OPERATION_GET;
    default:
      return PEAL_OPERATION_FENCE;
  }
}

// What an operation uses of its entry; the rest must be zero.
struct Uses {
  uint16_t flags;
  bool tag;
  bool bytes;
  bool send;
  bool receive;
};
Uses uses_of(uint8_t operation) {
  switch (operation) {
    case PEAL_OPERATION_SEND:
      return {0, true, true, true, false};
    case PEAL_OPERATION_RECEIVE:
      return {PEAL_SUBMIT_ANY_TAG, true, true, false, true};
    case PEAL_OPERATION_PUT:
    case PEAL_OPERATION_GET:
      return {0, false, true, true, true};
    default:
      return {0, false, false, false, false};
  }
}

peal_status check_fields(const peal_submission& entry) {
  const Uses uses = uses_of(entry.operation);
  if ((entry.flags & ~uint32_t{uses.flags}) != 0) return PEAL_STATUS_BAD_FLAGS;
  if ((entry.reserved[0] | entry.reserved[1] | entry.reserved[2]) != 0) {
    return PEAL_STATUS_BAD_FLAGS;
  }
  if (entry.algorithm != PEAL_ALGORITHM_NONE) return PEAL_STATUS_BAD_ALGORITHM;
  const bool tagged = uses.tag && (entry.flags & PEAL_SUBMIT_ANY_TAG) == 0;
  if (!tagged && entry.sequence != 0) return PEAL_STATUS_BAD_SEQUENCE;
  if (!uses.bytes && entry.block_bytes != 0) return PEAL_STATUS_BAD_LENGTH;
  if (!uses.send && (entry.send_key != 0 || entry.send_offset != 0)) return PEAL_STATUS_BAD_KEY;
  if (!uses.receive && (entry.receive_key != 0 || entry.receive_offset != 0)) {
    return PEAL_STATUS_BAD_KEY;
  }
  return PEAL_STATUS_OK;
}

bool reads_own(uint8_t operation) {
  return operation == PEAL_OPERATION_SEND || operation == PEAL_OPERATION_PUT;
}

// The own memory; none where there are no bytes.
peal_status check_own(Card& card, ContextId context, const peal_submission& entry,
                      HostAddress* address, uint32_t* key) {
  *address = {};
  *key = 0;
  if (entry.operation == PEAL_OPERATION_FENCE || entry.block_bytes == 0) return PEAL_STATUS_OK;
  const bool reads = reads_own(entry.operation);
  *key = reads ? entry.send_key : entry.receive_key;
  return check_range(card, context, *key, reads ? entry.send_offset : entry.receive_offset,
                     entry.block_bytes, reads ? PEAL_ACCESS_READ : PEAL_ACCESS_WRITE, address);
}

bool start_entry(Card& card, Member& member, const peal_submission& entry,
                 const HostAddress& address, uint32_t key) {
  const Ticket ticket = {Owner::kHost, 0, 0, entry.cookie};
  const uint64_t bytes = entry.block_bytes;
  switch (entry.operation) {
    case PEAL_OPERATION_SEND:
      return start_send(card, member, {entry.root, address, bytes, entry.sequence, key}, ticket);
    case PEAL_OPERATION_RECEIVE: {
      const bool any = (entry.flags & PEAL_SUBMIT_ANY_TAG) != 0;
      return start_receive(card, member, {entry.root, address, bytes, entry.sequence, any, key},
                           ticket);
    }
    case PEAL_OPERATION_PUT: {
      peal_descriptor what = {};
      what.queue = kNoQueue;
      what.rank = entry.root;
      what.offset = address.offset;
      what.remote_offset = entry.receive_offset;
      what.bytes = bytes;
      what.key = key;
      what.remote_key = entry.receive_key;
      return start_put(card, member,
                       {.what = what, .origin = kNoProgram, .region = address.region, .index = 0},
                       ticket);
    }
    case PEAL_OPERATION_GET:
      return start_get(card, member,
                       {entry.root, address, bytes, entry.send_key, entry.send_offset, key},
                       ticket);
    default:
      return start_fence(card, member, {entry.root}, ticket);
  }
}

}  // namespace

peal_status submit(Card& card, ContextId context, const peal_submission& entry) {
  Member* member = find_member(card, entry.member);
  if (member == nullptr || member->context != context || member->phase != MemberPhase::kActive) {
    return PEAL_STATUS_BAD_GROUP;
  }
  const peal_status fields = check_fields(entry);
  if (fields != PEAL_STATUS_OK) return fields;
  if (member->destroying) return PEAL_STATUS_CLOSED;
  const bool all = entry.operation == PEAL_OPERATION_FENCE && entry.root == PEAL_NO_RANK;
  if (!all && !is_reachable(*member, entry.root)) return PEAL_STATUS_BAD_RANK;
  HostAddress address;
  uint32_t key = 0;
  const peal_status own = check_own(card, context, entry, &address, &key);
  if (own != PEAL_STATUS_OK) return own;
  if (!start_entry(card, *member, entry, address, key)) return PEAL_STATUS_TOO_MANY;
  ++card.contexts[context].outstanding;
  return PEAL_STATUS_OK;
}

void complete(Card& card, const Request& over) {
  const bool ok = over.status == PEAL_STATUS_OK;
  const bool counts = ok || over.status == PEAL_STATUS_TRUNCATED;
  count(card, ok ? PEAL_COUNTER_OPERATIONS_COMPLETED : PEAL_COUNTER_OPERATIONS_FAILED);
  const Member& member = card.members[over.member];
  Context& context = card.contexts[member.context];
  --context.outstanding;
  if (context.phase != ContextPhase::kOpen) return;  // nobody listens any more
  peal_completion entry = {};
  entry.cookie = over.ticket.cookie;
  entry.sequence = over.any_tag ? 0 : over.tag;
  entry.card_ns = card.now - over.accepted_ns;
  entry.member = member.membership.handle;
  entry.failed_rank = over.failed_rank;
  entry.status = over.status;
  entry.operation = operation_of(over.kind);
  entry.bytes = counts ? over.bytes : 0;
  entry.tag = over.kind == Kind::kReceive && counts ? over.tag : 0;
  card.port->complete(member.context, entry);
}

}  // namespace peal::p2p
