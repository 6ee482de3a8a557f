// SPDX-License-Identifier: BSD-2-Clause
// Every command is checked in the same order: length and version, opcode, reserved fields and the
// bytes behind the opcode's own, then its values, then what the card says.
#include "emulator/common/admin.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace peal::emulator {
namespace {

static_assert(kRegionsPerCard <= 0xffffu, "a RegionId has 16 bits of index");

// Bytes of the union that belong to the opcode; all behind them must be zero, so that they can mean
// something later. Negative for an unknown opcode.
int body_bytes(uint16_t opcode) {
  switch (opcode) {
    case PEAL_ADMIN_OPEN_CONTEXT:
      return sizeof(peal_open_context);
    case PEAL_ADMIN_CLOSE_CONTEXT:
      return 0;
    case PEAL_ADMIN_REGISTER_MEMORY:
      return sizeof(peal_register_memory);
    case PEAL_ADMIN_UNREGISTER_MEMORY:
      return sizeof(peal_unregister_memory);
    case PEAL_ADMIN_RESERVE_GROUP:
      return sizeof(peal_reserve_group);
    case PEAL_ADMIN_CONNECT_GROUP:
      return sizeof(peal_connect_group);
    case PEAL_ADMIN_ABANDON_GROUP:
      return sizeof(peal_abandon_group);
    case PEAL_ADMIN_ADD_PEERS:
      return sizeof(peal_add_peers);
    case PEAL_ADMIN_READ_COUNTERS:
      return sizeof(peal_read_counters);
    case PEAL_ADMIN_COMMIT_PROGRAM:
      return sizeof(peal_commit_program);
    case PEAL_ADMIN_FREE_PROGRAM:
      return sizeof(peal_free_program);
    default:
      return -1;
  }
}

bool all_zero(const uint8_t* bytes, size_t length) {
  return std::all_of(bytes, bytes + length, [](uint8_t byte) { return byte == 0; });
}

// The opcode's own reserved fields.
bool reserved_is_zero(const peal_admin_command& command) {
  switch (command.opcode) {
    case PEAL_ADMIN_OPEN_CONTEXT:
      return command.u.open.reserved == 0;
    case PEAL_ADMIN_UNREGISTER_MEMORY:
      return command.u.unregister_memory.reserved == 0;
    case PEAL_ADMIN_ABANDON_GROUP:
      return command.u.abandon.reserved == 0;
    case PEAL_ADMIN_READ_COUNTERS:
      return command.u.counters.reserved == 0;
    case PEAL_ADMIN_FREE_PROGRAM:
      return command.u.free_program.reserved == 0;
    default:
      return true;
  }
}

// What submissions may name.
bool takes_back(uint16_t opcode) {
  return opcode == PEAL_ADMIN_UNREGISTER_MEMORY || opcode == PEAL_ADMIN_FREE_PROGRAM;
}

peal_status check_envelope(const peal_admin_command& command, uint32_t received_bytes) {
  if (received_bytes != PEAL_ADMIN_BYTES || command.bytes != PEAL_ADMIN_BYTES ||
      command.version != PEAL_ABI_VERSION)
    return PEAL_STATUS_BAD_VERSION;
  const int body = body_bytes(command.opcode);
  if (body < 0) return PEAL_STATUS_BAD_OPCODE;
  if (command.reserved != 0 || !reserved_is_zero(command) ||
      !all_zero(command.u.bytes_ + body, sizeof(command.u.bytes_) - static_cast<size_t>(body)))
    return PEAL_STATUS_BAD_FLAGS;
  return PEAL_STATUS_OK;
}

}  // namespace

void Admin::refuse(const peal_admin_command& command, peal_status status, peal_admin_reply* reply) {
  std::memset(reply, 0, sizeof(*reply));
  reply->version = PEAL_ABI_VERSION;
  reply->opcode = command.opcode;
  reply->bytes = PEAL_ADMIN_BYTES;
  reply->tag = command.tag;
  reply->status = status;
}

peal_status Admin::execute(const peal_admin_command& command, uint32_t received_bytes,
                           ContextId context, MemoryProvider& provider, TimeNs now,
                           peal_admin_reply* reply) {
  counts_.commands++;
  refuse(command, PEAL_STATUS_OK, reply);
  peal_status status = check_envelope(command, received_bytes);
  if (status == PEAL_STATUS_OK) status = dispatch(command, context, provider, now, reply);
  if (status != PEAL_STATUS_OK) {
    counts_.refused++;
    refuse(command, status, reply);
  }
  return status;
}

peal_status Admin::dispatch(const peal_admin_command& command, ContextId context,
                            MemoryProvider& provider, TimeNs now, peal_admin_reply* reply) {
  if (command.opcode == PEAL_ADMIN_OPEN_CONTEXT) {
    if (context != kNoContext) return PEAL_STATUS_BUSY;
    return open_context(provider, now, &reply->u.open);
  }
  // A context of another provider is nobody's business.
  if (context >= kContexts || slots_[context].state == SlotState::kFree ||
      slots_[context].provider != &provider)
    return PEAL_STATUS_CLOSED;
  if (command.opcode == PEAL_ADMIN_CLOSE_CONTEXT) return close_for(context, now);
  if (!is_open(context)) return PEAL_STATUS_CLOSED;
  // What was submitted before may be about to use it.
  if (takes_back(command.opcode)) {
    if (!windows_.take_submitted(context, now)) return PEAL_STATUS_BUSY;
    if (!is_open(context)) return PEAL_STATUS_CLOSED;
  }
  switch (command.opcode) {
    case PEAL_ADMIN_REGISTER_MEMORY:
      return register_memory(context, command.u.register_memory, provider,
                             &reply->u.register_memory);
    case PEAL_ADMIN_UNREGISTER_MEMORY:
      return unregister_memory(context, command.u.unregister_memory);
    case PEAL_ADMIN_RESERVE_GROUP:
      return reserve_group(context, command.u.reserve, provider, now, &reply->u.reserve);
    case PEAL_ADMIN_CONNECT_GROUP:
      return card_connect_group(card_, context, command.u.connect, now);
    case PEAL_ADMIN_ADD_PEERS:
      return card_add_peers(card_, context, command.u.add_peers);
    case PEAL_ADMIN_ABANDON_GROUP:
      return card_abandon_group(card_, context, command.u.abandon.member, now);
    case PEAL_ADMIN_READ_COUNTERS:
      return read_counters(command.u.counters, &reply->u.counters);
    case PEAL_ADMIN_COMMIT_PROGRAM:
      return card_commit_program(card_, context, command.u.commit_program,
                                 &reply->u.commit_program);
    case PEAL_ADMIN_FREE_PROGRAM:
      return card_free_program(card_, context, command.u.free_program.program);
    default:
      return PEAL_STATUS_BAD_OPCODE;
  }
}

peal_status Admin::open_context(MemoryProvider& provider, TimeNs now,
                                peal_open_context_reply* reply) {
  // Those that the card has let go of since the last turn. One whose window is still under way
  // keeps its place: the card knows nothing of windows, so the place is chosen here.
  if (closing_count_ > 0) housekeeping();
  ContextId context = 0;
  while (context < kContexts && slots_[context].state != SlotState::kFree) context++;
  const peal_status status = card_open_context(card_, context, provider.client());
  if (status != PEAL_STATUS_OK) return status;
  Slot& slot = slots_[context];
  uint64_t offset = 0;
  const peal_status opened = provider.open_window(context, &offset);
  if (opened != PEAL_STATUS_OK) {
    card_close_context(card_, context, now);
    assert(card_context_quiet(card_, context));
    return opened;
  }
  slot.provider = &provider;
  slot.state = SlotState::kOpen;
  open_count_++;
  counts_.contexts_opened++;
  reply->context = context;
  reply->window_bytes = kWindowBytes;
  reply->window_offset = offset;
  return PEAL_STATUS_OK;
}

peal_status Admin::close_for(ContextId context, TimeNs now) {
  close_context(context, now);
  return slots_[context].state == SlotState::kFree ? PEAL_STATUS_OK : PEAL_STATUS_BUSY;
}

void Admin::window_ended(ContextId context, WindowEnd why, TimeNs now) {
  close_context(context, now, why == WindowEnd::kReset ? EndReason::kReset : EndReason::kWildIndex);
}

void Admin::close_context(ContextId context, TimeNs now, EndReason reason) {
  if (!is_open(context)) return;
  if (reason == EndReason::kWildIndex) counts_.windows_broken++;
  if (reason == EndReason::kReset) counts_.windows_reset++;
  if (reason == EndReason::kCopyOverdue) counts_.copies_overdue++;
  slots_[context].provider->context_ending(context, reason);
  slots_[context].state = SlotState::kClosing;
  windows_.end(context);
  open_count_--;
  closing_count_++;
  card_close_context(card_, context, now);
  housekeeping();
}

// False while something of its window is under way.
bool Admin::finish_close(ContextId context) {
  Slot& slot = slots_[context];
  regions_.free_owned(context, RegionUse::kMemory);
  if (!windows_.let_go(context)) return false;
  MemoryProvider* provider = slot.provider;
  slot.provider = nullptr;
  slot.state = SlotState::kFree;
  closing_count_--;
  counts_.contexts_closed++;
  provider->context_gone(context);
  return true;
}

bool Admin::housekeeping() {
  bool any = false;
  RegionId channels = kNoRegion;
  while (card_channel_released(card_, &channels)) {
    regions_.free(channels);
    any = true;
  }
  for (ContextId context = 0; closing_count_ > 0 && context < kContexts; context++) {
    if (slots_[context].state != SlotState::kClosing || !card_context_quiet(card_, context))
      continue;
    any |= finish_close(context);
  }
  return any;
}

peal_status Admin::register_memory(ContextId context, const peal_register_memory& request,
                                   MemoryProvider& provider, peal_register_memory_reply* reply) {
  if ((request.access & ~PEAL_ACCESS_FLAGS) != 0) return PEAL_STATUS_BAD_FLAGS;
  if (request.access == 0) return PEAL_STATUS_BAD_ACCESS;
  if (request.bytes == 0) return PEAL_STATUS_BAD_LENGTH;
  if (request.address + request.bytes < request.address) return PEAL_STATUS_BAD_BOUNDS;
  if (request.kind != PEAL_MEMORY_PAGES &&
      (request.first_page_offset != 0 || request.page_shift != 0))
    return PEAL_STATUS_BAD_FLAGS;
  RegionId region = kNoRegion;
  peal_status status = provider.make_memory(request, &region);
  if (status != PEAL_STATUS_OK) return status;
  regions_.set_owner(region, context, RegionUse::kMemory);
  status = card_register_memory(card_, context, region, request.bytes, request.access, &reply->key);
  if (status != PEAL_STATUS_OK) regions_.free(region);
  return status;
}

peal_status Admin::unregister_memory(ContextId context, const peal_unregister_memory& request) {
  RegionId region = kNoRegion;
  const peal_status status = card_unregister_memory(card_, context, request.key, &region);
  if (status == PEAL_STATUS_OK) regions_.free(region);
  return status;
}

peal_status Admin::reserve_group(ContextId context, const peal_reserve_group& request,
                                 MemoryProvider& provider, TimeNs now,
                                 peal_reserve_group_reply* reply) {
  housekeeping();  // channels of groups that have just ended are had again
  // Before megabytes are set aside for it.
  if (request.ranks == 0 || request.ranks > CONFIG_GROUP_RANKS_MAX || request.rank >= request.ranks)
    return PEAL_STATUS_BAD_RANK;
  RegionId region = kNoRegion;
  peal_status status = provider.make_channels(request, &region);
  if (status != PEAL_STATUS_OK) return status;
  regions_.set_owner(region, context, RegionUse::kChannels);
  status = card_reserve_group(card_, context, request, region, now, &reply->address);
  if (status != PEAL_STATUS_OK) regions_.free(region);
  return status;
}

peal_status Admin::read_counters(const peal_read_counters& request,
                                 peal_read_counters_reply* reply) {
  if (request.first > PEAL_COUNTER_COUNT) return PEAL_STATUS_BAD_BOUNDS;
  reply->total = PEAL_COUNTER_COUNT;
  reply->count = std::min<uint32_t>(PEAL_COUNTER_COUNT - request.first, PEAL_COUNTERS_PER_REPLY);
  std::memcpy(reply->values, card_counters(card_) + request.first, reply->count * sizeof(uint64_t));
  return PEAL_STATUS_OK;
}

}  // namespace peal::emulator
