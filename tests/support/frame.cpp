// SPDX-License-Identifier: BSD-2-Clause
// Frames as text, and their checksums computed the slow way.
#include "tests/support/frame.h"

#include <cstdio>
#include <cstring>

#include "abi/status.h"
#include "base/names.h"
#include "emulator/common/packet_text.h"

namespace peal::test {
namespace {

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string number(const char* name, uint64_t value) {
  return std::string(" ") + name + "=" + std::to_string(value);
}

template <typename T>
T payload_as(const peal_wire_header& header, const uint8_t* payload) {
  T value{};
  if (payload != nullptr && header.length >= sizeof(T)) std::memcpy(&value, payload, sizeof(T));
  return value;
}

bool is_in_steps(const peal_wire_header& header) {
  return header.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING ||
         header.algorithm == PEAL_ALGORITHM_BRUCK;
}

std::string data_text(const peal_wire_header& header) {
  std::string text = number("seq", header.sequence) + number("piece", header.piece);
  if (is_in_steps(header)) {
    text += number("step", header.hop) + number("frag", header.fragment);
  } else {
    text += number("origin", header.origin) + number("hop", header.hop);
  }
  if (header.algorithm == PEAL_ALGORITHM_RING && header.fragment != 0)
    text += number("held", header.fragment);
  if (header.algorithm == PEAL_ALGORITHM_BINOMIAL) text += number("frag", header.fragment);
  return text + number("len", header.length);
}

std::string signal_text(const peal_wire_header& header) {
  if (header.operation == PEAL_OPERATION_RECYCLE) {
    return " recycle" + number("epoch", header.sequence) +
           (header.piece == PEAL_RECYCLE_BELOW ? " below" : " all") +
           number("root", header.origin) + number("hop", header.hop);
  }
  if (header.operation == PEAL_OPERATION_BROADCAST) {
    return number("seq", header.sequence) + number("credit", header.piece) +
           number("origin", header.origin) + number("hop", header.hop);
  }
  return " " + names::operation(header.operation) + number("seq", header.sequence) +
         number("round", header.hop);
}

// Why not yet.
std::string reason_text(uint32_t reason) {
  if (reason == PEAL_NOT_YET_WAITS) return "";
  if (reason == PEAL_NOT_YET_SPLIT) return " split";
  return reason == PEAL_NOT_YET_LATE ? " late" : " sent";
}

bool asks_for_blocks(const peal_wire_header& header) {
  return header.algorithm != PEAL_ALGORITHM_DISSEMINATION &&
         header.operation != PEAL_OPERATION_RECYCLE;
}

// What a NACK asks for, and its answer "not yet" likewise.
std::string missing_text(const peal_wire_header& header) {
  if (!asks_for_blocks(header)) return signal_text(header);
  std::string text = number("seq", header.sequence) + number("piece", header.piece);
  if (is_in_steps(header)) return text + number("step", header.hop);
  return text + number("origin", header.origin);
}

// Of point-to-point: the number, how many have come, and what it is about.
std::string talk_text(const peal_wire_header& header, const uint8_t* payload) {
  std::string text;
  const bool numbered = header.type >= PEAL_PACKET_SKIP && header.type != PEAL_PACKET_SEEK;
  if (numbered) text += number("seq", header.sequence);
  if (header.type >= PEAL_PACKET_ACK) text += number("landed", header.piece);
  switch (header.type) {
    case PEAL_PACKET_ACK: {
      const auto body = payload_as<peal_p2p_ack>(header, payload);
      if (body.landed != 0) text += " behind=" + hex(body.landed);
      break;
    }
    case PEAL_PACKET_REFUSED: {
      const auto body = payload_as<peal_p2p_refused>(header, payload);
      text += number("refused", body.sequence) + " " + status_text(body.status);
      break;
    }
    case PEAL_PACKET_SKIP: {
      const auto body = payload_as<peal_p2p_skip>(header, payload);
      if (body.program != 0) {
        text += number("program", body.program - 1u) + number("iteration", body.iteration) +
                number("index", body.index) + " " + status_text(body.status);
        if ((body.how & PEAL_SKIP_TOGETHER) != 0) text += " together";
        if ((body.how & PEAL_SKIP_LATE) != 0) text += " late";
        for (const uint16_t told : body.told) {
          if (told != 0) text += number("tells", told - 1u);
        }
      }
      break;
    }
    case PEAL_PACKET_PUT: {
      const auto body = payload_as<peal_p2p_put>(header, payload);
      text += number("offset", body.offset) + number("len", header.length - sizeof(body));
      if (body.notice.queue != PEAL_P2P_NO_QUEUE) text += number("queue", body.notice.queue);
      break;
    }
    case PEAL_PACKET_STREAM: {
      const auto body = payload_as<peal_p2p_stream>(header, payload);
      text += number("offset", body.offset) + number("len", header.length - sizeof(body));
      break;
    }
    case PEAL_PACKET_ANNOUNCE: {
      const auto body = payload_as<peal_p2p_announce>(header, payload);
      text += number("tag", body.tag) + number("bytes", body.bytes) +
              number("len", header.length - sizeof(body));
      break;
    }
    case PEAL_PACKET_SEEK: {
      const auto body = payload_as<peal_p2p_seek>(header, payload);
      for (uint32_t i = 0; i < body.count && i < PEAL_P2P_SOUGHT; i++) {
        text += number("tag", body.tags[i]);
      }
      break;
    }
    case PEAL_PACKET_DONE:
      text += " " + status_text(payload_as<peal_p2p_done>(header, payload).status);
      break;
    default:
      break;
  }
  if ((header.hop & PEAL_P2P_ASK) != 0 && header.type >= PEAL_PACKET_OPEN) text += " ask";
  if (header.type == PEAL_PACKET_ACK && (header.hop & PEAL_P2P_ANSWER) != 0) text += " answer";
  return text;
}

}  // namespace

uint32_t reference_crc32c(const void* data, size_t bytes, uint32_t seed) {
  const auto* byte = static_cast<const uint8_t*>(data);
  uint32_t crc = ~seed;
  for (size_t i = 0; i < bytes; i++) {
    crc ^= byte[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

void seal_checksums(Frame& frame) {
  frame.header.payload_crc = reference_crc32c(frame.payload.data(), frame.payload.size());
  frame.header.header_crc = 0;
  frame.header.header_crc = reference_crc32c(&frame.header, sizeof(frame.header));
}

void seal(Frame& frame) {
  frame.header.length = static_cast<uint16_t>(frame.payload.size());
  seal_checksums(frame);
}

std::string status_text(uint32_t status) { return names::status(status); }

std::string frame_text(const peal_wire_header& header, const uint8_t* payload) {
  const uint32_t receiver = emulator::card_of_mac(header.destination);
  std::string text = std::to_string(header.sender) + ">" +
                     (receiver == emulator::kNoCard ? "?" : std::to_string(receiver)) + " " +
                     names::packet_type(header.type);
  switch (header.type) {
    case PEAL_PACKET_DATA:
      text += data_text(header);
      break;
    case PEAL_PACKET_SIGNAL:
      text += signal_text(header);
      break;
    case PEAL_PACKET_NACK: {
      const auto nack = payload_as<peal_nack>(header, payload);
      text += missing_text(header);
      // A bit for each block that comes over the hop, the first of which is the origin's.
      const bool origin_only =
          header.algorithm == PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST && nack.fragments == 1;
      if (!asks_for_blocks(header)) break;
      if (!origin_only) {
        text += " missing=" + hex(nack.fragments);
      }
      if (header.algorithm == PEAL_ALGORITHM_BINOMIAL) {
        text += number("credit", nack.credit);
      }
      break;
    }
    case PEAL_PACKET_NOT_YET: {
      const auto answer = payload_as<peal_not_yet>(header, payload);
      text += missing_text(header) + reason_text(answer.reason);
      if (answer.patience_ms != 0) text += number("patience", answer.patience_ms);
      break;
    }
    case PEAL_PACKET_REFUSE:
      text += number("seq", header.sequence) +
              number("rank", payload_as<peal_verdict>(header, payload).rank);
      break;
    case PEAL_PACKET_DEATH:
      text += number("rank", payload_as<peal_verdict>(header, payload).rank);
      break;
    case PEAL_PACKET_FAILURE:
    case PEAL_PACKET_KNOWN: {
      const auto body = payload_as<peal_failed>(header, payload);
      text += number("program", body.program) + number("from", body.from) + number("to", body.to) +
              number("rank", body.rank) + number("hops", body.hops);
      break;
    }
    default:
      text += talk_text(header, payload);
      break;
  }
  if (header.flags & PEAL_PACKET_REPAIR) text += " repair";
  return text;
}

}  // namespace peal::test
