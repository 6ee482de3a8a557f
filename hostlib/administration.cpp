// SPDX-License-Identifier: BSD-2-Clause
// The administrative commands; see administration.h.
#include "hostlib/administration.h"

#include <algorithm>
#include <cstring>

#include "base/names.h"
#include "hostlib/error.h"

namespace peal::host {
namespace {

static_assert(PEAL_READ == PEAL_ACCESS_READ && PEAL_WRITE == PEAL_ACCESS_WRITE);

peal_admin_command make_command(peal_admin_opcode opcode) {
  peal_admin_command command = {};
  command.version = PEAL_ABI_VERSION;
  command.bytes = PEAL_ADMIN_BYTES;
  command.opcode = opcode;
  return command;
}

}  // namespace

const char* command_name(uint16_t opcode) {
  const names::Row* row = names::row_of(names::kAdminOpcodes, opcode);
  return row != nullptr ? row->name : "command";
}

peal_error verdict(const peal_admin_command& command, const peal_admin_reply& reply) {
  if (reply.status == PEAL_STATUS_OK) return PEAL_OK;
  return refused(command_name(command.opcode), reply.status);
}

peal_admin_command open_command(uint32_t card_index) {
  peal_admin_command command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  command.u.open.card_index = card_index;
  return command;
}

peal_admin_command close_command() { return make_command(PEAL_ADMIN_CLOSE_CONTEXT); }

peal_admin_command register_command(peal_memory_kind kind, const void* address, size_t bytes,
                                    uint32_t access) {
  peal_admin_command command = make_command(PEAL_ADMIN_REGISTER_MEMORY);
  command.u.register_memory.kind = kind;
  command.u.register_memory.access = access;
  command.u.register_memory.address = reinterpret_cast<uintptr_t>(address);
  command.u.register_memory.bytes = bytes;
  return command;
}

peal_error register_memory(Transport& transport, void* address, size_t bytes, uint32_t access,
                           uint32_t* key) {
  peal_admin_reply reply = {};
  const peal_error error =
      transport.ask(register_command(PEAL_MEMORY_PROCESS, address, bytes, access), &reply);
  if (error == PEAL_OK) *key = reply.u.register_memory.key;
  return error;
}

peal_error unregister_memory(Transport& transport, uint32_t key) {
  peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  peal_admin_reply reply = {};
  command.u.unregister_memory.key = key;
  return transport.ask(command, &reply);
}

peal_error reserve_group(Transport& transport, uint32_t ranks, uint32_t rank,
                         peal_peer_address* address) {
  peal_admin_command command = make_command(PEAL_ADMIN_RESERVE_GROUP);
  peal_admin_reply reply = {};
  command.u.reserve.ranks = ranks;
  command.u.reserve.rank = rank;
  const peal_error error = transport.ask(command, &reply);
  if (error == PEAL_OK) *address = reply.u.reserve.address;
  return error;
}

namespace {

// Those that the next command has no room for.
peal_error add_peers(Transport& transport, uint32_t member, const peal_peer_address* peers,
                     uint32_t peer_count) {
  peal_admin_command command = make_command(PEAL_ADMIN_ADD_PEERS);
  peal_admin_reply reply = {};
  command.u.add_peers.member = member;
  command.u.add_peers.peer_count = peer_count;
  memcpy(command.u.add_peers.peers, peers, sizeof(*peers) * peer_count);
  return transport.ask(command, &reply);
}

}  // namespace

peal_error connect_group(Transport& transport, uint32_t member, uint64_t group,
                         uint32_t choice_hash, const peal_peer_address* peers, uint32_t peer_count,
                         const AddressTables::Place& addresses) {
  const uint32_t named = std::min<uint32_t>(peer_count, PEAL_PEERS_PER_COMMAND);
  if (peer_count > named) {
    const peal_error error = add_peers(transport, member, peers + named, peer_count - named);
    if (error != PEAL_OK) return error;
  }
  peal_admin_command command = make_command(PEAL_ADMIN_CONNECT_GROUP);
  peal_admin_reply reply = {};
  command.u.connect.member = member;
  command.u.connect.group = group;
  command.u.connect.choice_hash = choice_hash;
  command.u.connect.peer_count = peer_count;
  command.u.connect.addresses_key = addresses.key;
  command.u.connect.addresses_offset = addresses.offset;
  memcpy(command.u.connect.peers, peers, sizeof(*peers) * named);
  return transport.ask(command, &reply);
}

peal_error abandon_group(Transport& transport, uint32_t member) {
  peal_admin_command command = make_command(PEAL_ADMIN_ABANDON_GROUP);
  peal_admin_reply reply = {};
  command.u.abandon.member = member;
  return transport.ask(command, &reply);
}

peal_error commit_program(Transport& transport, const peal_commit_program& request,
                          uint32_t* program, uint32_t* starts) {
  peal_admin_command command = make_command(PEAL_ADMIN_COMMIT_PROGRAM);
  peal_admin_reply reply = {};
  command.u.commit_program = request;
  const peal_error error = transport.ask(command, &reply);
  if (error != PEAL_OK) return error;
  *program = reply.u.commit_program.program;
  *starts = reply.u.commit_program.starts;
  return PEAL_OK;
}

peal_error free_program(Transport& transport, uint32_t program) {
  peal_admin_command command = make_command(PEAL_ADMIN_FREE_PROGRAM);
  peal_admin_reply reply = {};
  command.u.free_program.program = program;
  return transport.ask(command, &reply);
}

peal_error read_counters(Transport& transport, uint32_t first, peal_read_counters_reply* part) {
  peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  peal_admin_reply reply = {};
  command.u.counters.first = first;
  const peal_error error = transport.ask(command, &reply);
  if (error != PEAL_OK) return error;
  *part = reply.u.counters;
  if (part->count <= PEAL_COUNTERS_PER_REPLY) return PEAL_OK;
  return fail(PEAL_ERR_CARD_ANSWER, "%u counters in one reply", part->count);
}

}  // namespace peal::host
