// SPDX-License-Identifier: BSD-2-Clause
// What tables of parts were written for; see part_shape.h.
#include "hostlib/part_shape.h"

#include <cstring>

namespace peal::host {
namespace {

// Where the numbers go on after these; null where they differ.
const size_t* skip_same(const size_t* numbers, const size_t* array, uint32_t count) {
  const size_t bytes = count * sizeof(*array);
  return array != nullptr && memcmp(numbers, array, bytes) == 0 ? numbers + count : nullptr;
}

const size_t* skip_same(const size_t* numbers, const Blocks& blocks) {
  numbers = skip_same(numbers, blocks.bytes, blocks.count);
  if (numbers == nullptr || blocks.offsets == nullptr) return numbers;
  return skip_same(numbers, blocks.offsets, blocks.count);
}

void append(const Blocks& blocks, std::vector<size_t>* numbers) {
  numbers->insert(numbers->end(), blocks.bytes, blocks.bytes + blocks.count);
  if (blocks.offsets == nullptr) return;
  numbers->insert(numbers->end(), blocks.offsets, blocks.offsets + blocks.count);
}

}  // namespace

bool PartShape::is_of(const PartArguments& arguments) const {
  const auto same = [](const Side& side, const Blocks& blocks) {
    return side.address == blocks.address && side.count == blocks.count &&
           side.offsets == (blocks.offsets != nullptr);
  };
  if (memory_version_ != arguments.memory_version || operation_ != arguments.operation ||
      !same(receive_, arguments.receive) || !same(send_, arguments.send)) {
    return false;
  }
  const size_t* rest = skip_same(numbers_.data(), arguments.receive);
  if (rest == nullptr || send_.count == 0) return rest != nullptr;
  return skip_same(rest, arguments.send) != nullptr;
}

void PartShape::remember(const PartArguments& arguments, const Posting& posting) {
  forget();
  const Blocks& send = arguments.send;
  const Blocks& receive = arguments.receive;
  numbers_.clear();
  append(receive, &numbers_);
  if (send.count != 0) append(send, &numbers_);
  operation_ = arguments.operation;
  receive_ = {receive.address, receive.count, receive.offsets != nullptr};
  send_ = {send.address, send.count, send.offsets != nullptr};
  posting_ = posting;
  memory_version_ = arguments.memory_version;
}

}  // namespace peal::host
