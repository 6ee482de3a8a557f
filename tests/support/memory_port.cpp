// SPDX-License-Identifier: BSD-2-Clause
// The in-memory port: pool, host regions, held DMA, and the watch over port.h's rules.
#include "tests/support/memory_port.h"

#include <algorithm>
#include <cstring>

#include "firmware/base/crc32c.h"
#include "firmware/channels.h"
#include "peal_config.h"

namespace peal::test {

// A payload knows how many packets share it. From the first send() or share_packet() on it is
// frozen: its checksum is taken and must still be right when a packet is sent or goes back to the
// pool.
struct MemoryPort::Payload {
  std::vector<uint8_t> bytes;
  uint32_t references = 0;
  bool frozen = false;
  size_t frozen_bytes = 0;
  uint32_t frozen_crc = 0;
};

struct MemoryPort::Buffer {
  Packet packet{};
  peal_wire_header header{};
  Payload* payload = nullptr;
  size_t room = 0;    // that many bytes of it may be sent
  bool held = false;  // by the card; false: free, or sent
};

bool Knob::hit() {
  if (count == 0) return false;
  if (skip > 0) {
    skip--;
    return false;
  }
  if (count != kAlways) count--;
  return true;
}

MemoryPort::MemoryPort(uint32_t packet_buffers, uint32_t mtu_bytes, Checksums checksums)
    : packet_buffers_(packet_buffers), mtu_bytes_(mtu_bytes), checksums_(checksums) {
  buffers_.reserve(packet_buffers);
  payloads_.reserve(packet_buffers);
}

MemoryPort::~MemoryPort() = default;

void MemoryPort::problem(const std::string& text) {
  problems_ += text + "\n";
  log_ += "PROBLEM " + text + "\n";
}

// --- packets ---

MemoryPort::Buffer* MemoryPort::take_buffer() {
  if (free_.empty()) {
    if (buffers_.size() == packet_buffers_) return nullptr;
    free_.push_back(&buffers_.emplace_back());
    free_payloads_.push_back(&payloads_.emplace_back());
  }
  Buffer* buffer = free_.back();
  free_.pop_back();
  in_use_++;
  buffer->held = true;
  std::memset(&buffer->header, 0xdb, sizeof(buffer->header));  // undefined, says port.h
  return buffer;
}

Packet* MemoryPort::allocate_packet() {
  if (fail_allocations.hit()) return nullptr;
  Buffer* buffer = take_buffer();
  if (buffer == nullptr) return nullptr;
  Payload* payload = free_payloads_.back();  // never fewer free payloads than free buffers
  free_payloads_.pop_back();
  payload->bytes.assign(mtu_bytes_, 0xdb);
  payload->references = 1;
  payload->frozen = false;
  buffer->payload = payload;
  buffer->room = payload->bytes.size();
  buffer->packet = Packet{&buffer->header, payload->bytes.data(), 0, 0};
  return &buffer->packet;
}

Packet* MemoryPort::share_packet(Packet* packet) {
  Buffer* original = own_buffer(packet, "share_packet");
  if (original == nullptr || fail_allocations.hit()) return nullptr;
  Buffer* buffer = take_buffer();
  if (buffer == nullptr) return nullptr;
  freeze(*original->payload, original->payload->bytes.size());
  original->payload->references++;
  buffer->payload = original->payload;
  buffer->room = packet->payload_bytes;
  buffer->packet = Packet{&buffer->header, packet->payload, packet->payload_bytes, 0};
  return &buffer->packet;
}

MemoryPort::Buffer* MemoryPort::own_buffer(Packet* packet, const char* where) {
  // A packet is the first thing in its buffer.
  const auto offset =
      reinterpret_cast<uintptr_t>(packet) - reinterpret_cast<uintptr_t>(buffers_.data());
  const size_t index = offset / sizeof(Buffer);
  if (index >= buffers_.size() || offset % sizeof(Buffer) != 0) {
    problem(std::string(where) + " of a packet that is not from this port");
    return nullptr;
  }
  if (buffers_[index].held) return &buffers_[index];
  problem(std::string(where) + " of a packet that was sent or released");
  return nullptr;
}

void MemoryPort::freeze(Payload& payload, size_t bytes) {
  if (payload.frozen) return check_frozen(payload);
  payload.frozen = true;
  payload.frozen_bytes = bytes;
  payload.frozen_crc = crc32c(0, payload.bytes.data(), bytes);
}

void MemoryPort::check_frozen(const Payload& payload) {
  if (payload.frozen &&
      crc32c(0, payload.bytes.data(), payload.frozen_bytes) != payload.frozen_crc) {
    problem("a payload was written after it was sent or shared");
  }
}

void MemoryPort::put_back(Buffer* buffer) {
  check_frozen(*buffer->payload);
  if (--buffer->payload->references == 0) {
    std::fill(buffer->payload->bytes.begin(), buffer->payload->bytes.end(), uint8_t{0xdd});
    free_payloads_.push_back(buffer->payload);
  }
  buffer->payload = nullptr;
  buffer->held = false;
  free_.push_back(buffer);
  in_use_--;
}

void MemoryPort::release_packet(Packet* packet) {
  if (Buffer* buffer = own_buffer(packet, "release_packet")) put_back(buffer);
}

void MemoryPort::send(Packet* packet, uint32_t engine) {
  Buffer* buffer = own_buffer(packet, "send");
  if (buffer == nullptr) return;
  if (packet->header != &buffer->header) problem("send of a packet whose header was exchanged");
  if (buffer->header.length > buffer->room) {
    problem("send of more bytes than the packet has: " + std::to_string(buffer->header.length));
    buffer->header.length = 0;
  }
  freeze(*buffer->payload, buffer->header.length);
  if (engine >= CONFIG_TRANSMIT_ENGINES) problem("there is no engine " + std::to_string(engine));
  log_ += "send " + frame_text(buffer->header, buffer->payload->bytes.data());
  log_ += engine == 0 ? "\n" : " by engine " + std::to_string(engine) + "\n";
  buffer->held = false;
  sent_.push_back(buffer);
}

std::vector<Frame> MemoryPort::take_sent() {
  std::vector<Frame> frames;
  for (Buffer* buffer : sent_) {
    Frame frame;
    frame.header = buffer->header;
    frame.payload.assign(buffer->payload->bytes.begin(),
                         buffer->payload->bytes.begin() + buffer->header.length);
    frames.push_back(std::move(frame));
    put_back(buffer);
  }
  sent_.clear();
  return frames;
}

Packet* MemoryPort::receive(const Frame& frame) {
  Buffer* buffer = take_buffer();
  if (buffer == nullptr) return nullptr;
  Payload* payload = free_payloads_.back();
  free_payloads_.pop_back();
  payload->bytes.assign(frame.payload.begin(),
                        frame.payload.end());  // exactly: ASan sees a byte too far
  payload->bytes.shrink_to_fit();
  payload->references = 1;
  payload->frozen = false;
  buffer->payload = payload;
  buffer->room = payload->bytes.size();
  buffer->header = frame.header;
  buffer->packet = Packet{&buffer->header, payload->bytes.data(),
                          static_cast<uint32_t>(frame.payload.size()), 0};
  return &buffer->packet;
}

// --- host memory and DMA ---

RegionId MemoryPort::add_region(const std::string& name, size_t bytes) {
  regions_.push_back(Region{name, bytes, {}, true});
  return static_cast<RegionId>(regions_.size() - 1);
}

void MemoryPort::remove_region(RegionId region) {
  Region& gone = regions_.at(region);
  gone.live = false;
  gone.size = 0;
  for (const HeldDma& dma : held_) {
    if (dma.host.region == region) problem("region " + gone.name + " let go with DMA under way");
  }
}

HostBytes& MemoryPort::bytes(RegionId region) {
  Region& touched = regions_.at(region);
  if (touched.bytes.size() != touched.size) touched.bytes = HostBytes(touched.size);
  return touched.bytes;
}

std::string MemoryPort::address_text(HostAddress host) const {
  const std::string name = host.region < regions_.size() ? regions_[host.region].name
                                                         : "r" + std::to_string(host.region);
  if (name == "channel" && host.offset >= kShortImages)
    return "channel.short+" + std::to_string(host.offset - kShortImages);
  return name + "+" + std::to_string(host.offset);
}

bool MemoryPort::start_dma(bool write, const DmaTransfer& transfer, DmaToken token) {
  const auto& [host, card, packet, bytes] = transfer;
  const std::string text = std::string(write ? "dma_write " : "dma_read ") + address_text(host) +
                           " " + std::to_string(bytes);
  if (host.region >= regions_.size() || !regions_[host.region].live) {
    problem(text + ": no such region");
    return false;
  }
  const size_t room = regions_[host.region].size;
  if (host.offset > room || bytes > room - host.offset) {
    problem(text + ": outside the region of " + std::to_string(room));
    return false;
  }
  for (const HeldDma& dma : held_) {
    if (dma.token == token) problem(text + ": its token is in use");
  }
  if (refuse_dmas.hit()) return false;
  if (log_dma) log_ += text + "\n";
  (void)this->bytes(host.region);
  HeldDma dma{write, host, card, bytes, token, !fault_dmas.hit(), {}};
  if (write) {
    dma.snapshot.assign(card, card + bytes);
  } else {
    std::memset(card, 0xdb, bytes);  // what a card sees that does not wait for the end
  }
  held_.push_back(std::move(dma));
  return true;
}

bool MemoryPort::dma_read(const DmaTransfer& transfer, DmaToken token) {
  return start_dma(false, transfer, token);
}

bool MemoryPort::dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who,
                               ReadFor whom) {
  const size_t before = log_.size();
  const bool started = start_dma(false, transfer, token);
  const char* const to = whom == ReadFor::kOneCard ? ": " : " to several: ";
  if (started && lends) log_.insert(before, "lent by " + std::to_string(who) + to);
  return started;
}

void MemoryPort::take_back(LenderId who) {
  if (lends) log_ += "take_back " + std::to_string(who) + "\n";
}

bool MemoryPort::dma_write(const DmaTransfer& transfer, DmaToken token) {
  return start_dma(true, transfer, token);
}

HeldDma MemoryPort::finish_dma(size_t index) {
  HeldDma dma = std::move(held_.at(index));
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  if (dma.write && std::memcmp(dma.card, dma.snapshot.data(), dma.bytes) != 0) {
    problem("card memory was changed while dma_write " + address_text(dma.host) + " read it");
  }
  if (!dma.ok) return dma;
  uint8_t* host = regions_[dma.host.region].bytes.data() + dma.host.offset;
  if (dma.write) {
    std::memcpy(host, dma.snapshot.data(), dma.bytes);
  } else {
    std::memcpy(dma.card, host, dma.bytes);
  }
  return dma;
}

// --- completions and the log ---

void MemoryPort::complete(ContextId context, const peal_completion& entry) {
  uint8_t reserved = 0;
  for (const uint8_t byte : entry.reserved) reserved |= byte;
  for (const uint8_t byte : entry.reserved_too) reserved |= byte;
  if (reserved != 0) problem("a reserved byte of a completion is not zero");
  log_ += "complete ctx" + std::to_string(context) + " cookie=" + std::to_string(entry.cookie) +
          " " + status_text(entry.status);
  if (entry.failed_rank != PEAL_NO_RANK) log_ += " rank=" + std::to_string(entry.failed_rank);
  log_ += "\n";
  completions_.emplace_back(context, entry);
}

std::vector<std::pair<ContextId, peal_completion>> MemoryPort::take_completions() {
  return std::exchange(completions_, {});
}

std::string MemoryPort::take_log() { return std::exchange(log_, {}); }

}  // namespace peal::test
