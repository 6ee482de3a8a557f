// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/control.h"

#include <cstring>

#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

void write_plain(const Membership& self, const peal_peer_address& to, uint8_t engine, uint8_t type,
                 uint32_t handle, uint16_t length, peal_wire_header* header) {
  begin_header(to, membership_kind(self, type), header);
  header->edge = engine;
  header->block_bytes = handle;
  header->length = length;
}

bool send_body(Card& card, const Connection& connection, uint8_t type, uint8_t hop,
               const void* body, uint16_t bytes) {
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  write_header(connection, type, 0, bytes, packet->header);
  packet->header->hop = hop;
  std::memcpy(packet->payload, body, bytes);
  count(card, PEAL_COUNTER_SENT_P2P_CONTROL);
  launch_packet(card, packet, false, connection.engine);
  return true;
}

// A bit for each packet in memory behind the first that is not.
uint64_t landed_behind(const Connection& connection) {
  uint64_t bits = 0;
  const uint32_t held = connection.beyond - connection.landed;  // nothing has come behind them
  for (uint32_t i = 1; i < held; ++i) {
    const Slot& slot = connection.slots[(connection.landed + i) % kWindow];
    if (slot.state == SlotState::kLanded) bits |= uint64_t{1} << (i - 1);
  }
  return bits;
}

}  // namespace

bool tell(Card& card, const Membership& self, const peal_peer_address& to, uint8_t engine,
          uint8_t type, uint32_t handle, uint32_t own_handle, uint32_t life) {
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  const peal_p2p_open body = {own_handle, life};
  const uint16_t bytes = type == PEAL_PACKET_CLOSED ? uint16_t{0} : uint16_t{sizeof(body)};
  write_plain(self, to, engine, type, handle, bytes, packet->header);
  if (bytes != 0) std::memcpy(packet->payload, &body, bytes);
  count(card, PEAL_COUNTER_SENT_P2P_CONTROL);
  launch_packet(card, packet, false, engine);
  return true;
}

void tell_phase(Card& card, const Connection& connection, uint8_t type) {
  const Membership& self = card.members[connection.member].membership;
  const bool opens = type == PEAL_PACKET_OPEN;
  tell(card, self, connection.address, connection.engine, type, opens ? 0 : connection.peer,
       handle_of(card.p2p, connection), opens ? connection.life : 0);
}

void send_ack(Card& card, Connection& connection) {
  const peal_p2p_ack body = {landed_behind(connection)};
  const bool answers = connection.questioned && connection.landing == 0;
  const uint8_t hop = answers ? PEAL_P2P_ANSWER : 0;
  if (!send_body(card, connection, PEAL_PACKET_ACK, hop, &body, sizeof(body))) return;
  connection.owes_answer = connection.landing != 0;  // of what was asked some may be landing
  connection.unasked = 0;
  if (answers) connection.questioned = false;
}

void send_question(Card& card, Connection& connection) {
  const peal_p2p_ack body = {landed_behind(connection)};
  (void)send_body(card, connection, PEAL_PACKET_ACK, PEAL_P2P_ASK, &body, sizeof(body));
}

void send_seek(Card& card, const Connection& connection, const peal_p2p_seek& body) {
  (void)send_body(card, connection, PEAL_PACKET_SEEK, 0, &body, sizeof(body));
}

void send_refused(Card& card, Connection& connection, uint32_t sequence, peal_status status) {
  const peal_p2p_refused body = {sequence, static_cast<uint32_t>(status)};
  (void)send_body(card, connection, PEAL_PACKET_REFUSED, 0, &body, sizeof(body));
}

}  // namespace peal::p2p
