// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/parts.h"

#include "abi/admin.h"
#include "firmware/host/keys.h"
#include "firmware/operation/part_places.h"
#include "firmware/operation/transfer.h"

namespace peal {
namespace {

// Parts that one transfer brings.
constexpr uint32_t kPartsPerRead = CONFIG_MTU_BYTES / sizeof(peal_part);
static_assert(kPartsPerRead > 0);

// A region in which all parts lie; their bounds are looked at when they are known.
peal_status name_region(Card& card, const Member& member, uint32_t key, uint32_t access,
                        HostAddress* address) {
  if (key == 0) return PEAL_STATUS_OK;  // all are empty
  return check_range(card, member.context, key, 0, 0, access, address);
}

// The next run of the table.
void read_run(const Scope& scope, uint8_t step) {
  auto& [card, member, operation] = scope;
  const Command& command = operation.command;
  operation.parts_phase = PartsPhase::kStopped;
  if (!has_dma_or_starves(scope)) return;
  operation.parts_phase = PartsPhase::kReading;
  const uint32_t left = command.parts - operation.parts_read;
  const uint32_t run = left < kPartsPerRead ? left : kPartsPerRead;
  peal_part* to = part_table_at(member, operation.parts_place) + operation.parts_read;
  const uint64_t offset = uint64_t{operation.parts_read} * sizeof(peal_part);
  operation.parts_read = static_cast<uint16_t>(operation.parts_read + run);
  transfer_read(scope, {.role = TransferRole::kWhole,
                        .step = step,
                        .piece = 0,
                        .host = {command.table.region, command.table.offset + offset},
                        .card = reinterpret_cast<uint8_t*>(to),
                        .bytes = run * uint32_t{sizeof(peal_part)}});
}

}  // namespace

peal_status parts_check(Card& card, const Member& member, const peal_submission& entry,
                        uint32_t parts, Command* command) {
  if (member.membership.ranks > kPartRanks) return PEAL_STATUS_BAD_ALGORITHM;
  if (entry.block_bytes != 0) return PEAL_STATUS_BAD_LENGTH;
  const uint64_t bytes = uint64_t{parts} * sizeof(peal_part);
  command->parts = static_cast<uint16_t>(parts);
  command->parts_key = entry.parts_key;
  const peal_status table = check_range(card, member.context, entry.parts_key, entry.parts_offset,
                                        bytes, PEAL_ACCESS_READ, &command->table);
  if (table != PEAL_STATUS_OK) return table;
  command->receive_key = entry.receive_key;
  command->send_key = command->in_place ? entry.receive_key : entry.send_key;
  const peal_status receive =
      name_region(card, member, command->receive_key, PEAL_ACCESS_WRITE, &command->receive);
  if (receive != PEAL_STATUS_OK) return receive;
  return name_region(card, member, command->send_key, PEAL_ACCESS_READ, &command->send);
}

bool part_is_good(Card& card, const Member& member, uint32_t key, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return true;
  if (bytes > 0xffffffffu || key == 0) return false;
  HostAddress address;
  return check_range(card, member.context, key, offset, bytes, 0, &address) == PEAL_STATUS_OK;
}

void parts_read(const Scope& scope, uint8_t step) {
  auto& [card, member, operation] = scope;
  if (operation.parts_phase == PartsPhase::kStopped) read_run(scope, step);
  if (operation.parts_phase != PartsPhase::kNone) return;
  if (!part_place_take(member, operation)) return;
  read_run(scope, step);
}

bool parts_on_read(const Scope& scope, uint8_t step) {
  Operation& operation = scope.operation;
  if (operation.parts_read < operation.command.parts) {
    read_run(scope, step);
    return false;
  }
  operation.parts_phase = PartsPhase::kKnown;
  return true;
}

}  // namespace peal
