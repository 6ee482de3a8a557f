// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/user_memory.h"

#include <algorithm>
#include <cstring>

#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {

constexpr uint64_t kGuardBytes = 128;  // in front of and behind every buffer
constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
constexpr uint64_t kGarbageStream = 77;

// Word i of a pattern is base + i * kStep: cheap, and different at every offset of every base.
void write_pattern(uint8_t* to, uint64_t bytes, uint64_t base) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8, base += kStep) std::memcpy(to + at, &base, 8);
  if (at < bytes) std::memcpy(to + at, &base, bytes - at);
}

// Offset of the first word that differs, or `bytes` when none does.
uint64_t compare_pattern(const uint8_t* with, uint64_t bytes, uint64_t base) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8, base += kStep) {
    uint64_t word;
    std::memcpy(&word, with + at, 8);
    if (word != base) return at;
  }
  return std::memcmp(with + at, &base, bytes - at) == 0 ? bytes : at;
}

uint64_t round_up(uint64_t bytes) { return (bytes + 63) & ~uint64_t{63}; }

}  // namespace

UserMemory::UserMemory(PatternSource source, const Shape& shape)
    : source_(source),
      shape_(shape),
      send_stride_(round_up(shape.block_max) + 2 * kGuardBytes),
      receive_stride_(round_up(shape.block_max * shape.ranks) + 2 * kGuardBytes),
      slots_(shape.slots) {}

void UserMemory::place(uint32_t send_region, uint8_t* send, uint32_t receive_region,
                       uint8_t* receive) {
  send_region_ = send_region;
  send_ = send;
  receive_region_ = receive_region;
  receive_ = receive;
}

uint64_t UserMemory::block_base(uint64_t sequence, uint32_t rank) const {
  return mix(mix(source_.seed, source_.group), sequence, rank);
}

uint64_t UserMemory::send_offset(uint32_t slot) const {
  return slot * send_stride_ + slots_[slot].shift;
}

uint64_t UserMemory::receive_offset(uint32_t slot) const {
  return slot * receive_stride_ + slots_[slot].shift;
}

std::string UserMemory::prepare(uint32_t index, uint64_t sequence, const OperationPlan& operation) {
  Slot& slot = slots_[index];
  std::string problem = check_garbage(index);
  slot.posted = true;
  slot.used = true;
  slot.sequence = sequence;
  slot.operation = operation;
  slot.shift = kGuardBytes / 2 + mix(source_.seed, shape_.rank, sequence) % (kGuardBytes / 2);
  slot.garbage = mix(mix(source_.seed, kGarbageStream), shape_.rank, ++generation_);
  write_pattern(send_ + index * send_stride_, send_stride_, slot.garbage);
  write_pattern(receive_ + index * receive_stride_, receive_stride_, ~slot.garbage);
  if (operation.operation != PEAL_OPERATION_ALLGATHER) return problem;
  uint8_t* own = operation.in_place ? receive_ + receive_offset(index) +
                                          uint64_t{operation.block_bytes} * shape_.rank
                                    : send_ + send_offset(index);
  write_pattern(own, operation.block_bytes, block_base(sequence, shape_.rank));
  return problem;
}

std::string UserMemory::finish(uint32_t index, bool has_result) {
  Slot& slot = slots_[index];
  std::string problem;
  const uint64_t block = slot.operation.block_bytes;
  if (has_result && slot.operation.operation == PEAL_OPERATION_ALLGATHER && block > 0) {
    for (uint32_t rank = 0; rank < shape_.ranks && problem.empty(); rank++) {
      const uint8_t* got = receive_ + receive_offset(index) + rank * block;
      const uint64_t wrong = compare_pattern(got, block, block_base(slot.sequence, rank));
      if (wrong == block) continue;
      uint64_t word = 0;
      std::memcpy(&word, got + wrong, std::min<uint64_t>(8, block - wrong));
      problem = "block of rank " + std::to_string(rank) + " is wrong from byte " +
                std::to_string(wrong) + " of " + std::to_string(block) + ": " +
                describe(slot, wrong, word);
    }
  }
  // What lies around the result must be as the user left it.
  const uint8_t* begin = receive_ + index * receive_stride_;
  if (problem.empty() &&
      compare_pattern(begin, slot.shift & ~7ull, ~slot.garbage) != (slot.shift & ~7ull))
    problem = "bytes before the receive buffer were written";
  const uint64_t behind = round_up(slot.shift + block * shape_.ranks);
  if (problem.empty() &&
      compare_pattern(begin + behind, receive_stride_ - behind,
                      ~slot.garbage + behind / 8 * kStep) != receive_stride_ - behind)
    problem = "bytes behind the receive buffer were written";
  slot.posted = false;
  slot.garbage = mix(mix(source_.seed, kGarbageStream), shape_.rank, ++generation_);
  write_pattern(send_ + index * send_stride_, send_stride_, slot.garbage);
  write_pattern(receive_ + index * receive_stride_, receive_stride_, ~slot.garbage);
  return problem;
}

std::string UserMemory::check_garbage(uint32_t index) const {
  const Slot& slot = slots_[index];
  if (!slot.used || slot.posted) return {};
  if (compare_pattern(send_ + index * send_stride_, send_stride_, slot.garbage) != send_stride_)
    return "the send buffer of sequence " + std::to_string(slot.sequence) +
           " was written after its completion";
  const uint64_t at =
      compare_pattern(receive_ + index * receive_stride_, receive_stride_, ~slot.garbage);
  if (at == receive_stride_) return {};
  return "byte " + std::to_string(at) + " of the receive buffer of sequence " +
         std::to_string(slot.sequence) + " was written after its completion";
}

std::string UserMemory::check_access(uint32_t region, uint64_t offset, uint64_t bytes,
                                     bool write) const {
  const bool sends = region == send_region_;
  const std::string what = std::string(write ? "write" : "read") + " of " + std::to_string(bytes) +
                           " bytes at " + std::to_string(offset) + " of the " +
                           (sends ? "send" : "receive") + " region: ";
  if (sends && write) return what + "the card may only read it";
  const uint64_t stride = sends ? send_stride_ : receive_stride_;
  const uint64_t index = offset / stride;
  if (index >= slots_.size()) return what + "outside the region";
  const Slot& slot = slots_[index];
  if (!slot.posted)
    return what + "the buffer is the user's" +
           (slot.used ? ", sequence " + std::to_string(slot.sequence) + " is complete" : "");
  const uint64_t begin = index * stride + slot.shift;
  const uint64_t end = begin + uint64_t{slot.operation.block_bytes} * (sends ? 1 : shape_.ranks);
  if (slot.operation.operation != PEAL_OPERATION_ALLGATHER || offset < begin ||
      offset + bytes > end)
    return what + "outside the buffers of sequence " + std::to_string(slot.sequence);
  return {};
}

// Tells where the wrong bytes come from, when they are known ones.
std::string UserMemory::describe(const Slot& slot, uint64_t offset, uint64_t found) const {
  const uint64_t word = offset / 8 * kStep;
  for (uint64_t back = 0; back <= slot.sequence && back < 64; back++)
    for (uint32_t rank = 0; rank < shape_.ranks; rank++)
      if (found == block_base(slot.sequence - back, rank) + word)
        return "it is what rank " + std::to_string(rank) + " sent " + std::to_string(back) +
               " operations before";
  for (uint32_t rank = 0; rank < shape_.ranks; rank++)
    for (uint64_t at = 0; at < slot.operation.block_bytes; at += 8)
      if (found == block_base(slot.sequence, rank) + at / 8 * kStep)
        return "it is byte " + std::to_string(at) + " of rank " + std::to_string(rank);
  const uint64_t at = slot.shift + offset;
  if (at % 8 == 0) {
    for (uint32_t rank = 0; rank < shape_.ranks; rank++) {
      const uint64_t place = slot.shift + rank * uint64_t{slot.operation.block_bytes} + offset;
      if (place % 8 == 0 && found == ~slot.garbage + place / 8 * kStep) return "never written";
    }
  }
  return "unknown bytes " + std::to_string(found);
}

}  // namespace peal::sim
