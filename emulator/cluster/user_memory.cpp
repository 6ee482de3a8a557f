// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/user_memory.h"

#include <algorithm>
#include <cstring>

#include "abi/queue.h"
#include "emulator/cluster/block_pattern.h"
#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {

constexpr uint64_t kGuardBytes = 128;  // in front of and behind every buffer
constexpr uint64_t kGarbageStream = 77;

uint64_t base_of(uint64_t sequence_base, const BlockName& name) {
  return mix(sequence_base ^ (uint64_t{name.to} << 32 | name.from));
}

bool blocks_are_right(const Blocks& expected, const OperationPlan& operation,
                      uint64_t sequence_base, const uint8_t* result) {
  const uint32_t count = expected.received();
  if (count == 0) return true;
  const BlockName first = expected.received_name(0);
  // Such are most.
  if (operation.block_bytes % 64 == 0 && !has_parts(operation.operation))
    return run_is_right(result, {operation.block_bytes, count,
                                 sequence_base ^ uint64_t{first.to} << 32, first.from});
  for (uint32_t i = 0; i < count; i++) {
    const Extent block = expected.received_extent(i);
    const uint64_t base = base_of(sequence_base, expected.received_name(i));
    if (compare_pattern(result + block.offset, block.bytes, base) != block.bytes) return false;
  }
  return true;
}

std::string access_text(const char* region, uint64_t offset, uint64_t bytes, bool write) {
  return std::string(write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes at " +
         std::to_string(offset) + " of the " + region + " region: ";
}

uint64_t round_up(uint64_t bytes) { return (bytes + 63) & ~uint64_t{63}; }

}  // namespace

UserMemory::UserMemory(PatternSource source, const Shape& shape)
    : source_(source),
      shape_(shape),
      send_stride_(round_up(shape.send_max) + 2 * kGuardBytes),
      receive_stride_(round_up(shape.receive_max) + 2 * kGuardBytes),
      slots_(shape.slots) {}

void UserMemory::place(uint32_t send_region, uint8_t* send, uint32_t receive_region,
                       uint8_t* receive) {
  send_region_ = send_region;
  send_ = send;
  receive_region_ = receive_region;
  receive_ = receive;
}

void UserMemory::place_tables(uint32_t region, uint64_t stride) {
  tables_region_ = region;
  table_stride_ = stride;
}

// What the patterns of an operation's blocks have in common.
uint64_t UserMemory::sequence_base(uint64_t sequence) const {
  return mix(mix(source_.seed, source_.group), sequence);
}

uint64_t UserMemory::block_base(uint64_t sequence, const BlockName& name) const {
  return base_of(sequence_base(sequence), name);
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
  slot.sequence = sequence;
  slot.operation = operation;
  slot.shift = kGuardBytes / 2 + mix(source_.seed, shape_.rank, sequence) % (kGuardBytes / 2);
  // What finish() left there is garbage enough.
  if (!slot.used || !problem.empty()) write_garbage(index);
  slot.used = true;
  const Blocks given = blocks(slot);
  uint8_t* const sent =
      operation.in_place ? receive_ + receive_offset(index) : send_ + send_offset(index);
  for (uint32_t i = 0; i < given.sent(); i++) {
    const Extent block = given.sent_extent(i);
    write_pattern(sent + block.offset, block.bytes, block_base(sequence, given.sent_name(i)));
  }
  return problem;
}

// Other garbage than ever before, so that what belongs to an earlier one is found.
void UserMemory::write_garbage(uint32_t index) {
  Slot& slot = slots_[index];
  slot.garbage = mix(mix(source_.seed, kGarbageStream), shape_.rank, ++generation_);
  write_pattern(send_ + index * send_stride_, send_stride_, slot.garbage);
  write_pattern(receive_ + index * receive_stride_, receive_stride_, ~slot.garbage);
}

std::string UserMemory::check_result(uint32_t index) const {
  const Slot& slot = slots_[index];
  const Blocks expected = blocks(slot);
  const uint64_t base = sequence_base(slot.sequence);
  const uint8_t* const result = receive_ + receive_offset(index);
  if (blocks_are_right(expected, slot.operation, base, result)) return {};
  for (uint32_t i = 0; i < expected.received(); i++) {
    const BlockName name = expected.received_name(i);
    const Extent block = expected.received_extent(i);
    const uint8_t* const got = result + block.offset;
    const uint64_t wrong = compare_pattern(got, block.bytes, base_of(base, name));
    if (wrong == block.bytes) continue;
    const uint64_t at = slot.shift + block.offset + wrong;
    const uint64_t bytes = std::min<uint64_t>(8, block.bytes - wrong);
    uint64_t word = 0;
    std::memcpy(&word, got + wrong, bytes);
    const bool as_prepared =
        has_pattern(receive_ + index * receive_stride_, at, at + bytes, ~slot.garbage);
    return "block of rank " + std::to_string(name.from) + " is wrong from byte " +
           std::to_string(wrong) + " of " + std::to_string(block.bytes) + ": " +
           (as_prepared ? "never written" : describe(slot, wrong, word));
  }
  return {};
}

// What lies around the result must be as the user left it.
std::string UserMemory::check_surroundings(uint32_t index) const {
  const Slot& slot = slots_[index];
  const uint8_t* const begin = receive_ + index * receive_stride_;
  const uint64_t end = slot.shift + uint64_t{slot.operation.block_bytes} * blocks(slot).received();
  if (!has_pattern(begin, 0, slot.shift, ~slot.garbage))
    return "bytes before the receive buffer were written";
  if (!has_pattern(begin, end, receive_stride_, ~slot.garbage))
    return "bytes behind the receive buffer were written";
  if (!has_parts(slot.operation.operation)) return {};
  const Blocks own = blocks(slot);
  for (uint32_t i = 0; i < own.received(); i++) {
    const Extent part = own.received_extent(i);
    const uint64_t from = slot.shift + part.offset + part.bytes;
    const uint64_t to = slot.shift + part.offset + slot.operation.block_bytes;
    if (!has_pattern(begin, from, to, ~slot.garbage))
      return "bytes behind the part of rank " + std::to_string(i) + " were written";
  }
  return {};
}

std::string UserMemory::finish(uint32_t index, bool has_result) {
  Slot& slot = slots_[index];
  std::string problem = has_result ? check_result(index) : "";
  if (problem.empty()) problem = check_surroundings(index);
  slot.posted = false;
  write_garbage(index);
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
  if (region == tables_region_) return check_table_access(offset, bytes, write);
  const bool sends = region == send_region_;
  const auto wrong = [&](const std::string& why) {
    return access_text(sends ? "send" : "receive", offset, bytes, write) + why;
  };
  if (sends && write) return wrong("the card may only read it");
  const uint64_t stride = sends ? send_stride_ : receive_stride_;
  const uint64_t index = offset / stride;
  if (index >= slots_.size()) return wrong("outside the region");
  const Slot& slot = slots_[index];
  if (!slot.posted)
    return wrong("the buffer is the user's" +
                 (slot.used ? ", sequence " + std::to_string(slot.sequence) + " is complete" : ""));
  const uint64_t begin = index * stride + slot.shift;
  const Blocks own = blocks(slot);
  const uint32_t sent = slot.operation.in_place ? 0 : own.sent();
  const uint32_t count = sends ? sent : own.received();
  const uint64_t block = slot.operation.block_bytes;
  if (offset < begin || offset + bytes > begin + block * count)
    return wrong("outside the buffers of sequence " + std::to_string(slot.sequence));
  if (!has_parts(slot.operation.operation) || bytes == 0) return {};
  // Parts without a gap between them may be read together.
  const uint64_t end = offset - begin + bytes;
  uint64_t covered = offset - begin;
  for (uint64_t place = covered / block; place < count && covered < end; place++) {
    const auto i = static_cast<uint32_t>(sends ? place : count - 1 - place);
    const Extent part = sends ? own.sent_extent(i) : own.received_extent(i);
    if (part.offset > covered) break;
    covered = part.offset + part.bytes;
    if (write) break;
  }
  if (covered < end) return wrong("beyond a part of sequence " + std::to_string(slot.sequence));
  return {};
}

// A table is the user's again at the end as buffers are, though what a late read finds there may
// harm nobody.
std::string UserMemory::check_table_access(uint64_t offset, uint64_t bytes, bool write) const {
  const auto wrong = [&](const std::string& why) {
    return access_text("tables", offset, bytes, write) + why;
  };
  if (write) return wrong("the card may only read it");
  const uint64_t index = offset / table_stride_;
  if (index >= slots_.size()) return wrong("outside the region");
  const Slot& slot = slots_[index];
  const std::string sequence = "sequence " + std::to_string(slot.sequence);
  if (!slot.posted)
    return wrong("the table is the user's" + (slot.used ? ", " + sequence + " is complete" : ""));
  if (offset + bytes > index * table_stride_ + blocks(slot).named_parts() * sizeof(peal_part))
    return wrong("outside the table of " + sequence);
  return {};
}

// Tells where the wrong word at this offset of a block of the result comes from,
// when it is a known one.
std::string UserMemory::describe(const Slot& slot, uint64_t offset, uint64_t found) const {
  const uint32_t targets = buffer_sizes(slot.operation.operation, shape_.ranks).send;
  const auto text = [targets](const std::string& what, const BlockName& name) {
    return "it is " + what + " of rank " + std::to_string(name.from) +
           (targets > 1 ? " for rank " + std::to_string(name.to) : "");
  };
  const uint64_t word = offset / 8 * kPatternStep;
  for (uint64_t back = 0; back <= slot.sequence && back < 64; back++)
    for (BlockName name; name.from < shape_.ranks; name.from++)
      for (name.to = 0; name.to < targets; name.to++)
        if (found == block_base(slot.sequence - back, name) + word)
          return text("the block, of " + std::to_string(back) + " operations before,", name);
  for (BlockName name; name.from < shape_.ranks; name.from++)
    for (name.to = 0; name.to < targets; name.to++)
      for (uint64_t at = 0; at < slot.operation.block_bytes; at += 8)
        if (found == block_base(slot.sequence, name) + at / 8 * kPatternStep)
          return text("byte " + std::to_string(at) + " of the block", name);
  return "unknown bytes " + std::to_string(found);
}

}  // namespace peal::sim
