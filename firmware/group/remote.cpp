// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/remote.h"

#include "firmware/base/assert.h"
#include "firmware/group/by_rank.h"
#include "firmware/host/keys.h"

namespace peal {
namespace {

// Each run has one place, so that it is found at once. In a group that may be talked to there are
// as many places as runs (knows_everybody()).
uint32_t place_index(Rank rank) { return rank / kAddressRun % kAddressRuns; }
AddressRun& place_of(Member& member, Rank rank) { return member.remote.runs[place_index(rank)]; }

bool holds(const AddressRun& run, RunPhase phase, Rank rank) {
  return run.phase == phase && run.number == rank / kAddressRun;
}

uint32_t index_of(const Member& member, const AddressRun& run) {
  return static_cast<uint32_t>(&run - member.remote.runs);
}

uint32_t run_ranks(const Member& member, const AddressRun& run) {
  const uint32_t left = member.membership.ranks - run.number * kAddressRun;
  return left < kAddressRun ? left : kAddressRun;
}

// Begins to read the rank's run. Not while its place waits for another one, nor without a record.
void read_run(Card& card, Member& member, AddressRun& run, Rank rank) {
  if (member.remote.key == 0 || run.phase == RunPhase::kReading) return;
  if (!dma_suffices(card, 1)) return;
  run.phase = RunPhase::kReading;
  run.number = static_cast<uint16_t>(rank / kAddressRun);
  const HostAddress& table = member.remote.table;
  const uint32_t place = index_of(member, run);
  const uint64_t first = uint64_t{run.number} * kAddressRun * sizeof(peal_peer_address);
  ++member.dma;
  count(card, PEAL_COUNTER_ADDRESS_READS);
  dma_read(card, {.host = {table.region, table.offset + first},
                  .card = reinterpret_cast<uint8_t*>(addresses_at(member, place)),
                  .bytes = run_ranks(member, run) * uint32_t{sizeof(peal_peer_address)},
                  .packet = nullptr,
                  .tag = {.member = member.index,
                          .owner = DmaOwner::kAddresses,
                          .slot = 0,
                          .role = 0,
                          .step = 0,
                          .piece = run.number,
                          .detail = place,
                          .sequence = 0}});
}

// Every entry is of the rank that it should be of, and of a card that cuts messages alike.
bool is_table(const Member& member, const AddressRun& run) {
  for (uint32_t i = 0; i < run_ranks(member, run); ++i) {
    const peal_peer_address& address = addresses_at(member, index_of(member, run))[i];
    if (address.rank != run.number * kAddressRun + i) return false;
    if (address.geometry != geometry_hash()) return false;
  }
  return true;
}

bool waits_for(const AddressWait& wait, uint32_t run_number) {
  return wait.packet != nullptr && wait.rank / kAddressRun == run_number;
}

}  // namespace

peal_status take_address_table(Card& card, Member& member, uint32_t key, uint64_t offset) {
  if (key == 0) return offset == 0 ? PEAL_STATUS_OK : PEAL_STATUS_BAD_BOUNDS;
  const uint64_t bytes = uint64_t{member.membership.ranks} * sizeof(peal_peer_address);
  const peal_status status =
      check_range(card, member.context, key, offset, bytes, PEAL_ACCESS_READ, &member.remote.table);
  if (status != PEAL_STATUS_OK) return status;
  member.remote.key = key;
  hold_key(card, key);
  return PEAL_STATUS_OK;
}

void leave_address_table(Card& card, Member& member) {
  if (member.remote.key == 0) return;
  for (const AddressRun& run : member.remote.runs) {
    if (run.phase == RunPhase::kReading) return;
  }
  let_go_of_key(card, member.remote.key);
  member.remote.key = 0;
}

const peal_peer_address* remembered_address(Member& member, Rank rank) {
  if (!holds(place_of(member, rank), RunPhase::kKnown, rank)) return nullptr;
  return &addresses_at(member, place_index(rank))[rank % kAddressRun];
}

const peal_peer_address* find_remote_address(Card& card, Member& member, Rank rank) {
  const peal_peer_address* address = remembered_address(member, rank);
  if (address == nullptr) read_run(card, member, place_of(member, rank), rank);
  return address;
}

const peal_peer_address* find_address(Card& card, Member& member, Rank rank) {
  const Membership& self = member.membership;
  return find_address(card, member, rank, peer_entry(self.rank, rank, self.ranks));
}

void expect_addresses(Card& card, Member& member) {
  const Membership& self = member.membership;
  if (peal_all_are_peers(self.ranks) != 0) return;
  // From the first that will be sent to.
  uint32_t way = 3;
  for (uint32_t run = 0; run < kAddressRuns && way < self.ranks; ++run, way += kAddressRun) {
    const Rank rank = plus(self.rank, way, self.ranks);
    if (peer_entry(self.rank, rank, self.ranks) != kNoPeer) continue;
    (void)find_address(card, member, rank);
  }
}

bool wait_for_address(Card& card, Member& member, Packet* packet, Rank rank, bool leaves) {
  if (find_address(card, member, rank) != nullptr) return false;
  if (!holds(place_of(member, rank), RunPhase::kReading, rank)) return false;
  for (AddressWait& wait : member.remote.waits) {
    if (wait.packet != nullptr) continue;
    wait = {.packet = packet, .rank = static_cast<uint16_t>(rank), .leaves = leaves};
    ++packet->holds;
    return true;
  }
  return false;
}

bool send_small_to(Card& card, Member& member, Rank to, const PacketKind& kind,
                   const SmallPacket& what) {
  const Membership& self = member.membership;
  const peal_peer_address* address = find_address(card, member, to);
  if (address != nullptr) return send_small(card, self, *address, kind, what);
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  peal_peer_address anywhere = {};
  anywhere.rank = static_cast<uint16_t>(to);
  prepare_small(self, anywhere, kind, what, packet);
  ++packet->holds;
  const bool waits = wait_for_address(card, member, packet, to, true);
  unhold_packet(card, packet);
  return waits;
}

bool take_addresses(Card& card, const DmaDone& done) {
  Member& member = card.members[done.member];
  AddressRun& run = member.remote.runs[done.detail];
  --member.dma;
  PEAL_ASSERT(run.phase == RunPhase::kReading);
  const bool good = done.ok && is_table(member, run);
  run.phase = good ? RunPhase::kKnown : RunPhase::kEmpty;
  for (AddressWait& wait : member.remote.waits) {
    if (!waits_for(wait, run.number) || (good && !wait.leaves)) continue;
    Packet* packet = wait.packet;
    wait.packet = nullptr;
    if (good) {
      PEAL_ASSERT(packet->holds == 1);
      packet->holds = 0;
      readdress_packet(addresses_at(member, done.detail)[wait.rank % kAddressRun], packet->header);
      launch_packet(card, packet, false);
    } else {
      if (!wait.leaves) count(card, PEAL_COUNTER_DROP_NO_ADDRESS);
      unhold_packet(card, packet);
    }
  }
  if (member.phase == MemberPhase::kDying) leave_address_table(card, member);
  return good;
}

Packet* take_awaited_packet(Member& member, const DmaDone& done) {
  for (AddressWait& wait : member.remote.waits) {
    if (!waits_for(wait, done.piece)) continue;
    Packet* packet = wait.packet;
    wait.packet = nullptr;
    return packet;
  }
  return nullptr;
}

}  // namespace peal
