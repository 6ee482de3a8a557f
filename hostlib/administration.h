// SPDX-License-Identifier: BSD-2-Clause
// The administrative commands of a context (abi/admin.h), each described once: what goes into it,
// and what is taken out of the reply. How it gets to the card is the transport's business.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/admin.h"
#include "hostlib/address_tables.h"
#include "hostlib/transport.h"

namespace peal::host {

// What the command does, in an error's words.
const char* command_name(uint16_t opcode);
// The card's verdict on that command: OK, or an error that names the command and the status.
peal_error verdict(const peal_admin_command& command, const peal_admin_reply& reply);

// For transports, which also take what comes beside the reply.
peal_admin_command open_command(uint32_t card_index);
peal_admin_command close_command();
// `address` is null where the card makes the memory (PEAL_MEMORY_ALLOCATE).
peal_admin_command register_command(peal_memory_kind kind, const void* address, size_t bytes,
                                    uint32_t access);

// `address`, `bytes` long, stays the caller's; access is PEAL_ACCESS_*.
peal_error register_memory(Transport& transport, void* address, size_t bytes, uint32_t access,
                           uint32_t* key);
peal_error unregister_memory(Transport& transport, uint32_t key);
peal_error reserve_group(Transport& transport, uint32_t ranks, uint32_t rank,
                         peal_peer_address* address);
// `peers` in the order of peal_connect_group, at most PEAL_PEERS_MAX; where a table of all
// ranks' addresses lies, if there is one.
peal_error connect_group(Transport& transport, uint32_t member, uint64_t group,
                         uint32_t choice_hash, const peal_peer_address* peers, uint32_t peer_count,
                         const AddressTables::Place& addresses);
peal_error abandon_group(Transport& transport, uint32_t member);
// A program in memory of this context; *program is its handle on the card, which takes so many
// starts of it at a time.
peal_error commit_program(Transport& transport, const peal_commit_program& request,
                          uint32_t* program, uint32_t* starts);
peal_error free_program(Transport& transport, uint32_t program);
// One reply's worth, from index `first` on; its count is right.
peal_error read_counters(Transport& transport, uint32_t first, peal_read_counters_reply* part);

}  // namespace peal::host
