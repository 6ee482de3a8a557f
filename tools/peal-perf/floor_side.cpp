// SPDX-License-Identifier: BSD-2-Clause
// The side of a comparison that goes through the ideal card: flags and copies only.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "hostlib/between_looks.h"
#include "hostlib/wait_habit.h"
#include "tools/ideal-card/layout.h"
#include "tools/peal-perf/measure.h"
#include "tools/peal-perf/side.h"
#include "tools/peal-perf/time_end.h"

namespace peal::perf {
namespace {

using ideal::Control;
using ideal::Shared;

// The real cards sleep 10 ms after their last host went; only then is their processor the ideal
// card's.
constexpr long kLetCardsSleepNs = 15'000'000;
// Between looks, of those asleep, whether the ideal card is still there.
constexpr timespec kLook = {0, 100'000'000};

size_t round_to_pages(size_t bytes) { return (bytes + 4095) & ~size_t{4095}; }

[[noreturn]] void fail(const char* what) {
  perror(what);
  _Exit(1);
}

class FloorSide final : public Side {
 public:
  FloorSide(const Job& job, Memory memory, const Call& longest);
  ~FloorSide() override;

  [[nodiscard]] std::string name(const std::string&) const override { return "ideal-card"; }
  void use_block(uint64_t) override {}
  uint8_t* send_buffer() override { return send_; }
  uint8_t* receive_buffer() override { return receive_; }
  void run(const Call& call) override {
    start(call);
    wait();
  }
  void start(const Call& call) override;
  bool test() override;
  void wait() override;
  TimedEnd end_timed() override { return time_end(*this); }
  void begin_round() override;
  void end_round() override;

 private:
  void start_card(int fd);
  void watch_card();
  void sleep();
  void expect_card() const;
  void set_control(Control control);

  const Job& job_;
  bool shared_memory_;
  size_t bytes_ = 0;
  Shared* shared_ = nullptr;
  uint8_t* send_ = nullptr;
  uint8_t* receive_ = nullptr;
  Mapping own_;  // both, where they are not shared
  uint64_t sequence_ = 0;
  uint8_t operation_ = PEAL_OPERATION_NONE;  // that was started last
  host::WaitHabit habit_{.spin_ns = host::kSpinDefaultNs};
  int watch_ = -1;  // a pidfd of the ideal card
};

FloorSide::FloorSide(const Job& job, Memory memory, const Call& longest)
    : job_(job), shared_memory_(memory == Memory::kAllocated) {
  // Yama: the ideal card is rank 0's child, not ours. Where there is no Yama this fails harmlessly.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const BufferBytes bytes = buffer_bytes(job, longest);
  const size_t send = round_to_pages(bytes.send);
  const size_t receive = round_to_pages(bytes.receive);
  const size_t areas = shared_memory_ ? (send + receive) * job.size : 0;
  bytes_ = round_to_pages(sizeof(Shared)) + areas;

  // Rank 0 makes the memory, the others open it through /proc.
  struct Where {
    pid_t pid;
    int fd;
  };
  Where where = {};
  int fd = -1;
  if (job.rank == 0) {
    fd = memfd_create("peal-ideal-card", 0);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes_)) != 0) fail("peal-perf: memfd");
    where = {getpid(), fd};
  }
  std::vector<Where> all(job.size);
  job.exchange(&where, all.data(), sizeof(where));
  if (job.rank != 0) {
    const std::string path =
        "/proc/" + std::to_string(all[0].pid) + "/fd/" + std::to_string(all[0].fd);
    fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) fail("peal-perf: opening rank 0's memory");
  }
  void* memory_start =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory_start == MAP_FAILED) fail("peal-perf: mmap");
  shared_ = static_cast<Shared*>(memory_start);
  if (job.rank == 0) {
    ideal::Header& header = shared_->header;
    header.magic = ideal::kMagic;
    header.ranks = job.size;
    header.send_stride = send;
    header.receive_stride = receive;
    header.send_offset = round_to_pages(sizeof(Shared));
    header.receive_offset = header.send_offset + send * job.size;
    start_card(fd);
  }
  job.barrier();
  watch_card();
  close(fd);
  if (shared_memory_) {
    auto* base = static_cast<uint8_t*>(memory_start);
    send_ = base + shared_->header.send_offset + job.rank * send;
    receive_ = base + shared_->header.receive_offset + job.rank * receive;
  } else {
    send_ = own_.map(send + receive);
    if (send_ == nullptr) fail("peal-perf: mmap");
    receive_ = send_ + send;
  }
  memset(send_, 0, send);
  memset(receive_, 0, receive);
}

FloorSide::~FloorSide() {
  job_.barrier();
  if (job_.rank == 0) {
    set_control(Control::kStop);
    waitpid(static_cast<pid_t>(shared_->header.card), nullptr, 0);
  }
  close(watch_);
  munmap(shared_, bytes_);
}

void FloorSide::start_card(int fd) {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) fail("peal-perf: /proc/self/exe");
  std::string program(path);
  program = program.substr(0, program.rfind('/')) + "/ideal-card";
  const std::string descriptor = std::to_string(fd);
  const std::string cpu = std::to_string(job_.card_cpu);
  const pid_t card = fork();
  if (card < 0) fail("peal-perf: fork");
  if (card == 0) {
    const char* const yields = job_.card_yields ? "--yield" : nullptr;
    execl(program.c_str(), "ideal-card", descriptor.c_str(), cpu.c_str(), yields, nullptr);
    fail(("peal-perf: " + program).c_str());
  }
  shared_->header.card = static_cast<uint32_t>(card);
}

// Also where it has ended: rank 0, whose child it is, waits for it last.
void FloorSide::watch_card() {
  watch_ = static_cast<int>(syscall(SYS_pidfd_open, shared_->header.card, 0));
  if (watch_ < 0) fail("peal-perf: watching the ideal card");
}

// Whoever waits for one that has ended (it says itself why, unless it was killed) waits for ever.
void FloorSide::expect_card() const {
  pollfd ended = {watch_, POLLIN, 0};
  if (poll(&ended, 1, 0) == 0) return;
  fprintf(stderr, "peal-perf: rank %u: the ideal card has ended\n", job_.rank);
  fflush(nullptr);
  _Exit(1);
}

void FloorSide::set_control(Control control) {
  __atomic_store_n(&shared_->header.control, static_cast<uint32_t>(control), __ATOMIC_RELEASE);
  syscall(SYS_futex, &shared_->header.control, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void FloorSide::begin_round() {
  job_.barrier();
  const timespec pause = {0, kLetCardsSleepNs};
  nanosleep(&pause, nullptr);
  if (job_.rank == 0) set_control(Control::kRun);
  job_.barrier();
}

void FloorSide::end_round() {
  job_.barrier();
  if (job_.rank == 0) set_control(Control::kIdle);
  job_.barrier();
}

void FloorSide::start(const Call& call) {
  ideal::Posted& posted = shared_->posted[job_.rank];
  posted.operation = call.operation;
  posted.root = call.root;
  posted.spread = static_cast<uint32_t>(call.spread);
  posted.block_bytes = call.block_bytes;
  posted.pid = shared_memory_ ? 0 : static_cast<uint32_t>(getpid());
  posted.send_address = reinterpret_cast<uintptr_t>(send_);
  posted.receive_address = reinterpret_cast<uintptr_t>(receive_);
  operation_ = static_cast<uint8_t>(call.operation);
  sequence_++;
  __atomic_store_n(&posted.sequence, sequence_, __ATOMIC_RELEASE);
}

bool FloorSide::test() {
  return __atomic_load_n(&shared_->done[job_.rank].sequence, __ATOMIC_ACQUIRE) == sequence_;
}

// As libpeal waits, by the same habit.
void FloorSide::wait() {
  if (test()) return;
  uint64_t now = now_ns();
  host::Wait wait(habit_, now, operation_);
  if (const uint64_t look_on_ns = wait.look_on_ns(); look_on_ns != 0) {
    const uint64_t before = now;
    bool there = test();
    while (!there && (now = now_ns()) - before < look_on_ns) {
      host::pause_briefly();
      there = test();
    }
    wait.looked_on(now - before, there);
    if (there) {
      wait.end(now);
      return;
    }
  }
  while (wait.looks(now)) {
    const bool alone = habit_.alone;
    const bool timed = wait.times_yield();
    for (int i = 0; alone && i < host::Wait::kPollsAlone && !test(); i++) host::pause_briefly();
    const uint64_t own_ns = test() ? 0 : host::yield(timed);
    const uint64_t before = now;
    now = now_ns();
    wait.yielded(now - before, alone, own_ns);
    if (!test()) continue;
    wait.end(now);
    return;
  }
  sleep();
  wait.end(now_ns());
}

void FloorSide::sleep() {
  uint32_t& sleeping = shared_->posted[job_.rank].sleeping;
  uint32_t& word = shared_->done[job_.rank].wake_word;
  __atomic_store_n(&sleeping, 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  while (true) {
    const uint32_t token = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
    if (test()) break;
    syscall(SYS_futex, &word, FUTEX_WAIT, token, &kLook, nullptr, 0);
    if (!test()) expect_card();
  }
  __atomic_store_n(&sleeping, 0, __ATOMIC_RELAXED);
}

}  // namespace

std::unique_ptr<Side> make_floor_side(const Job& job, Memory memory, const Call& longest) {
  if (job.size > ideal::kRanksMax) {
    fprintf(stderr, "peal-perf: --floor is for at most %u ranks\n", ideal::kRanksMax);
    _Exit(1);
  }
  return std::make_unique<FloorSide>(job, memory, longest);
}

}  // namespace peal::perf
