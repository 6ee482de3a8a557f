// SPDX-License-Identifier: BSD-2-Clause
// Turns, ticks and sleep.
#include "emulator/nic/nic_loop.h"

#include <rte_lcore.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "abi/pci.h"
#include "emulator/common/counters_json.h"

namespace peal::nic {
namespace {

// Sooner than this it is not worth while to sleep.
constexpr TimeNs kShortestSleepNs = 100'000;
// What wakes nobody is looked at this often while asleep, and less often while nothing comes of it:
// a host that made room in its completion ring, a closed context whose memory some DMA still held.
constexpr TimeNs kRecheckNs = 2'000'000;
// Copies wake the loop when they are done; this is for those that are not.
constexpr TimeNs kCopyLookNs = 5'000'000;
constexpr TimeNs kRecheckMaxNs = 32'000'000;
// Wake slots for one-off uses, beside one per context and one per interrupt of a guest.
constexpr uint32_t kSpareSlots = 64;

constexpr auto kBeatUs = static_cast<uint32_t>(NicLoop::kBeatNs / 1000);

}  // namespace

NicLoop::NicLoop()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      recheck_ns_(kRecheckNs) {}

NicLoop::~NicLoop() {
  // Freeing a card's regions gives memory back to the interfaces that made it.
  if (copies_ != nullptr) copies_->stop();
  cards_.clear();
  interfaces_.clear();
  helper_.reset();
  copies_.reset();
  switch_.reset();
  own_pool_.reset();
  if (stop_fd_ >= 0) close(stop_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

std::string NicLoop::create(const LoopOptions& options) {
  options_ = options;
  own_pool_ = std::make_unique<PacketPool>();
  pool_ = own_pool_.get();
  if (std::string error = pool_->create(options.packet_buffers, options.cards); !error.empty())
    return error;
  switch_ = std::make_unique<FrameSwitch>(*pool_, options.wire);
  if (std::string error = switch_->create(options.cards); !error.empty()) return error;
  return create_parts();
}

std::string NicLoop::create(const LoopOptions& options, const LoopTies& ties) {
  options_ = options;
  pool_ = &ties.pool;
  rings_ = &ties.rings;
  loop_ = ties.loop;
  switch_ = std::make_unique<FrameSwitch>(*pool_, options.wire);
  switch_->join(ties.rings, ties.loop);
  return create_parts();
}

std::string NicLoop::create_parts() {
  if (epoll_fd_ < 0 || stop_fd_ < 0 || !watch(stop_fd_))
    return std::string("cannot create epoll and event descriptors: ") + std::strerror(errno);
  if (rings_ != nullptr && !watch(rings_->bell_fd(loop_)))
    return "cannot watch the bell of a polling core";
  card_count_ = (options_.cards - loop_ + loops() - 1) / loops();
  mapped_ = std::make_unique<emulator::HostCopies>(options_.cache_bytes / loops());
  copies_ = std::make_unique<CopyPool>(card_count_ * emulator::kContexts);
  copies_->set_relay(&relay_);
  if (!watch(copies_->event_fd())) return "cannot watch the copies of process memory";
  for (uint32_t i = loop_; i < options_.cards; i += loops()) {
    // Incarnations are never zero, and differ between cards only because nothing is lost by it.
    const uint32_t incarnation = std::max(1u, options_.incarnation + i);
    cards_.push_back(std::make_unique<CardRunner>(
        i, *pool_, *switch_, *mapped_, options_.checksums, options_.timeouts, incarnation,
        CopyOptions{copies_.get(), options_.copy_deadline_ns}));
    cards_.back()->windows().beat(beats_, kBeatUs);
    cards_.back()->set_share(loops() == 1 ? kLongShare : kShortShare);
  }
  give_way_.set_look_on(options_.look_on_ns);
  linger_.set(options_.linger_ns);
  // (Twice: those whose clients are gone may be stuck while others have opened theirs.)
  helper_ = std::make_unique<WakeHelper>(
      kSpareSlots + card_count_ * (2 * emulator::kContexts + PEAL_PCI_VECTORS));
  return helper_->start();
}

void NicLoop::add_interface(std::unique_ptr<HostInterface> interface) {
  interface->beat(beats_, kBeatUs);
  interfaces_.push_back(std::move(interface));
}

bool NicLoop::watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = fd;
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void NicLoop::unwatch(int fd) { epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr); }

void NicLoop::request_stop() {
  stopping_.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
}

bool NicLoop::turn(TimeNs now) {
  bool busy = false;
  const uint64_t sent = switch_->counts().sent;
  switch_->set_now(now);
  if (switch_->next_release() <= now) busy |= switch_->release_due();
  for (const auto& card : cards_) busy |= card->serve(now);
  busy |= poll_interfaces(now);
  const bool quiet = is_quiet();
  for (const auto& card : cards_) card->run_timers(now, quiet);
  for (const auto& card : cards_) busy |= card->tend_copies(now);
  for (const auto& card : cards_) card->transmit();
  switch_->wake_receivers();
  // A timer may have sent to a card whose turn was over: that frame must not wait through a sleep.
  busy |= switch_->counts().sent != sent || copies_->has_own();
  counts_.turns++;
  counts_.busy_turns += busy ? 1 : 0;
  return busy;
}

bool NicLoop::is_quiet() const {
  if (switch_->under_way()) return false;
  return std::none_of(cards_.begin(), cards_.end(),
                      [](const auto& card) { return card->has_frames(); });
}

// How many ends of operations hosts were ever told of.
uint64_t NicLoop::ends() const {
  uint64_t ends = 0;
  for (const auto& card : cards_) ends += card->ends();
  return ends;
}

bool NicLoop::poll_interfaces(TimeNs now) {
  bool any = false;
  for (const auto& interface : interfaces_) any |= interface->poll(now);
  if (any) {
    for (const auto& card : cards_) {
      card->refresh();
      card->windows().flush();
    }
  }
  return any;
}

// What need not be done every turn.
void NicLoop::tick(TimeNs now) {
  next_tick_ns_ = now + kTickNs;
  for (const auto& card : cards_) card->admin().housekeeping();
  if (now >= next_beat_ns_) beat(now);
}

void NicLoop::beat(TimeNs now) {
  next_beat_ns_ = now + kBeatNs;
  beats_++;
  for (const auto& card : cards_) card->windows().beat(beats_, kBeatUs);
  for (const auto& interface : interfaces_) interface->beat(beats_, kBeatUs);
}

void NicLoop::run() {
  cpu_set_t polling;
  CPU_ZERO(&polling);
  sched_getaffinity(0, sizeof(polling), &polling);
  cpu_set_t standing_by = polling;
  if (!options_.standby_cpus.empty()) {
    CPU_ZERO(&standing_by);
    for (const int cpu : options_.standby_cpus) CPU_SET(static_cast<size_t>(cpu), &standing_by);
  }
  const unsigned lcore = rte_lcore_id();
  last_work_ns_ = clock_.now();
  sched_setaffinity(0, sizeof(standing_by), &standing_by);
  serve_ = [this] { return serve(); };
  place_ = [polling, standing_by, lcore](Relay::Part part) {
    const bool serves = part == Relay::Part::kServes;
    sched_setaffinity(0, sizeof(polling), serves ? &polling : &standing_by);
    // What the pools of packets keep for an lcore goes with the loop.
    RTE_PER_LCORE(_lcore_id) = serves ? lcore : LCORE_ID_ANY;
  };
  all_back_ = relay_.run(serve_, place_);
}

void NicLoop::found_nothing(TimeNs now) {
  const uint64_t told = ends();
  const bool lingers = linger_.found_nothing(now, told);
  if (options_.may_sleep && !lingers && now - last_work_ns_ > options_.idle_ns) {
    sleep();
    linger_.slept();
  } else if (options_.yield_when_idle && give_way_.found_nothing(now, told)) {
    counts_.yields++;
    sched_yield();
  }
}

// True at the end; false when another thread is the loop.
bool NicLoop::serve() {
  copies_->resume();
  while (!stopping_.load(std::memory_order_relaxed)) {
    const TimeNs now = clock_.now();
    if (turn(now)) {
      last_work_ns_ = now;
      recheck_ns_ = kRecheckNs;
      give_way_.worked(now);
      linger_.worked(now);
    } else {
      found_nothing(now);
    }
    if (copies_->has_own() && !copies_->copy_own()) return false;
    if (now >= next_tick_ns_) tick(now);
  }
  const TimeNs now = clock_.now();
  for (const auto& interface : interfaces_) interface->shut_down(now);
  for (const auto& card : cards_) card->refresh();
  switch_->wake_receivers();
  return true;
}

void NicLoop::set_cards_sleeping(bool sleeping) {
  for (const auto& card : cards_) card->windows().set_card_sleeping(sleeping);
  copies_->set_loop_sleeping(sleeping);
  if (rings_ != nullptr) rings_->set_sleeping(loop_, sleeping);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

TimeNs NicLoop::wake_time(TimeNs now) const {
  TimeNs wake = std::min(next_beat_ns_, switch_->next_release());
  for (const auto& card : cards_) {
    wake = std::min(wake, card->deadline());
    if (card->copies_under_way()) wake = std::min(wake, now + kCopyLookNs);
    if (card->admin().closing_contexts() > 0 || card->windows().has_blocked())
      wake = std::min(wake, now + recheck_ns_);
  }
  return wake;
}

void NicLoop::sleep() {
  if (wake_time(clock_.now()) < clock_.now() + kShortestSleepNs) return;
  set_cards_sleeping(true);
  bool ready = true;
  for (const auto& interface : interfaces_) ready = interface->prepare_to_sleep() && ready;
  // Look again: a host that has not seen the flag has published before this.
  const TimeNs again = clock_.now();
  if (turn(again)) {
    last_work_ns_ = again;
    ready = false;
  }
  const TimeNs now = clock_.now();
  const TimeNs wake = wake_time(now);
  if (ready && wake > now && !stopping_.load() && !switch_->under_way()) {
    counts_.sleeps++;
    recheck_ns_ = std::min(2 * recheck_ns_, kRecheckMaxNs);
    if (switch_->lcores() != nullptr) switch_->lcores()->pause();
    wait_for_events(wake == kNever ? kBeatNs : wake - now);
    if (switch_->lcores() != nullptr) switch_->lcores()->resume();
  }
  set_cards_sleeping(false);
  const TimeNs awake = clock_.now();
  for (const auto& interface : interfaces_) interface->awake(awake);
  next_tick_ns_ = 0;
}

void NicLoop::wait_for_events(TimeNs timeout_ns) {
  std::array<epoll_event, 16> events;
  timespec timeout = {};
  timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  const int count = epoll_pwait2(epoll_fd_, events.data(), events.size(), &timeout, nullptr);
  // It is unknown to old kernels, and to filters of system calls that are as old.
  if (count < 0 && errno != EINTR) {
    const auto timeout_ms = static_cast<int>((timeout_ns + 999'999) / 1'000'000);
    epoll_wait(epoll_fd_, events.data(), events.size(), timeout_ms);
  }
}

nlohmann::ordered_json NicLoop::counters_json() const {
  const SwitchCounts& frames = switch_->counts();
  const RingCounts& rings = switch_->rings().counts();
  const emulator::FaultCounts& faults = switch_->faults().injector().counts();
  nlohmann::ordered_json all;
  all["wire"] = {{"sent", frames.sent},
                 {"sent_bytes", frames.sent_bytes},
                 {"delivered", rings.delivered},
                 {"no_such_card", frames.no_such_card},
                 {"ring_full", rings.ring_full},
                 {"held_full", rings.held_full},
                 {"no_copy", switch_->faults().no_copy()}};
  all["faults"] = {{"judged", faults.judged},           {"lost", faults.lost},
                   {"partitioned", faults.partitioned}, {"duplicated", faults.duplicated},
                   {"reordered", faults.reordered},     {"delayed", faults.delayed},
                   {"corrupted", faults.corrupted}};
  all["loop"] = {{"turns", counts_.turns},
                 {"busy_turns", counts_.busy_turns},
                 {"sleeps", counts_.sleeps},
                 {"yields", counts_.yields},
                 {"lost_turns", linger_.lost()},
                 {"bytes_past_caches", mapped_->bytes_past()},
                 {"bytes_copied_once", mapped_->bytes_once()},
                 {"wakes", helper_->wakes()},
                 {"unparks", helper_->unparks()},
                 {"wakes_blocked", helper_->blocked()},
                 {"reliefs", relay_.reliefs()}};
  if (switch_->lcores() != nullptr) all["engine_lcores"] = switch_->lcores()->carried();
  all["interfaces"] = nlohmann::ordered_json::object();
  for (size_t i = 0; i < interfaces_.size(); i++)
    all["interfaces"][std::to_string(i)] = interfaces_[i]->counters_json();
  all["cards"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < cards_.size(); i++) {
    const CardRunner& card = *cards_[i];
    const emulator::AdminCounts& admin = card.admin().counts();
    nlohmann::ordered_json entry;
    entry["card"] = card.index();
    entry["counters"] = emulator::counters_json(card_counters(card.card()));
    entry["admin"] = {{"commands", admin.commands},
                      {"refused", admin.refused},
                      {"contexts_opened", admin.contexts_opened},
                      {"contexts_closed", admin.contexts_closed},
                      {"windows_broken", admin.windows_broken},
                      {"windows_reset", admin.windows_reset},
                      {"copies_overdue", admin.copies_overdue},
                      {"regions", card.regions().used()},
                      {"region_faults", card.regions().faults()}};
    all["cards"].push_back(std::move(entry));
  }
  return all;
}

}  // namespace peal::nic
