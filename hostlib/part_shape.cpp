// SPDX-License-Identifier: BSD-2-Clause
// What tables of parts were written for; see part_shape.h.
#include "hostlib/part_shape.h"

namespace peal::host {
namespace {

void append(const Blocks& blocks, std::vector<size_t>* numbers) {
  numbers->insert(numbers->end(), blocks.bytes, blocks.bytes + blocks.count);
  if (blocks.offsets == nullptr) return;
  numbers->insert(numbers->end(), blocks.offsets, blocks.offsets + blocks.count);
}

}  // namespace

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
