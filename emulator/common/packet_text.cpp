// SPDX-License-Identifier: BSD-2-Clause
// The words of a trace. peal-sim, peal-nic and the unit tests' trace program print through here and
// nowhere else.
#include "emulator/common/packet_text.h"

namespace peal::emulator {
namespace {

const char* type_name(uint8_t type) {
  switch (type) {
    case PEAL_PACKET_DATA:
      return "DATA";
    case PEAL_PACKET_SIGNAL:
      return "SIGNAL";
    case PEAL_PACKET_NACK:
      return "NACK";
    case PEAL_PACKET_NOT_YET:
      return "NOT_YET";
    case PEAL_PACKET_REFUSE:
      return "REFUSE";
    case PEAL_PACKET_DEATH:
      return "DEATH";
    case PEAL_PACKET_PROBE:
      return "PROBE";
    case PEAL_PACKET_ALIVE:
      return "ALIVE";
    case PEAL_PACKET_FAREWELL:
      return "FAREWELL";
    default:
      return nullptr;
  }
}

const char* operation_name(uint8_t operation) {
  switch (operation) {
    case PEAL_OPERATION_NONE:
      return "none";
    case PEAL_OPERATION_BARRIER:
      return "barrier";
    case PEAL_OPERATION_ALLGATHER:
      return "allgather";
    case PEAL_OPERATION_DESTROY:
      return "destroy";
    case PEAL_OPERATION_RECYCLE:
      return "recycle";
    default:
      return nullptr;
  }
}

const char* algorithm_name(uint8_t algorithm) {
  switch (algorithm) {
    case PEAL_ALGORITHM_NONE:
      return "none";
    case PEAL_ALGORITHM_DISSEMINATION:
      return "dissemination";
    case PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST:
      return "all-to-all-broadcast";
    case PEAL_ALGORITHM_RECURSIVE_DOUBLING:
      return "recursive-doubling";
    default:
      return nullptr;
  }
}

std::string name_or_number(const char* name, const char* prefix, uint8_t value) {
  return name != nullptr ? std::string(name) : prefix + std::to_string(value);
}

}  // namespace

std::string packet_type_text(uint8_t type) {
  return name_or_number(type_name(type), "type-", type);
}

std::string operation_text(uint8_t operation) {
  return name_or_number(operation_name(operation), "operation-", operation);
}

std::string algorithm_text(uint8_t algorithm) {
  return name_or_number(algorithm_name(algorithm), "algorithm-", algorithm);
}

std::string packet_text(const peal_wire_header& header, uint32_t receiver_card) {
  std::string text = std::to_string(header.sender);
  text += '>';
  text += receiver_card == kNoCard ? std::string("?") : std::to_string(receiver_card);
  text += ' ' + packet_type_text(header.type);
  text += ' ' + operation_text(header.operation);
  text += ' ' + algorithm_text(header.algorithm);
  text += " seq=" + std::to_string(header.sequence);
  text += " piece=" + std::to_string(header.piece);
  text += " origin=" + std::to_string(header.origin);
  text += " hop=" + std::to_string(header.hop);
  text += " frag=" + std::to_string(header.fragment);
  text += " len=" + std::to_string(header.length);
  if (header.flags & PEAL_PACKET_REPAIR) text += " repair";
  return text;
}

std::string packet_text(const peal_wire_header& header) {
  return packet_text(header, card_of_mac(header.destination));
}

}  // namespace peal::emulator
