// SPDX-License-Identifier: BSD-2-Clause
// Callbacks run on DPDK's telemetry thread. They read counters that the loop writes: each is one
// aligned word, so a figure is right, though two figures may be of different turns.
#include "emulator/nic/telemetry.h"

#include <rte_telemetry.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>

#include "emulator/common/counters_json.h"

namespace peal::nic {
namespace {

std::mutex loops_mutex;  // held while a callback reads
const NicLoops* telemetry_loops = nullptr;

int cards(const char*, const char*, rte_tel_data* data) {
  const std::lock_guard lock(loops_mutex);
  if (telemetry_loops == nullptr) return -ESHUTDOWN;
  rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
  for (uint32_t i = 0; i < telemetry_loops->card_count(); i++)
    rte_tel_data_add_array_int(data, static_cast<int>(i));
  return 0;
}

int counters(const char*, const char* parameters, rte_tel_data* data) {
  const std::lock_guard lock(loops_mutex);
  if (telemetry_loops == nullptr) return -ESHUTDOWN;
  if (parameters == nullptr) return -EINVAL;
  uint32_t card = 0;
  const char* const end = parameters + std::strlen(parameters);
  const auto [stop, error] = std::from_chars(parameters, end, card);
  if (error != std::errc() || stop != end || card >= telemetry_loops->card_count()) return -EINVAL;
  const uint64_t* const values = card_counters(telemetry_loops->runner(card).card());
  rte_tel_data_start_dict(data);
  for (uint32_t i = 0; i < PEAL_COUNTER_COUNT; i++)
    rte_tel_data_add_dict_u64(data, emulator::counter_name(i), values[i]);
  return 0;
}

int wire(const char*, const char*, rte_tel_data* data) {
  const std::lock_guard lock(loops_mutex);
  if (telemetry_loops == nullptr) return -ESHUTDOWN;
  SwitchCounts frames;
  RingCounts rings;
  for (uint32_t i = 0; i < telemetry_loops->count(); i++) {
    const FrameSwitch& one = telemetry_loops->loop(i).frame_switch();
    frames.sent += one.counts().sent;
    frames.sent_bytes += one.counts().sent_bytes;
    frames.no_such_card += one.counts().no_such_card;
    rings.delivered += one.rings().counts().delivered;
    rings.ring_full += one.rings().counts().ring_full;
  }
  rte_tel_data_start_dict(data);
  rte_tel_data_add_dict_u64(data, "sent", frames.sent);
  rte_tel_data_add_dict_u64(data, "sent_bytes", frames.sent_bytes);
  rte_tel_data_add_dict_u64(data, "delivered", rings.delivered);
  rte_tel_data_add_dict_u64(data, "no_such_card", frames.no_such_card);
  rte_tel_data_add_dict_u64(data, "ring_full", rings.ring_full);
  return 0;
}

}  // namespace

std::string offer_telemetry(const NicLoops& loops) {
  static_assert(PEAL_COUNTER_COUNT <= RTE_TEL_MAX_DICT_ENTRIES);
  {
    const std::lock_guard lock(loops_mutex);
    telemetry_loops = &loops;
  }
  if (rte_telemetry_register_cmd("/peal/cards", cards, "Cards of this process. No parameters.") ||
      rte_telemetry_register_cmd("/peal/counters", counters,
                                 "Counters of a card. Parameter: the card's index.") ||
      rte_telemetry_register_cmd("/peal/wire", wire, "Counters of the wire. No parameters."))
    return "cannot register telemetry commands";
  return {};
}

void withdraw_telemetry() {
  const std::lock_guard lock(loops_mutex);
  telemetry_loops = nullptr;
}

}  // namespace peal::nic
