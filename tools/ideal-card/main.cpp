// SPDX-License-Identifier: BSD-2-Clause
// The ideal card: the floor under every figure of peal-perf. No packets, no protocol, no checks: it
// polls one flag per rank, copies each block straight from its rank's memory to all ranks that have
// arrived, and sets one flag per rank. What a real card takes beyond it is the price of packets.
//
// peal-perf --floor starts it, on the cards' processor, and lets it run only while the real cards
// sleep.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "abi/wire.h"
#include "emulator/common/cache_size.h"
#include "emulator/common/command_line.h"
#include "emulator/common/host_copies.h"
#include "tools/ideal-card/layout.h"
#include "tools/ideal-card/lengths.h"

namespace peal::ideal {
namespace {

class IdealCard {
 public:
  // `yields`: gives way to others after each look that found nobody.
  IdealCard(Shared* shared, bool yields)
      : shared_(shared),
        base_(reinterpret_cast<uint8_t*>(shared)),
        yields_(yields),
        staged_(shared->header.ranks) {}

  int run();

 private:
  Control control() const {
    return static_cast<Control>(__atomic_load_n(&shared_->header.control, __ATOMIC_ACQUIRE));
  }
  bool turn();
  bool arrive(uint32_t rank);
  bool broadcast(uint32_t rank);
  bool copy(uint32_t from, uint32_t to);
  bool stage(uint32_t rank);
  bool write_staged(uint32_t rank);
  void finish(uint32_t rank);

  uint8_t* send_buffer(uint32_t rank) const {
    return base_ + shared_->header.send_offset + rank * shared_->header.send_stride;
  }
  uint8_t* receive_buffer(uint32_t rank) const {
    return base_ + shared_->header.receive_offset + rank * shared_->header.receive_stride;
  }

  Shared* shared_;
  uint8_t* base_;
  const bool yields_;
  // By the same means as the real cards, unless these are told otherwise (--cache).
  emulator::HostCopies copies_{emulator::last_cache_bytes()};
  uint64_t sequence_ = 1;
  uint32_t arrived_count_ = 0;
  uint32_t arrived_[kRanksMax] = {};
  bool here_[kRanksMax] = {};
  bool all_staged_ = false;  // nobody has its blocks before everybody is here
  // What ranks send whose memory is their process's, by rank.
  std::vector<std::vector<uint8_t>> staged_;
};

Lengths lengths_of(const Posted& posted, uint32_t ranks) {
  return {posted.operation, static_cast<Spread>(posted.spread), ranks, posted.block_bytes};
}

// Set the flag, fence, look whether it sleeps: the other side of what the rank does.
void IdealCard::finish(uint32_t rank) {
  Done& done = shared_->done[rank];
  __atomic_store_n(&done.sequence, sequence_, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(&shared_->posted[rank].sleeping, __ATOMIC_RELAXED) == 0) return;
  __atomic_fetch_add(&done.wake_word, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &done.wake_word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// One block, between shared areas.
bool IdealCard::copy(uint32_t from, uint32_t to) {
  const Lengths lengths = lengths_of(shared_->posted[from], shared_->header.ranks);
  copies_.between(receive_buffer(to) + lengths.offset_in_receive(from, to),
                  send_buffer(from) + lengths.offset_in_send(from, to), lengths.bytes(from, to));
  return true;
}

// All that a rank sends.
bool IdealCard::stage(uint32_t rank) {
  const Posted& posted = shared_->posted[rank];
  const size_t bytes = lengths_of(posted, shared_->header.ranks).sent_by(rank);
  if (staged_[rank].size() < bytes) staged_[rank].resize(bytes);
  const iovec local = {staged_[rank].data(), bytes};
  const iovec remote = {reinterpret_cast<void*>(posted.send_address), bytes};
  return process_vm_readv(static_cast<pid_t>(posted.pid), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(bytes);
}

// All that a rank receives.
bool IdealCard::write_staged(uint32_t rank) {
  const Posted& posted = shared_->posted[rank];
  const uint32_t ranks = shared_->header.ranks;
  const bool one = posted.operation == PEAL_OPERATION_BROADCAST;
  const Lengths lengths = lengths_of(posted, ranks);
  iovec local[kRanksMax];
  const uint32_t count = one ? 1 : ranks;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t from = one ? posted.root : i;
    local[i] = {staged_[from].data() + lengths.offset_in_send(from, rank),
                lengths.bytes(from, rank)};
  }
  const size_t bytes = lengths.received();
  const iovec remote = {reinterpret_cast<void*>(posted.receive_address), bytes};
  return process_vm_writev(static_cast<pid_t>(posted.pid), local, count, &remote, 1, 0) ==
         static_cast<ssize_t>(bytes);
}

// A rank has its block as soon as it and the root are there; the root is the last to be done.
bool IdealCard::broadcast(uint32_t rank) {
  const uint32_t root = shared_->posted[rank].root;
  if (!here_[root]) return true;
  if (rank == root && shared_->posted[root].pid != 0 && !stage(root)) return false;
  for (uint32_t i = 0; i < arrived_count_; i++) {
    const uint32_t other = arrived_[i];
    if (other == root || (rank != root && other != rank)) continue;
    if (!(shared_->posted[other].pid != 0 ? write_staged(other) : copy(root, other))) return false;
    finish(other);
  }
  return true;
}

// A rank has posted: its blocks go to whoever is here, and theirs to it.
bool IdealCard::arrive(uint32_t rank) {
  const Posted& posted = shared_->posted[rank];
  here_[rank] = true;
  arrived_[arrived_count_++] = rank;
  all_staged_ = false;
  if (posted.operation == PEAL_OPERATION_BARRIER) return true;
  if (posted.operation == PEAL_OPERATION_BROADCAST) return broadcast(rank);
  all_staged_ = posted.pid != 0;
  if (all_staged_) return stage(rank);
  for (uint32_t i = 0; i < arrived_count_; i++) {
    const uint32_t other = arrived_[i];
    copy(rank, other);
    if (other != rank) copy(other, rank);
  }
  return true;
}

// One look at every flag. False when memory cannot be reached.
bool IdealCard::turn() {
  const uint32_t ranks = shared_->header.ranks;
  const uint32_t before = arrived_count_;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (here_[rank]) continue;
    if (__atomic_load_n(&shared_->posted[rank].sequence, __ATOMIC_ACQUIRE) != sequence_) continue;
    if (!arrive(rank)) return false;
  }
  if (yields_ && arrived_count_ == before) sched_yield();
  if (arrived_count_ < ranks) return true;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (all_staged_ && !write_staged(rank)) return false;
    finish(rank);
    here_[rank] = false;
  }
  arrived_count_ = 0;
  sequence_++;
  return true;
}

int IdealCard::run() {
  while (true) {
    switch (control()) {
      case Control::kIdle:
        syscall(SYS_futex, &shared_->header.control, FUTEX_WAIT,
                static_cast<uint32_t>(Control::kIdle), nullptr, nullptr, 0);
        break;
      case Control::kRun:
        if (!turn()) {
          perror("ideal-card: process_vm");
          return 1;
        }
        break;
      default:
        return 0;
    }
  }
}

int start(int argc, char** argv) {
  command_line::App app(
      "ideal-card", "ideal-card FD CPU [--yield]",
      "Plays the ideal card: copies and flags, without packets. peal-perf --floor starts it; by "
      "itself it is of no use.");

  int fd = -1;
  std::string cpu_text;
  bool yields = false;
  command_line::Group group(app);
  group.add("FD", fd, "", "Is the descriptor of the shared memory.")
      .check(command_line::whole(0, INT_MAX));
  group.add("CPU", cpu_text, "", "Is the processor to run on, or -1 for any.");
  group.add_flag("--yield", yields, "Gives way to ranks that share the processor.");
  if (const auto status = app.parse(argc, argv)) return *status;
  if (cpu_text.empty()) return app.complain("FD and CPU are missing");
  uint64_t cpu = 0;
  const bool pinned = cpu_text != "-1";
  if (pinned && !command_line::parse_whole(cpu_text, 0, CPU_SETSIZE - 1, &cpu))
    return app.complain("CPU: '" + cpu_text + "' is neither a processor nor -1");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (pinned) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) {
      perror("ideal-card: sched_setaffinity");
      return 1;
    }
  }
  struct stat status = {};
  if (fstat(fd, &status) != 0 || static_cast<size_t>(status.st_size) < sizeof(Shared)) {
    fprintf(stderr, "ideal-card: descriptor %d is no shared memory of peal-perf\n", fd);
    return 1;
  }
  void* memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) {
    perror("ideal-card: mmap");
    return 1;
  }
  auto* shared = static_cast<Shared*>(memory);
  if (shared->header.magic != kMagic || shared->header.ranks > kRanksMax) {
    fprintf(stderr, "ideal-card: descriptor %d is no shared memory of peal-perf\n", fd);
    return 1;
  }
  return IdealCard(shared, yields).run();
}

}  // namespace
}  // namespace peal::ideal

int main(int argc, char** argv) { return peal::ideal::start(argc, argv); }
