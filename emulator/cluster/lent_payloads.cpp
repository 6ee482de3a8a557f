// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/lent_payloads.h"

#include <algorithm>
#include <cstring>

namespace peal::sim {
namespace {

constexpr int kNothing = 0x6e;  // what is in a packet that carries no bytes

void copy_in(Payload& payload) {
  std::memcpy(payload.bytes, payload.lent.source, payload.lent.bytes);
  payload.lent_in = nullptr;
}

}  // namespace

void LentPayloads::lend(Payload& payload, const LentBytes& lent) {
  std::memset(payload.bytes, kNothing, lent.bytes);
  payload.lent_in = &out_;
  payload.lent = lent;
  out_.push_back(&payload);
}

void LentPayloads::bring(Payload& payload) {
  std::erase(*payload.lent_in, &payload);
  copy_in(payload);
}

void LentPayloads::take_back(LenderId who) {
  std::erase_if(out_, [who](Payload* payload) {
    if (payload->lent.who != who) return false;
    copy_in(*payload);
    return true;
  });
}

void LentPayloads::take_back_all() {
  for (Payload* payload : out_) copy_in(*payload);
  out_.clear();
}

void LentPayloads::deliver(Payload& payload) {
  std::erase(*payload.lent_in, &payload);
  payload.lent_in = nullptr;
  payload.delivered = true;
}

}  // namespace peal::sim
