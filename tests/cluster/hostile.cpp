// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/hostile.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/names.h"
#include "emulator/cluster/checkers.h"
#include "emulator/cluster/cluster.h"
#include "emulator/cluster/hosts.h"
#include "emulator/cluster/violations.h"
#include "emulator/cluster/world.h"
#include "tests/cluster/plans.h"

namespace peal::sim {

namespace {

Report report_of(const Findings& findings) {
  Report report;
  report.ok = findings.none();
  report.findings = findings.counts();
  report.lines = findings.lines();
  return report;
}

// --- a host that means harm ---

constexpr uint64_t kRegionBytes = 8192;
constexpr uint8_t kCanary = 0xa5;

// A process with one send and one receive region, and one membership.
struct Process {
  uint32_t card = 0;
  uint32_t context = 0;
  uint32_t send_region = 0;
  uint32_t receive_region = 0;
  uint32_t send_key = 0;
  uint32_t receive_key = 0;
  peal_peer_address address{};
};

class HostileHost final : public HostEvents {
 public:
  HostileHost() : violations_(findings_, nullptr), cluster_(options(), &violations_, this) {}

  Report carry_out();

  void on_host_event(TimeNs, uint32_t) override {}
  void on_completion(TimeNs, uint32_t, uint32_t, const peal_completion& entry) override {
    completions_.push_back(entry);
  }

 private:
  struct Bad {
    const char* what;
    peal_status status;
    std::function<void(peal_submission&)> spoil;
  };

  static ClusterOptions options() {
    ClusterOptions options;
    options.cards = 2;
    return options;
  }

  Process open(uint32_t card);
  void make_pair(uint32_t group, Process* first, Process* second);
  void expect_ok(peal_status status, const char* what);
  void drain();
  [[nodiscard]] peal_submission good() const;
  [[nodiscard]] std::vector<Bad> bad_entries() const;
  void post_bad(const Bad& bad);
  void check_canary(const Process& process);

  Findings findings_;
  Violations violations_;
  std::vector<peal_completion> completions_;
  Cluster cluster_;
  Process hostile_;
  Process partner_;
  Process victim_;
  Process victim_partner_;
};

void HostileHost::expect_ok(peal_status status, const char* what) {
  if (status != PEAL_STATUS_OK)
    findings_.add(cluster_.now(), "set-up", std::string(what) + ": " + names::status(status));
}

Process HostileHost::open(uint32_t card) {
  Process process;
  process.card = card;
  expect_ok(cluster_.open_context(card, &process.context), "open");
  process.send_region = cluster_.memory().add(card, kRegionBytes);
  process.receive_region = cluster_.memory().add(card, kRegionBytes);
  std::memset(cluster_.memory().data(process.send_region), kCanary, kRegionBytes);
  std::memset(cluster_.memory().data(process.receive_region), kCanary, kRegionBytes);
  expect_ok(cluster_.register_memory(card, process.context, process.send_region, kRegionBytes,
                                     PEAL_ACCESS_READ, &process.send_key),
            "register");
  expect_ok(cluster_.register_memory(card, process.context, process.receive_region, kRegionBytes,
                                     PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, &process.receive_key),
            "register");
  return process;
}

void HostileHost::make_pair(uint32_t group, Process* first, Process* second) {
  uint32_t rank = 0;
  for (Process* process : {first, second}) {
    const peal_reserve_group request = {2, rank++, 0, 0};
    expect_ok(cluster_.reserve_group(process->card, process->context, request, &process->address),
              "reserve");
  }
  for (Process* process : {first, second}) {
    const Process* other = process == first ? second : first;
    peal_connect_group request{};
    request.member = process->address.member;
    request.group = group;
    request.peer_count = 2;
    request.peers[0] = request.peers[1] = other->address;
    expect_ok(cluster_.connect_group(process->card, process->context, request), "connect");
  }
}

void HostileHost::drain() {
  // Questions to a partner that has not posted never end;
  // some milliseconds are enough for any answer.
  const TimeNs until_ns = cluster_.now() + 5 * kMillisecond;
  while (cluster_.next_event_ns() <= until_ns && cluster_.step()) {
  }
}

peal_submission HostileHost::good() const {
  peal_submission entry{};
  entry.operation = PEAL_OPERATION_ALLGATHER;
  entry.algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
  entry.member = hostile_.address.member;
  entry.block_bytes = 1024;
  entry.send_key = hostile_.send_key;
  entry.receive_key = hostile_.receive_key;
  entry.cookie = 42;
  return entry;
}

std::vector<HostileHost::Bad> HostileHost::bad_entries() const {
  const Process& victim = victim_;
  const auto with_parts = [](auto& e) {
    e.operation = PEAL_OPERATION_ALLTOALLV;
    e.algorithm = PEAL_ALGORITHM_DIRECT;
    e.block_bytes = 0;
    e.parts_key = e.send_key;
  };
  return {
      {"another's table of parts", PEAL_STATUS_BAD_KEY,
       [with_parts, &victim](auto& e) {
         with_parts(e);
         e.parts_key = victim.send_key;
       }},
      {"table past the end", PEAL_STATUS_BAD_BOUNDS,
       [with_parts](auto& e) {
         with_parts(e);
         e.parts_offset = kRegionBytes - 1;
       }},
      {"parts in another's memory", PEAL_STATUS_BAD_KEY,
       [with_parts, &victim](auto& e) {
         with_parts(e);
         e.receive_key = victim.receive_key;
       }},
      {"opcode", PEAL_STATUS_BAD_OPCODE, [](auto& e) { e.operation = PEAL_OPERATION_RECYCLE; }},
      {"opcode out of range", PEAL_STATUS_BAD_OPCODE, [](auto& e) { e.operation = 200; }},
      {"algorithm", PEAL_STATUS_BAD_ALGORITHM,
       [](auto& e) { e.algorithm = PEAL_ALGORITHM_DISSEMINATION; }},
      {"flags", PEAL_STATUS_BAD_FLAGS, [](auto& e) { e.flags = 0x8000; }},
      {"reserved", PEAL_STATUS_BAD_FLAGS, [](auto& e) { e.reserved[1] = 1; }},
      {"root", PEAL_STATUS_BAD_ROOT, [](auto& e) { e.root = 1; }},
      {"sequence ahead", PEAL_STATUS_BAD_SEQUENCE, [](auto& e) { e.sequence = 1; }},
      {"sequence wild", PEAL_STATUS_BAD_SEQUENCE, [](auto& e) { e.sequence = ~0ull; }},
      {"member index", PEAL_STATUS_BAD_GROUP, [](auto& e) { e.member |= 0xffff; }},
      {"member generation", PEAL_STATUS_BAD_GROUP, [](auto& e) { e.member += 0x10000; }},
      {"another's member", PEAL_STATUS_BAD_GROUP,
       [&victim](auto& e) { e.member = victim.address.member; }},
      {"key index", PEAL_STATUS_BAD_KEY, [](auto& e) { e.send_key |= 0xffff; }},
      {"key generation", PEAL_STATUS_BAD_KEY, [](auto& e) { e.receive_key += 0x10000; }},
      {"another's key", PEAL_STATUS_BAD_KEY,
       [&victim](auto& e) { e.receive_key = victim.receive_key; }},
      {"write to a send region", PEAL_STATUS_BAD_ACCESS,
       [](auto& e) { e.receive_key = e.send_key; }},
      {"length", PEAL_STATUS_BAD_LENGTH, [](auto& e) { e.block_bytes = uint64_t{1} << 32; }},
      {"send past the end", PEAL_STATUS_BAD_BOUNDS,
       [](auto& e) { e.send_offset = kRegionBytes - 1023; }},
      {"send offset wraps", PEAL_STATUS_BAD_BOUNDS, [](auto& e) { e.send_offset = ~0ull - 100; }},
      {"receive offset wraps", PEAL_STATUS_BAD_BOUNDS,
       [](auto& e) { e.receive_offset = ~0ull - 2000; }},
      {"block too long", PEAL_STATUS_BAD_BOUNDS, [](auto& e) { e.block_bytes = 0xffffffffu; }},
      {"receive past the end", PEAL_STATUS_BAD_BOUNDS,
       [](auto& e) { e.receive_offset = kRegionBytes - 2047; }},
      {"in place past the end", PEAL_STATUS_BAD_BOUNDS,
       [](auto& e) {
         e.flags = PEAL_SUBMIT_IN_PLACE;
         e.receive_offset = kRegionBytes - 1024;
       }},
  };
}

void HostileHost::post_bad(const Bad& bad) {
  peal_submission entry = good();
  bad.spoil(entry);
  completions_.clear();
  const uint64_t sent = cluster_.counts().sent;
  const uint64_t moved = cluster_.counter(PEAL_COUNTER_DMA_OPERATIONS);
  const uint64_t refused = cluster_.counter(0, PEAL_COUNTER_COMMANDS_REFUSED);
  cluster_.submit(hostile_.card, hostile_.context, entry);
  drain();
  const std::string what = std::string("bad ") + bad.what + ": ";
  if (completions_.size() != 1) {
    findings_.add(cluster_.now(), "stuck", what + "not answered once");
  } else if (completions_[0].status != bad.status) {
    findings_.add(
        cluster_.now(), "status",
        what + names::status(completions_[0].status) + " instead of " + names::status(bad.status));
  }
  if (cluster_.counts().sent != sent || cluster_.counter(PEAL_COUNTER_DMA_OPERATIONS) != moved)
    findings_.add(cluster_.now(), "isolation", what + "had an effect");
  if (cluster_.counter(0, PEAL_COUNTER_COMMANDS_REFUSED) != refused + 1)
    findings_.add(cluster_.now(), "isolation", what + "was not counted as refused");
}

void HostileHost::check_canary(const Process& process) {
  for (const uint32_t region : {process.send_region, process.receive_region}) {
    const uint8_t* bytes = cluster_.memory().data(region);
    for (uint64_t at = 0; at < kRegionBytes; at++) {
      if (bytes[at] == kCanary) continue;
      findings_.add(cluster_.now(), "isolation", "a stranger's memory changed");
      return;
    }
  }
}

Report HostileHost::carry_out() {
  hostile_ = open(0);
  victim_ = open(0);
  partner_ = open(1);
  victim_partner_ = open(1);
  make_pair(1, &hostile_, &partner_);
  make_pair(2, &victim_, &victim_partner_);
  if (!findings_.none()) return report_of(findings_);
  for (const Bad& bad : bad_entries()) post_bad(bad);

  // And after all that the group still works.
  uint8_t* blocks[2] = {cluster_.memory().data(hostile_.send_region),
                        cluster_.memory().data(partner_.send_region)};
  std::memset(blocks[0], 0x11, 1024);
  std::memset(blocks[1], 0x22, 1024);
  completions_.clear();
  peal_submission entry = good();
  cluster_.submit(hostile_.card, hostile_.context, entry);
  entry.member = partner_.address.member;
  entry.send_key = partner_.send_key;
  entry.receive_key = partner_.receive_key;
  cluster_.submit(partner_.card, partner_.context, entry);
  drain();
  if (completions_.size() != 2)
    findings_.add(cluster_.now(), "stuck", "no result after bad entries");
  for (const peal_completion& completion : completions_)
    if (completion.status != PEAL_STATUS_OK)
      findings_.add(cluster_.now(), "status", "no success after bad entries");
  for (const Process* process : {&hostile_, &partner_}) {
    const uint8_t* result = cluster_.memory().data(process->receive_region);
    if (result[0] != 0x11 || result[1023] != 0x11 || result[1024] != 0x22 || result[2047] != 0x22 ||
        result[2048] != kCanary)
      findings_.add(cluster_.now(), "right-bytes", "wrong result after bad entries");
  }
  check_canary(victim_);
  check_canary(victim_partner_);
  return report_of(findings_);
}

// --- a wire that means harm ---

// CRC32C, bit by bit: the checkers share no code with the card.
uint32_t checksum(const void* data, size_t bytes) {
  const auto* byte = static_cast<const uint8_t*>(data);
  uint32_t sum = ~0u;
  for (size_t i = 0; i < bytes; i++) {
    sum ^= byte[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (0x82f63b78u & (0u - (sum & 1)));
  }
  return ~sum;
}

struct Forgery {
  const char* what;
  std::function<void(peal_wire_header&)> spoil;
  uint32_t frame_bytes;  // 0: as long as it is
};

const std::vector<Forgery>& forgeries() {
  static const std::vector<Forgery> list = {
      {"ethertype", [](auto& h) { h.ethertype ^= 1; }, 0},
      {"version", [](auto& h) { h.version++; }, 0},
      {"type", [](auto& h) { h.type = PEAL_PACKET_TYPE_COUNT; }, 0},
      {"type of another kind", [](auto& h) { h.type = PEAL_PACKET_SIGNAL; }, 0},
      {"flags", [](auto& h) { h.flags |= 0x80; }, 0},
      {"operation", [](auto& h) { h.operation = PEAL_OPERATION_COUNT; }, 0},
      {"algorithm", [](auto& h) { h.algorithm = PEAL_ALGORITHM_COUNT; }, 0},
      {"group", [](auto& h) { h.group += 1000; }, 0},
      {"member", [](auto& h) { h.member |= 0xffff; }, 0},
      {"generation", [](auto& h) { h.member += 0x10000; }, 0},
      {"identity", [](auto& h) { h.identity ^= 0x100; }, 0},
      {"signature", [](auto& h) { h.signature ^= 1; }, 0},
      {"old sequence", [](auto& h) { h.sequence -= 1000; }, 0},
      {"future sequence", [](auto& h) { h.sequence += 1000; }, 0},
      {"piece", [](auto& h) { h.piece += 100'000; }, 0},
      {"last piece", [](auto& h) { h.piece = ~0u; }, 0},
      {"origin", [](auto& h) { h.origin = 0xffff; }, 0},
      {"hop", [](auto& h) { h.hop = 200; }, 0},
      {"sender", [](auto& h) { h.sender = 0xfff0; }, 0},
      {"fragment", [](auto& h) { h.fragment = 0xff; }, 0},
      {"longer than the frame", [](auto& h) { h.length++; }, 0},
      {"shorter than the frame", [](auto& h) { h.length /= 2; }, 0},
      {"longer than an MTU", [](auto& h) { h.length = 0xffff; }, 0},
      {"cut", [](auto&) {}, 40},
      {"empty", [](auto&) {}, 0x10000},  // no byte of it arrived
  };
  return list;
}

struct Captured {
  uint32_t to_card;
  peal_wire_header header;
  std::vector<uint8_t> payload;
};

// Keeps a copy of one data frame in some.
class Tap final : public Observer {
 public:
  void on_send(TimeNs, const FrameView& frame) override {
    if (frame.header->type != PEAL_PACKET_DATA || ++seen_ % 7 != 0) return;
    frames.push_back({frame.to_card, *frame.header,
                      std::vector<uint8_t>(frame.payload, frame.payload + frame.payload_bytes)});
  }
  void on_violation(TimeNs now_ns, const char* check, const char* text) override {
    findings.add(now_ns, check, text);
  }
  std::vector<Captured> frames;
  Findings findings;

 private:
  uint64_t seen_ = 0;
};

uint64_t drops(const Cluster& cluster, uint32_t card) {
  uint64_t sum = 0;
  for (uint32_t i = PEAL_COUNTER_DROP_SHORT; i <= PEAL_COUNTER_DROP_CLOSED; i++)
    sum += cluster.counter(card, static_cast<peal_counter>(i));
  return sum;
}

void forge(Cluster& cluster, const Captured& captured, const Forgery& forgery, Findings* findings) {
  Captured frame = captured;
  forgery.spoil(frame.header);
  frame.header.header_crc = 0;
  frame.header.payload_crc = checksum(frame.payload.data(), frame.payload.size());
  frame.header.header_crc = checksum(&frame.header, sizeof(frame.header));
  const auto bytes = static_cast<uint32_t>(frame.payload.size());
  uint32_t frame_bytes = PEAL_HEADER_BYTES + bytes;
  if (forgery.frame_bytes != 0)
    frame_bytes = forgery.frame_bytes == 0x10000 ? 0 : forgery.frame_bytes;
  const uint64_t dropped = drops(cluster, frame.to_card);
  const uint64_t received = cluster.counter(frame.to_card, PEAL_COUNTER_RECEIVED);
  const uint64_t moved = cluster.counter(frame.to_card, PEAL_COUNTER_DMA_OPERATIONS);
  const uint64_t sent = cluster.counts().sent;
  cluster.inject(frame.to_card, frame.header, frame.payload.data(), bytes, frame_bytes);
  const std::string what = std::string("forged ") + forgery.what + ": ";
  if (drops(cluster, frame.to_card) != dropped + 1)
    findings->add(cluster.now(), "isolation", what + "not counted as one drop");
  if (cluster.counter(frame.to_card, PEAL_COUNTER_RECEIVED) != received ||
      cluster.counter(frame.to_card, PEAL_COUNTER_DMA_OPERATIONS) != moved ||
      cluster.counts().sent != sent)
    findings->add(cluster.now(), "isolation", what + "had an effect");
}

}  // namespace

Report run_hostile_host() { return HostileHost().carry_out(); }

Report run_hostile_wire() {
  Scenario scenario = plan(5, broadcast(5000), 10, 3);
  for (uint32_t i = 0; i < 10; i++) scenario.groups[0].operations.push_back(doubling(3000));
  World world(scenario);
  Hosts hosts(world);
  Tap tap;
  ClusterOptions options;
  options.cards = scenario.cards;
  Cluster cluster(options, &tap, &hosts);
  world.channels = cluster.device(0).channels;
  hosts.start(cluster);
  size_t next = 0;
  size_t forged = 0;
  while (hosts.unfinished() > 0 && cluster.step()) {
    for (const Captured& frame : tap.frames) {
      forge(cluster, frame, forgeries()[next++ % forgeries().size()], &world.findings);
      forged++;
    }
    tap.frames.clear();
  }
  check_progress(world, cluster.now());
  for (const auto& [check, count] : tap.findings.counts())
    world.findings.add(cluster.now(), check, tap.findings.lines()[0]);
  if (forged < 2 * forgeries().size())
    world.findings.add(cluster.now(), "set-up", "too few frames were forged to mean anything");
  return report_of(world.findings);
}

}  // namespace peal::sim
