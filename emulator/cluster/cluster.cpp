// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/cluster.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "emulator/cluster/mix.h"
#include "emulator/cluster/node.h"
#include "emulator/common/packet_text.h"
#include "firmware/card_types.h"
#include "firmware/group/member.h"
#include "firmware/payload.h"
#include "firmware/wire/wire_check.h"

namespace peal::sim {

namespace {

constexpr uint64_t kFaultStream = 1;
constexpr uint64_t kJitterStream = 2;

uint64_t hash_frame(uint64_t hash, TimeNs now_ns, const peal_wire_header& header) {
  uint64_t words[PEAL_HEADER_BYTES / 8];
  static_assert(sizeof(words) == sizeof(header));
  std::memcpy(words, &header, sizeof(words));
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  hash ^= now_ns;
  static_assert(std::size(words) == 8);
  add(words[0]), add(words[1]), add(words[2]), add(words[3]);
  add(words[4]), add(words[5]), add(words[6]), add(words[7]);
  return hash;
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options, Observer* observer, HostEvents* hosts)
    : options_(options),
      observer_(observer),
      hosts_(hosts),
      jitter_(mix(options.seed, kJitterStream)),
      pool_(kPayloadBytes, options.check_seals),
      torus_(options.costs.torus),
      wire_(*this, pool_, events_),
      faulty_(wire_, options.faults, mix(options.seed, kFaultStream)) {
  nodes_.reserve(options.cards);
  const NodeOptions node{options.seed,         options.timeouts,  options.packets_per_card,
                         options.sent_packets, options.checksums, options.lends,
                         options.dma_batch};
  Surroundings& surroundings = *this;
  for (uint32_t i = 0; i < options.cards; i++)
    nodes_.push_back(std::make_unique<Node>(i, node, surroundings, pool_, memory_));
  for (const auto& each : nodes_) places_.push_back({each.get(), each->card});
}

Cluster::~Cluster() = default;

void Cluster::violation(const char* check, const char* text) {
  if (observer_ != nullptr) observer_->on_violation(now_ns_, check, text);
}

// --- the run ---

// What the next event needs lies in no cache: many cards have more memory than that, and the one
// whose turn it is was last looked at long ago. So its first lines are fetched while others have
// their turn. (Not what can only be found by a look at them: that look would be waited for.)
void Cluster::look_ahead() {
  const Event* const event = events_.foresee();
  if (event == nullptr || event->kind() == EventKind::kHost) return;
  const auto& [node, card] = places_[event->card];
  __builtin_prefetch(&node->card);
  __builtin_prefetch(&node->turn_ns);
  __builtin_prefetch(&node->packets_held);
  __builtin_prefetch(&card->now);
  __builtin_prefetch(&card->timers);
  __builtin_prefetch(card->timer_entries);
  __builtin_prefetch(card->members);
  switch (event->kind()) {
    case EventKind::kArrival:
    case EventKind::kQueued:
    case EventKind::kHop: {
      const SimPacket* const packet = pool_.at(event->item);
      __builtin_prefetch(packet);
      __builtin_prefetch(&packet->shared);
      break;
    }
    case EventKind::kDmaDone:
      __builtin_prefetch(&card->dma[dmas_[event->item].request.token]);
      break;
    case EventKind::kTimer:
    case EventKind::kSubmission:
    case EventKind::kHost:
      break;
  }
}

bool Cluster::step() {
  if (events_.empty()) return false;
  const Event event = events_.pop();
  now_ns_ = event.at_ns;
  counts_.events++;
  look_ahead();
  const bool of_card = event.kind() != EventKind::kHost && event.kind() != EventKind::kHop;
  if (of_card && nodes_[event.card]->frozen_until_ns > now_ns_) {
    postpone(*nodes_[event.card], event);
    return true;
  }
  switch (event.kind()) {
    case EventKind::kArrival:
      arrive(*nodes_[event.card], event.item);
      break;
    case EventKind::kQueued:
      wire_.arrived();
      take_packet(*nodes_[event.card], pool_.at(event.item));
      break;
    case EventKind::kDmaDone:
      finish_dma(*nodes_[event.card], event.item);
      break;
    case EventKind::kTimer:
      run_timer(*nodes_[event.card], event.item);
      break;
    case EventKind::kSubmission:
      take_submissions(*nodes_[event.card]);
      break;
    case EventKind::kHop:
      pass_on(pool_.at(event.item));
      break;
    case EventKind::kHost:
      hosts_->on_host_event(now_ns_, event.item);
      break;
  }
  return true;
}

void Cluster::at(TimeNs when_ns, uint32_t item) {
  events_.push(std::max(when_ns, now_ns_), EventKind::kHost, 0, item);
}

// What happens to a card whose runner is stopped waits, in order, for it to go on; the queue for
// arrivals has its end.
void Cluster::postpone(Node& node, const Event& event) {
  if (event.kind() == EventKind::kArrival && node.frozen_arrivals++ >= options_.receive_queue) {
    wire_.arrived();
    counts_.dropped_queue++;
    release(pool_.at(event.item));
    return;
  }
  if (event.kind() == EventKind::kTimer && event.item == node.timer_item)
    node.timer_at_ns = node.frozen_until_ns;
  const EventKind kind = event.kind() == EventKind::kArrival ? EventKind::kQueued : event.kind();
  events_.push(node.frozen_until_ns, kind, event.card, event.item);
}

TimeNs Cluster::begin_turn(Node& node, TimeNs cost_ns) {
  const TimeNs start_ns = std::max(now_ns_, node.busy_until_ns);
  node.turn_ns = start_ns + cost_ns;
  return start_ns;
}

void Cluster::end_turn(Node& node) {
  node.busy_until_ns = node.turn_ns;
  if (node.completed) {
    node.completed = false;
    node.card_windows->flush();
    node.admin->housekeeping();
  } else if (node.admin->closing_contexts() > 0) {
    node.admin->housekeeping();
  }
  const TimeNs due_ns = std::max(card_next_deadline(*node.card), node.busy_until_ns);
  if (due_ns >= node.timer_at_ns) return;
  node.timer_at_ns = due_ns;
  events_.push(node.timer_at_ns, EventKind::kTimer, node.index, ++node.timer_item);
}

// A timer event is left in the queue when its deadline moves away; it then only looks at the new
// one. While the processor works off what it has, more may arrive, which goes first; but only once:
// a card that never catches up must still ask for what it lacks.
void Cluster::run_timer(Node& node, uint32_t item) {
  if (item != node.timer_item || node.silent) return;
  if (node.busy_until_ns > now_ns_ && !node.timer_gave_way) {
    node.timer_gave_way = true;
    node.timer_at_ns = node.busy_until_ns;
    events_.push(node.timer_at_ns, EventKind::kTimer, node.index, item);
    return;
  }
  node.timer_gave_way = false;
  node.timer_at_ns = kNever;
  const TimeNs deadline_ns = card_next_deadline(*node.card);
  if (deadline_ns == kNever) return;
  if (deadline_ns > now_ns_) {
    node.timer_at_ns = deadline_ns;
    events_.push(deadline_ns, EventKind::kTimer, node.index, ++node.timer_item);
    return;
  }
  const TimeNs turn_ns = begin_turn(node, std::max<TimeNs>(options_.costs.timer_ns, 1));
  card_on_timer(*node.card, turn_ns);
  end_turn(node);
}

// --- the wire ---

void Cluster::release(SimPacket* packet) {
  if (!pool_.release(packet))
    violation("sealed-payload", "a payload was written after it was sent");
}

bool Cluster::is_cut(uint32_t from_card, uint32_t to_card, TimeNs now_ns) const {
  return std::any_of(options_.cuts.begin(), options_.cuts.end(), [&](const WireCut& cut) {
    return cut.from_card == from_card && cut.to_card == to_card && now_ns >= cut.from_ns &&
           now_ns < cut.until_ns;
  });
}

// On a link.
TimeNs Cluster::time_of(const SimPacket& packet) const {
  const uint64_t frame_bytes =
      uint64_t{PEAL_HEADER_BYTES} + packet.payload_bytes + options_.costs.frame_extra_bytes;
  return frame_bytes * options_.costs.byte_gap_ps / 1000;
}

void Cluster::transmit(Node& node, SimPacket* packet) {
  const peal_wire_header& header = *packet->header;
  node.turn_ns += options_.costs.send_ns;
  counts_.sent++;
  if (!is_short_enough(header)) violation("wire", "a card sent more than an MTU");
  pool_.seal(packet, header.length);
  packet->payload_bytes = header.length;
  const uint32_t to_card = emulator::card_of_mac(header.destination);
  trace_hash_ = hash_frame(trace_hash_, node.turn_ns, header);
  const Payload& payload = *packet->shared;
  const uint8_t* bytes = payload.lent_in != nullptr ? payload.lent.source : packet->payload;
  if (observer_ != nullptr)
    observer_->on_send(node.turn_ns, {node.index, to_card, &header, bytes, packet->payload_bytes});
  if (node.silent || to_card >= nodes_.size()) {
    if (!node.silent) counts_.dropped_unknown++;
    release(packet);
    return;
  }
  if (!options_.cuts.empty() && is_cut(node.index, to_card, node.turn_ns)) {
    counts_.dropped_cut++;
    release(packet);
    return;
  }

  const TimeNs bytes_ns = time_of(*packet);
  TimeNs& out_free_ns = node.link_out_free_ns[packet->engine];
  const TimeNs head_ns = std::max(node.turn_ns, out_free_ns);
  out_free_ns = head_ns + bytes_ns + options_.costs.packet_gap_ns;
  if (torus_.any()) {
    packet->from_card = packet->at_card = node.index;
    packet->sent_ns = node.turn_ns;
    in_torus_++;
    events_.push(head_ns, EventKind::kHop, node.index, packet->index);
    return;
  }
  const TimeNs arrival_ns = head_ns + bytes_ns + options_.costs.wire_latency_ns;
  faulty_.carry({packet, node.index, to_card, node.turn_ns, arrival_ns});
}

// The head of a frame is at a card's switch: there it is at its end, or takes its next link.
void Cluster::pass_on(SimPacket* packet) {
  const uint32_t to_card = emulator::card_of_mac(packet->header->destination);
  const TimeNs bytes_ns = time_of(*packet);
  if (packet->at_card == to_card) {
    in_torus_--;
    faulty_.carry({packet, packet->from_card, to_card, packet->sent_ns,
                   now_ns_ + bytes_ns + options_.costs.wire_latency_ns});
    return;
  }
  const Torus::Hop hop = torus_.hop(packet->at_card, to_card);
  packet->at_card = hop.next;
  const TimeNs head_ns = torus_.enter(hop.link, now_ns_, bytes_ns) + options_.costs.hop_ns;
  events_.push(head_ns, EventKind::kHop, hop.next, packet->index);
}

void Cluster::inject(uint32_t card, const peal_wire_header& header, const uint8_t* payload,
                     uint32_t payload_bytes, uint32_t frame_bytes) {
  Node& node = *nodes_[card];
  SimPacket* packet = pool_.allocate();
  packet->header_bytes = header;
  if (payload_bytes > 0) std::memcpy(packet->payload, payload, payload_bytes);
  packet->payload_bytes = payload_bytes;
  packet->holds = 0;
  packet->holder = card;
  pool_.seal(packet, payload_bytes);
  node.packets_held++;
  counts_.received++;
  const TimeNs turn_ns = begin_turn(node, options_.costs.packet_ns);
  card_on_packet(*node.card, packet, frame_bytes, turn_ns);
  end_turn(node);
}

void Cluster::arrive(Node& node, uint32_t item) {
  SimPacket* packet = pool_.at(item);
  TimeNs ready_ns = now_ns_;
  if (!torus_.any()) {
    // Many senders, one link in for each engine: it takes one frame at a time. (In a torus the last
    // link of a frame's way is the link in.)
    TimeNs& in_free_ns = node.link_in_free_ns[packet->engine];
    in_free_ns = ready_ns = std::max(now_ns_, in_free_ns + time_of(*packet));
  }
  // Until it has come in whole the processor does what else there is.
  if (ready_ns > now_ns_) return events_.push(ready_ns, EventKind::kQueued, node.index, item);
  wire_.arrived();
  take_packet(node, packet);
}

// A frame that has come in whole, and has its place in the card's queue.
void Cluster::take_packet(Node& node, SimPacket* packet) {
  if (node.silent) {
    counts_.dropped_silent++;
    release(packet);
    return;
  }
  if (node.waiting.count(now_ns_) >= options_.receive_queue) {
    counts_.dropped_queue++;
    release(packet);
    return;
  }
  if (node.packets_held >= node.room()) {
    counts_.dropped_full++;
    release(packet);
    return;
  }
  const uint32_t frame_bytes = PEAL_HEADER_BYTES + packet->payload_bytes;
  const TimeNs turn_ns = begin_turn(node, options_.costs.packet_ns);
  if (turn_ns > now_ns_) node.waiting.add(turn_ns);
  node.packets_held++;
  counts_.received++;
  packet->holds = 0;
  packet->holder = node.index;
  card_on_packet(*node.card, packet, frame_bytes, turn_ns);
  end_turn(node);
}

// --- DMA, submissions, completions ---

bool Cluster::start_dma(Node& node, const DmaRequest& request) {
  if (node.dma_under_way >= options_.dma_per_card) {
    counts_.dma_refused++;
    return false;
  }
  const auto& [host, memory, packet, bytes] = request.transfer;
  const Dma dma{request, node.number_of(host.region, host.offset, bytes), node.boots,
                ++node.dma_started};
  if (observer_ != nullptr)
    observer_->on_dma(node.turn_ns, {node.index, dma.number, host.offset, bytes, request.writes,
                                     false, dma.number != kNoRegionNumber});
  uint32_t item;
  if (free_dmas_.empty()) {
    item = static_cast<uint32_t>(dmas_.size());
    dmas_.push_back(dma);
  } else {
    item = free_dmas_.back();
    free_dmas_.pop_back();
    dmas_[item] = dma;
  }
  node.dma_under_way++;
  counts_.dma_most = std::max(counts_.dma_most, node.dma_under_way);
  const CostModel& costs = options_.costs;
  const bool apart = costs.dma_duplex != 0 && request.writes;
  TimeNs& free_ns = apart ? node.dma_write_free_ns : node.dma_free_ns;
  free_ns = std::max(node.turn_ns, free_ns) + costs.dma_gap_ns +
            uint64_t{bytes} * costs.dma_byte_gap_ps / 1000;
  TimeNs done_ns = free_ns + costs.dma_latency_ns;
  if (costs.dma_jitter_ns > 0) done_ns += jitter_.below(costs.dma_jitter_ns);
  events_.push(done_ns, EventKind::kDmaDone, node.index, item);
  return true;
}

bool Cluster::read_host(Node& node, const Dma& dma) {
  const auto& [host, memory, packet, bytes] = dma.request.transfer;
  const uint8_t* source = dma.request.lent ? node.regions->mapped(host, bytes) : nullptr;
  if (source == nullptr) return node.regions->copy_in(host, memory, bytes);
  counts_.dma_lent++;
  Payload& payload = *static_cast<const SimPacket*>(packet)->shared;
  node.lent.lend(payload, {.source = source,
                           .bytes = bytes,
                           .who = dma.request.who,
                           .whom = dma.request.whom,
                           .card = node.index,
                           .region = dma.number,
                           .offset = host.offset});
  return true;
}

// From where the host of another card has them: read now, and not before.
bool Cluster::write_lent(Node& node, const DmaTransfer& transfer, Payload& payload) {
  const LentBytes& lent = payload.lent;
  const bool own = lent.card == node.index;
  if (payload.delivered && !own) violation("lent", "what was delivered is written again");
  if (observer_ != nullptr)
    observer_->on_dma(now_ns_,
                      {lent.card, lent.region, lent.offset, lent.bytes, false, true, true});
  if (!node.regions->copy_out(lent.source, transfer.host, transfer.bytes)) return false;
  const bool for_it = !own && lent.whom == ReadFor::kOneCard;
  if (for_it && !payload.delivered) LentPayloads::deliver(payload);
  return true;
}

bool Cluster::write_host(Node& node, const DmaTransfer& transfer) {
  const auto& [host, memory, packet, bytes] = transfer;
  Payload* payload = packet == nullptr ? nullptr : static_cast<const SimPacket*>(packet)->shared;
  if (payload != nullptr && (payload->lent_in != nullptr || payload->delivered)) {
    if (memory == payload->bytes && bytes == payload->lent.bytes)
      return write_lent(node, transfer, *payload);
    // A part of it; or its header's.
    if (payload->lent_in != nullptr) LentPayloads::bring(*payload);
  }
  return node.regions->copy_out(memory, host, bytes);
}

// The bytes move as late as they may:
// whoever lets go of memory before this has made a mistake that shows.
void Cluster::finish_dma(Node& node, uint32_t item) {
  const Dma dma = dmas_[item];
  free_dmas_.push_back(item);
  if (dma.boot != node.boots) return;  // of a card that is no more
  node.dma_under_way--;
  if (node.silent) return;
  if (dma.order < node.dma_newest_done) counts_.dma_overtaken++;
  node.dma_newest_done = std::max(node.dma_newest_done, dma.order);
  const HostAddress host = dma.request.transfer.host;
  const uint32_t bytes = dma.request.transfer.bytes;
  const bool write = dma.request.writes;
  const bool held = dma.number != kNoRegionNumber &&
                    node.number_of(host.region, host.offset, bytes) == dma.number;
  bool ok = false;
  if (held && memory_.reachable(dma.number))
    ok = write ? write_host(node, dma.request.transfer) : read_host(node, dma);
  if (observer_ != nullptr)
    observer_->on_dma(now_ns_, {node.index, dma.number, host.offset, bytes, write, true, held});
  const TimeNs turn_ns = begin_turn(node, options_.costs.dma_event_ns);
  card_on_dma_done(*node.card, dma.request.token, ok, turn_ns);
  end_turn(node);
}

void Cluster::ring_doorbell(uint32_t card) {
  nodes_[card]->doorbells++;
  events_.push(now_ns_ + options_.costs.doorbell_ns, EventKind::kSubmission, card, 0);
}

bool Cluster::submit(uint32_t card, uint32_t context, const peal_submission& entry) {
  if (peal_host_ring_submit(&nodes_[card]->windows[context].ring, &entry) == 0) return false;
  ring_doorbell(card);
  return true;
}

// One of each window at a time. The doorbells of those that waited for room have been answered in
// vain: the card goes on by itself until it has taken them, or lacks room again.
void Cluster::take_submissions(Node& node) {
  node.doorbells--;
  if (node.silent) return;
  const TimeNs turn_ns = begin_turn(node, options_.costs.submission_ns);
  node.card_windows->poll(1, turn_ns);
  end_turn(node);
  if (node.doorbells == 0 && node.card_windows->has_unread()) ring_doorbell(node.index);
}

void Cluster::complete(Node& node, uint32_t context, const peal_completion& entry) {
  if (node.silent) return;
  trace_hash_ = mix(trace_hash_ ^ node.turn_ns, entry.cookie ^ entry.sequence,
                    (uint64_t{node.index} << 48) ^ (uint64_t{entry.status} << 32) ^ context);
  node.completed = true;
  node.card_windows->complete(context, entry);
  if (observer_ != nullptr) observer_->on_completion(node.turn_ns, node.index, context, entry);
  if (hosts_ != nullptr) hosts_->on_completion(node.turn_ns, node.index, context, entry);
}

bool Cluster::poll(uint32_t card, uint32_t context, peal_completion* entry) {
  Node& node = *nodes_[card];
  Node::Window& window = node.windows[context];
  if (window.gone) return false;
  const bool found = peal_host_ring_poll(&window.ring, entry) != 0;
  // The card may have waited for room, of which it hears where nothing is found.
  if (!node.silent && node.card_windows->has_blocked()) ring_doorbell(card);
  return found;
}

void Cluster::reset_window(uint32_t card, uint32_t context) {
  Node::Window& window = nodes_[card]->windows[context];
  if (window.gone) return;
  window.ring.host->reset_epoch.value++;
  ring_doorbell(card);
}

void Cluster::spoil_window(uint32_t card, uint32_t context) {
  Node::Window& window = nodes_[card]->windows[context];
  if (window.gone) return;
  window.ring.host->indices.submission_tail -= 1 + window.ring.entries;
  ring_doorbell(card);
}

// --- administration ---

peal_status Cluster::execute(uint32_t card, uint32_t context, peal_admin_command* command,
                             peal_admin_reply* reply) {
  Node& node = *nodes_[card];
  const TimeNs turn_ns = begin_turn(node, 0);
  const peal_status status = node.execute(command, context, turn_ns, reply);
  end_turn(node);
  return status;
}

peal_status Cluster::open_context(uint32_t card, uint32_t* context) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_OPEN_CONTEXT;
  const peal_status status = execute(card, emulator::kNoContext, &command, &reply);
  *context = reply.u.open.context;
  return status;
}

void Cluster::close_context(uint32_t card, uint32_t context) {
  Node& node = *nodes_[card];
  const TimeNs turn_ns = begin_turn(node, 0);
  node.admin->close_context(context, turn_ns);
  end_turn(node);
}

bool Cluster::context_quiet(uint32_t card, uint32_t context) const {
  const Node& node = *nodes_[card];
  return node.windows[context].gone && card_context_quiet(*node.card, context);
}

peal_status Cluster::register_memory(uint32_t card, uint32_t context, uint32_t region,
                                     uint64_t bytes, uint32_t access, uint32_t* key) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_REGISTER_MEMORY;
  command.u.register_memory.kind = PEAL_MEMORY_PROCESS;
  command.u.register_memory.access = access;
  command.u.register_memory.address = address_of_region(region);
  command.u.register_memory.bytes = bytes;
  const peal_status status = execute(card, context, &command, &reply);
  *key = reply.u.register_memory.key;
  return status;
}

peal_status Cluster::unregister_memory(uint32_t card, uint32_t context, uint32_t key) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_UNREGISTER_MEMORY;
  command.u.unregister_memory.key = key;
  return execute(card, context, &command, &reply);
}

peal_status Cluster::reserve_group(uint32_t card, uint32_t context,
                                   const peal_reserve_group& request, peal_peer_address* address) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_RESERVE_GROUP;
  command.u.reserve = request;
  const peal_status status = execute(card, context, &command, &reply);
  *address = reply.u.reserve.address;
  return status;
}

peal_status Cluster::add_peers(uint32_t card, uint32_t context, const peal_add_peers& request) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_ADD_PEERS;
  command.u.add_peers = request;
  return execute(card, context, &command, &reply);
}

peal_status Cluster::connect_group(uint32_t card, uint32_t context,
                                   const peal_connect_group& request) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_CONNECT_GROUP;
  command.u.connect = request;
  return execute(card, context, &command, &reply);
}

peal_status Cluster::abandon_group(uint32_t card, uint32_t context, uint32_t member) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_ABANDON_GROUP;
  command.u.abandon.member = member;
  return execute(card, context, &command, &reply);
}

peal_status Cluster::commit_program(uint32_t card, uint32_t context,
                                    const peal_commit_program& request, uint32_t* program) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_COMMIT_PROGRAM;
  command.u.commit_program = request;
  const peal_status status = execute(card, context, &command, &reply);
  *program = reply.u.commit_program.program;
  return status;
}

peal_status Cluster::free_program(uint32_t card, uint32_t context, uint32_t program) {
  peal_admin_command command{};
  peal_admin_reply reply;
  command.opcode = PEAL_ADMIN_FREE_PROGRAM;
  command.u.free_program.program = program;
  return execute(card, context, &command, &reply);
}

peal_status Cluster::ask_nonsense(uint32_t card, uint32_t context, uint32_t choice) {
  peal_admin_command command{};
  peal_admin_reply reply;
  switch (choice % 8) {
    case 0:
      command.opcode = static_cast<uint16_t>(0x100 + choice / 8 % 0x1000);
      break;
    case 1:
      command.opcode = PEAL_ADMIN_OPEN_CONTEXT;  // it has one
      break;
    case 2:
      command.opcode = PEAL_ADMIN_REGISTER_MEMORY;
      command.u.register_memory.kind = PEAL_MEMORY_PROCESS;
      command.u.register_memory.address = ~uint64_t{0} - choice;
      command.u.register_memory.bytes = uint64_t{1} << 20;
      command.u.register_memory.access = PEAL_ACCESS_READ;
      break;
    case 3:
      command.opcode = PEAL_ADMIN_UNREGISTER_MEMORY;
      command.u.unregister_memory.key = 0xffff0000u | choice;  // a generation far ahead
      break;
    case 4:
      command.opcode = PEAL_ADMIN_RESERVE_GROUP;
      command.u.reserve.ranks = 2;
      command.u.reserve.rank = 2 + choice % 1000;
      break;
    case 5:
      command.opcode = PEAL_ADMIN_CONNECT_GROUP;
      command.u.connect.member = choice | 0x8000;  // a place that no card has
      command.u.connect.group = 1 + choice;
      break;
    case 6:
      command.opcode = PEAL_ADMIN_ABANDON_GROUP;
      command.u.abandon.member = choice | 0x8000;
      break;
    default:
      command.opcode = PEAL_ADMIN_READ_COUNTERS;
      command.u.counters.first = PEAL_COUNTER_COUNT + 1 + choice % 1000;
      break;
  }
  return execute(card, context, &command, &reply);
}

void Cluster::start_at_sequence(uint32_t card, uint32_t handle, uint64_t sequence) {
  Member* member = find_member(*nodes_[card]->card, handle);
  if (member == nullptr || sequence % kChannels != 0) {
    violation("set-up", "no member that could start at that sequence");
    return;
  }
  member->next_sequence = member->started = member->finished = sequence;
  member->recycled = sequence / kEpochOperations;
}

// --- accidents ---

void Cluster::silence(uint32_t card) { nodes_[card]->silent = true; }

void Cluster::restart(uint32_t card) {
  Node& node = *nodes_[card];
  for (uint32_t i = 0; i < pool_.size(); i++) {
    SimPacket* packet = pool_.at(i);
    if (packet->in_use && packet->holder == card) release(packet);
  }
  node.boot();
  node.waiting.clear();
  places_[card].card = node.card;
}

void Cluster::freeze(uint32_t card, TimeNs until_ns) {
  Node& node = *nodes_[card];
  node.frozen_arrivals = 0;
  node.frozen_until_ns = std::max(node.frozen_until_ns, until_ns);
  node.busy_until_ns = std::max(node.busy_until_ns, node.frozen_until_ns);
}

// --- what can be asked ---

peal_device Cluster::device(uint32_t card) const {
  peal_device device{};
  card_describe(*nodes_[card]->card, &device);
  return device;
}

uint64_t Cluster::counter(uint32_t card, peal_counter counter) const {
  return card_counters(*nodes_[card]->card)[counter];
}

uint64_t Cluster::counter(peal_counter counter) const {
  uint64_t sum = 0;
  for (const auto& node : nodes_) sum += card_counters(*node->card)[counter];
  return sum;
}

uint32_t Cluster::packets_held(uint32_t card) const { return nodes_[card]->packets_held; }
uint32_t Cluster::dma_under_way(uint32_t card) const { return nodes_[card]->dma_under_way; }
CardHolds Cluster::holds(uint32_t card) const { return card_holds(*nodes_[card]->card); }
bool Cluster::silent(uint32_t card) const { return nodes_[card]->silent; }
uint32_t Cluster::regions_held(uint32_t card) {
  nodes_[card]->admin->housekeeping();
  return nodes_[card]->regions->used();
}

}  // namespace peal::sim
