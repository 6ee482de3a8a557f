// SPDX-License-Identifier: BSD-2-Clause
// Contexts: opening and closing the connection to a card.
#include "hostlib/handles.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "hostlib/ended.h"
#include "hostlib/programs.h"
#include "hostlib/rings.h"
#include "hostlib/sized.h"
#include "hostlib/url.h"

namespace peal::host {
namespace {

constexpr uint64_t kSpinMaxUs = 60'000'000;
// One that is silent for longer counts as gone; and copies that take longer cards give up.
constexpr int kClosePatienceMs = Liveness::kPatienceNs / 1'000'000;

peal_error read_spin(uint64_t* spin_ns) {
  const char* text = getenv("PEAL_SPIN_US");
  uint64_t microseconds = kSpinDefaultNs / 1000;
  if (text != nullptr && *text != '\0') {
    const char* end = text + strlen(text);
    const auto [stop, bad] = std::from_chars(text, end, microseconds);
    if (bad != std::errc{} || stop != end || microseconds > kSpinMaxUs) {
      return fail(PEAL_ERR_INVALID_ARGUMENT,
                  "$PEAL_SPIN_US is \"%s\": expected microseconds, at most %llu", text,
                  static_cast<unsigned long long>(kSpinMaxUs));
    }
  }
  *spin_ns = microseconds * 1000;
  return PEAL_OK;
}

peal_error read_programs(bool* wanted) {
  const char* text = getenv("PEAL_PROGRAMS");
  if (text == nullptr || *text == '\0') return PEAL_OK;
  const std::string_view word = text;
  if (word != "0" && word != "1") {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "$PEAL_PROGRAMS is \"%s\": expected 0 or 1", text);
  }
  *wanted = word == "1";
  return PEAL_OK;
}

peal_error open_context(const char* card, peal_context** context) {
  if (card == nullptr) card = getenv("PEAL_CARD");
  if (card == nullptr || *card == '\0') {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "no card was named and $PEAL_CARD is not set: try emu:PATH or char:/dev/peal0");
  }
  auto made = std::make_unique<peal_context>();
  peal_error error = read_spin(&made->habit.spin_ns);
  if (error == PEAL_OK) error = made->cache.read_limit();
  if (error == PEAL_OK) error = read_programs(&made->programs);
  if (error != PEAL_OK) return error;
  CardUrl url;
  error = parse_card_url(card, &url);
  if (error != PEAL_OK) return error;
  error = url.kind == CardUrl::Kind::kSocket ? open_socket_transport(url, &made->transport)
                                             : open_char_transport(url, &made->transport);
  if (error != PEAL_OK) return error;
  if (made->transport->departures() != nullptr) made->cache.watch(*made->transport->departures());
  start_rings(*made);
  *context = made.release();
  return PEAL_OK;
}

void stop_watcher(peal_context& context) {
  {
    const std::lock_guard guard(context.mutex);
    context.stopping = true;
    context.rearmed.notify_all();
    if (context.sleeper) context.transport->wake();
  }
  if (context.watcher.joinable()) context.watcher.join();
  context.event_fd.reset();
}

void close_context(peal_context* context) {
  if (context->owner.inherited()) {
    // Its threads, locks and mappings are the parent's or were never copied, so the rest stays.
    context->guard.give_up();
    return;
  }
  stop_watcher(*context);
  // Before its caller takes away what it registered.
  if (context->transport->connected()) context->transport->end_context(kClosePatienceMs);
  // Where nobody waited for it the card may be using it still: it has mapped it, or pinned it, by
  // itself, until it finds the connection closed.
  const auto unmap = [&](const Allocation& memory) { context->transport->unmap(memory); };
  for (const Region& region : context->memory.regions()) {
    if (region.allocated) unmap(region.allocation);
  }
  for (const auto& group : context->groups) {
    const Allocation& parts = group->part_tables.memory();
    if (parts.address != nullptr) unmap(parts);
    for (const Allocation& memory : orphan_programs(*group)) unmap(memory);
  }
  for (const auto& each : context->persistents) {
    for (peal_program* program : each->programs)
      if (program != nullptr) delete_program(program);
  }
  for (peal_program* program : context->ended_programs) delete_program(program);
  for (const Allocation& left : context->left_memory) unmap(left);
  for (const Allocation& tables : context->tables.leave()) unmap(tables);
  delete context;
}

}  // namespace
}  // namespace peal::host

void peal_context::leave(peal_context& context) noexcept {
  if (context.transport != nullptr) context.transport->leave_to_parent();
  context.event_fd.leave();
}

using peal::host::fail;

extern "C" peal_error peal_open_version(uint32_t api_version, const char* card,
                                        peal_context** context) {
  if (context == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_open: context is null");
  *context = nullptr;
  if (api_version == 0 || api_version > PEAL_API_VERSION) {
    return fail(PEAL_ERR_BAD_VERSION,
                "the program was built with version %u of peal.h, this library (%s) knows 1 to %u",
                api_version, peal_version(), PEAL_API_VERSION);
  }
  return peal::host::guarded([&] { return peal::host::open_context(card, context); });
}

extern "C" void peal_close(peal_context* context) {
  if (context != nullptr) peal::host::close_context(context);
}

extern "C" peal_error peal_card_query(peal_context* context, peal_card_info* info) {
  if (context == nullptr || info == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_card_query: an argument is null");
  }
  const peal_error error = peal::host::check_owner(*context, "peal_card_query");
  if (error != PEAL_OK) return error;
  const peal_device& device = context->ring.card->device;
  peal_card_info whole = {};
  memcpy(whole.mac, device.mac, sizeof(whole.mac));
  whole.card_index = device.card_index;
  whole.incarnation = device.incarnation;
  whole.ranks_max = device.ranks_max;
  whole.channels = device.channels;
  whole.parked_max = device.parked_max;
  whole.mtu_bytes = device.mtu_bytes;
  whole.ring_entries = peal::host::request_count(*context);
  whole.dead_timeout_us = device.dead_timeout_us;
  whole.channel_bytes = device.channel_bytes;
  whole.geometry = device.geometry;
  return peal::host::give_struct(whole, "peal_card_info", info);
}
