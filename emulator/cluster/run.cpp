// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/run.h"

#include <algorithm>

#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/checkers.h"
#include "emulator/cluster/hosts.h"
#include "emulator/cluster/world.h"

namespace peal::sim {

namespace {

constexpr TimeNs kDrainMaxNs = 120 * kSecond;
constexpr uint64_t kProgressEvents = 1 << 20;

// Hands everything on to the checkers and to one more observer.
class Watch final : public Observer {
 public:
  Watch(World& world, Observer* also) : wire(world), memory(world), world_(world), also_(also) {}

  void on_send(TimeNs now_ns, const FrameView& frame) override {
    wire.on_send(now_ns, frame);
    if (also_ != nullptr) also_->on_send(now_ns, frame);
  }
  void on_dma(TimeNs now_ns, const DmaView& dma) override {
    memory.on_dma(now_ns, dma);
    if (also_ != nullptr) also_->on_dma(now_ns, dma);
  }
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override {
    if (also_ != nullptr) also_->on_completion(now_ns, card, context, entry);
  }
  void on_violation(TimeNs now_ns, const char* check, const char* text) override {
    world_.findings.add(now_ns, check, text);
    if (also_ != nullptr) also_->on_violation(now_ns, check, text);
  }

  WireChecker wire;
  MemoryChecker memory;

 private:
  World& world_;
  Observer* also_;
};

Checksums choose_checksums(const Scenario& scenario) {
  switch (scenario.checksums) {
    case ChecksumChoice::kSoftware:
      return Checksums::kSoftware;
    case ChecksumChoice::kSkipped:
      return Checksums::kSkipped;
    case ChecksumChoice::kAuto:
      break;
  }
  return scenario.faults.corrupt > 0 ? Checksums::kSoftware : Checksums::kSkipped;
}

ClusterOptions cluster_options(const Scenario& scenario) {
  ClusterOptions options;
  options.cards = scenario.cards;
  options.seed = scenario.seed;
  options.costs = scenario.costs;
  options.timeouts = {scenario.timeouts.nack_ns, scenario.timeouts.nack_max_ns,
                      scenario.timeouts.probe_interval_ns, scenario.timeouts.dead_ns};
  options.faults = scenario.faults;
  options.cuts = scenario.cuts;
  options.checksums = choose_checksums(scenario);
  options.packets_per_card = scenario.packets_per_card;
  options.sent_packets = scenario.sent_packets;
  options.lends = scenario.lends;
  options.dma_per_card = scenario.dma_per_card;
  options.dma_batch = scenario.dma_batch;
  options.check_seals = scenario.check;
  return options;
}

class Run {
 public:
  Run(const Scenario& scenario, const RunOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(scenario),
        watch_(world_, options.observer),
        hosts_(world_),
        watches_(scenario.check || options.observer != nullptr),
        cluster_(cluster_options(scenario), watches_ ? &watch_ : nullptr, &hosts_) {}

  void carry_out();
  [[nodiscard]] Report report() const;
  Findings& findings() { return world_.findings; }

 private:
  bool step();
  void work();
  void drain();
  void drain_stuck();
  void check_conserved();
  void check_effort();
  [[nodiscard]] bool stuck() const;
  [[nodiscard]] uint64_t needed() const;

  const Scenario& scenario_;
  const RunOptions& options_;
  World world_;
  Watch watch_;
  Hosts hosts_;
  bool watches_;  // the wire, memory and results
  Cluster cluster_;
  TimeNs finished_ns_ = 0;
  TimeNs drained_ns_ = 0;
  uint64_t trace_hash_ = 0;
};

bool Run::step() {
  if (!cluster_.step()) return false;
  if (options_.progress && cluster_.counts().events % kProgressEvents == 0)
    options_.progress(cluster_.now(), hosts_.unfinished(), cluster_.counts().sent);
  return true;
}

bool Run::stuck() const {
  if (hosts_.scheduled() > 0) return false;
  TimeNs from_ns = hosts_.progress_ns();
  if (scenario_.faults.until_ns != kNever) from_ns = std::max(from_ns, scenario_.faults.until_ns);
  for (const emulator::Partition& partition : scenario_.faults.partitions)
    if (partition.until_ns != kNever) from_ns = std::max(from_ns, partition.until_ns);
  for (const WireCut& cut : scenario_.cuts)
    if (cut.until_ns != kNever) from_ns = std::max(from_ns, cut.until_ns);
  for (const Accident& accident : scenario_.accidents)
    from_ns = std::max(from_ns, accident.at_ns + accident.for_ns);
  return cluster_.now() > from_ns + scenario_.stuck_ns;
}

void Run::work() {
  while (hosts_.unfinished() > 0) {
    if (!step()) break;
    if (cluster_.counts().events > scenario_.events_max) {
      world_.findings.add(cluster_.now(), "stuck", "more events than a run may need");
      break;
    }
    if ((cluster_.counts().events & 63) == 0 && stuck()) break;
  }
  finished_ns_ = hosts_.progress_ns();
  check_progress(world_, cluster_.now());
}

// With nothing left to do the cards must come to rest: no frame, no timer.
void Run::drain() {
  const TimeNs until_ns = cluster_.now() + kDrainMaxNs;
  const uint64_t events_max =
      scenario_.events_max == ~0ull ? ~0ull : cluster_.counts().events + scenario_.events_max;
  while (cluster_.next_event_ns() <= until_ns && cluster_.counts().events < events_max)
    if (!step()) break;
  if (cluster_.next_event_ns() != kNever)
    world_.findings.add(cluster_.now(), "conservation", "the cards never come to rest");
}

// What the cards say to those that are stuck means little, but packets that they keep while no DMA
// is under way are lost.
void Run::drain_stuck() {
  const Findings until_now = world_.findings;
  drain();
  world_.findings = until_now;
  for (uint32_t card = 0; card < cluster_.card_count(); card++)
    if (!cluster_.silent(card) && cluster_.packets_held(card) != cluster_.holds(card).sent_blocks &&
        cluster_.holds(card).dma_records == 0)
      world_.findings.add(cluster_.now(), "conservation",
                          "card " + std::to_string(card) + " keeps " +
                              std::to_string(cluster_.packets_held(card)) +
                              " packets and no DMA is under way");
}

void Run::check_conserved() {
  uint64_t held_by_silent = 0;
  uint64_t stay_to_be_sent = 0;
  for (uint32_t card = 0; card < cluster_.card_count(); card++) {
    if (cluster_.silent(card)) {
      held_by_silent += cluster_.packets_held(card);
      continue;
    }
    const CardHolds holds = cluster_.holds(card);
    stay_to_be_sent += holds.sent_blocks;
    if (cluster_.packets_held(card) != holds.sent_blocks || cluster_.dma_under_way(card) != 0 ||
        holds.packets != 0 || holds.dma_records != 0)
      world_.findings.add(
          cluster_.now(), "conservation",
          "card " + std::to_string(card) + " keeps " + std::to_string(cluster_.packets_held(card)) +
              " packets and " + std::to_string(cluster_.dma_under_way(card)) + " DMA; says " +
              std::to_string(holds.packets) + " and " + std::to_string(holds.dma_records));
    if (world_.findings.none() && holds.operations != 0)
      world_.findings.add(cluster_.now(), "conservation",
                          "card " + std::to_string(card) + " has " +
                              std::to_string(holds.operations) + " open operations");
  }
  if (cluster_.pool().packets_in_use() !=
      held_by_silent + stay_to_be_sent + cluster_.frames_under_way())
    world_.findings.add(cluster_.now(), "conservation",
                        std::to_string(cluster_.pool().packets_in_use()) +
                            " packets are in use, but nobody has them");
}

// No collapse: a wire that loses this much makes this many packets necessary, and no more. A few
// packets prove nothing.
void Run::check_effort() {
  constexpr uint64_t kFew = 500;
  if (scenario_.effort_max == 0) return;
  const uint64_t sent = cluster_.counts().sent;
  const uint64_t least = needed();
  if (static_cast<double>(sent) <= scenario_.effort_max * static_cast<double>(least + kFew)) return;
  world_.findings.add(
      cluster_.now(), "collapse",
      std::to_string(sent) + " packets where " + std::to_string(least) + " would have done");
}

void Run::carry_out() {
  world_.channels = cluster_.device(0).channels;
  hosts_.start(cluster_);
  if (world_.findings.none()) work();
  trace_hash_ = cluster_.trace_hash();
  if (world_.findings.has("stuck")) return drain_stuck();
  drain();
  drained_ns_ = cluster_.now();
  trace_hash_ = cluster_.trace_hash();
  if (scenario_.check) check_garbage(world_, cluster_.now());
  check_conserved();
  check_effort();
  if (!scenario_.teardown) return;
  hosts_.close_all(cluster_.now());
  drain();
  hosts_.check_quiet(cluster_.now());
  check_conserved();
}

void add_counters(const Cluster& cluster, Report* report) {
  for (uint32_t i = 0; i < PEAL_COUNTER_COUNT; i++) {
    const auto counter = static_cast<peal_counter>(i);
    const uint64_t value = cluster.counter(counter);
    if (value != 0) report->counters[card_counter_name(counter)] = value;
  }
}

// Whatever somebody posted counts whole: the others answer, or would have.
uint64_t Run::needed() const {
  const CardShape card = shape_of(cluster_.device(0));
  uint64_t packets = 0;
  for (const GroupState& group : world_.groups) {
    size_t posted = 0;
    for (const uint32_t index : group.members) {
      const auto& posts = world_.members[index].posts;
      while (posted < posts.size() && posts[posted].state != PostState::kNotPosted) posted++;
    }
    const auto ranks = static_cast<uint32_t>(group.members.size());
    std::vector<uint32_t> beginners;
    for (size_t sequence = 0; sequence < posted; sequence++) {
      const OperationPlan& plan = world_.operation(world_.members[group.members[0]], sequence);
      packets += needed_packets(card, ranks, plan);
      beginners.push_back(beginner_of(plan));
    }
    packets += recycling_packets(card, ranks, beginners);
  }
  return packets;
}

Report Run::report() const {
  Report report;
  report.needed = needed();
  report.happened = world_.happened;
  report.ok = world_.findings.none();
  report.findings = world_.findings.counts();
  report.lines = world_.findings.lines();
  report.trace_hash = trace_hash_;
  report.finished_ns = finished_ns_;
  report.drained_ns = drained_ns_;
  report.ranks = static_cast<uint32_t>(world_.members.size());
  report.groups.resize(world_.groups.size());
  for (size_t number = 0; number < world_.groups.size(); number++) {
    const GroupState& group = world_.groups[number];
    if (group.members.empty()) continue;
    const size_t count = world_.members[group.members[0]].posts.size();
    const GroupPlan& plan = scenario_.groups[number];
    GroupEnd& end = report.groups[number];
    end.done.resize(plan.operations.size());
    TimeNs ended_ns = 0;  // the operation before
    for (size_t sequence = 0; sequence < count; sequence++) {
      TimeNs first_ns = kNever;
      TimeNs last_post_ns = 0;
      TimeNs last_ns = 0;
      TimeNs last_done_ns = 0;
      bool all = true;
      size_t in_place = 0;
      for (const uint32_t index : group.members) {
        const Post& post = world_.members[index].posts[sequence];
        const bool ok = post.state == PostState::kCompleted && post.status == PEAL_STATUS_OK;
        all = all && ok;
        report.completed += ok;
        const OperationPlan what = world_.operation(world_.members[index], sequence);
        if (ok) report.completed_as[{what.operation, what.algorithm}]++;
        if (ok) end.done_ns = std::max(end.done_ns, post.completed_ns);
        in_place += what.in_place ? 1 : 0;
        report.mismatched +=
            post.state == PostState::kCompleted && post.status == PEAL_STATUS_MISMATCH;
        report.peer_dead +=
            post.state == PostState::kCompleted && post.status == PEAL_STATUS_PEER_DEAD;
        report.dma_faults +=
            post.state == PostState::kCompleted && post.status == PEAL_STATUS_DMA_FAULT;
        first_ns = std::min(first_ns, post.posted_ns);
        last_post_ns = std::max(last_post_ns, post.posted_ns);
        last_ns = std::max(last_ns, post.completed_ns + scenario_.costs.completion_ns);
        last_done_ns = std::max(last_done_ns, post.posted_ns + plan.work_ns);
      }
      // The destroy operation is no work of the user's.
      if (!all || sequence >= plan.operations.size()) continue;
      end.done[sequence] = true;
      if (in_place != 0 && in_place != group.members.size())
        report.happened["in place on some ranks"]++;
      report.latencies_ns.push_back(last_ns - first_ns);
      const TimeNs begun_ns = ended_ns == 0 ? first_ns : ended_ns;
      report.periods_ns.push_back(last_ns > begun_ns ? last_ns - begun_ns : 0);
      ended_ns = std::max(ended_ns, last_ns);
      report.done_ns.push_back(std::max(last_ns, last_done_ns) - last_post_ns);
    }
  }
  report.packets = watch_.wire.sent();
  report.repairs = watch_.wire.repairs();
  report.recycle_signals = watch_.wire.recycle_signals();
  add_counters(cluster_, &report);
  if (!watches_) {
    // Nobody has looked at the wire: what the cards say.
    report.packets[PEAL_PACKET_NACK] = cluster_.counter(PEAL_COUNTER_SENT_NACK);
    report.packets[PEAL_PACKET_NOT_YET] = cluster_.counter(PEAL_COUNTER_SENT_NOT_YET);
    report.repairs = cluster_.counter(PEAL_COUNTER_SENT_REPAIR);
  }
  report.cluster = cluster_.counts();
  report.faults = cluster_.faults();
  report.checksums = cluster_.checksums();
  return report;
}

}  // namespace

bool Report::only_stuck() const {
  return !ok && findings.size() == 1 && findings.begin()->first == "stuck";
}

std::string Report::failed_checks() const {
  std::string text;
  for (const auto& [check, count] : findings) {
    if (!text.empty()) text += ", ";
    text += check;
  }
  return text;
}

Report run(const Scenario& scenario, const RunOptions& options) {
  Run run(scenario, options);
  run.carry_out();
  return run.report();
}

Report run_twice(const Scenario& scenario) {
  const RunOptions options;
  Run first(scenario, options);
  first.carry_out();
  Run second(scenario, options);
  second.carry_out();
  Report report = first.report();
  const Report other = second.report();
  if (report.trace_hash != other.trace_hash || report.counters != other.counters) {
    report.ok = false;
    report.findings["deterministic"]++;
    report.lines.push_back("deterministic: the same seed gave another trace");
  }
  return report;
}

}  // namespace peal::sim
