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

#include "emulator/common/command_line.h"
#include "tools/ideal-card/layout.h"

namespace peal::ideal {
namespace {

class IdealCard {
 public:
  explicit IdealCard(Shared* shared) : shared_(shared), base_(reinterpret_cast<uint8_t*>(shared)) {}

  int run();

 private:
  Control control() const {
    return static_cast<Control>(__atomic_load_n(&shared_->header.control, __ATOMIC_ACQUIRE));
  }
  bool turn();
  bool arrive(uint32_t rank);
  bool copy_processes();
  uint8_t* send_block(uint32_t rank) const {
    return base_ + shared_->header.send_offset + rank * shared_->header.send_stride;
  }
  uint8_t* receive_buffer(uint32_t rank) const {
    return base_ + shared_->header.receive_offset + rank * shared_->header.receive_stride;
  }

  Shared* shared_;
  uint8_t* base_;
  uint64_t sequence_ = 1;
  uint32_t arrived_count_ = 0;
  uint32_t arrived_[kRanksMax] = {};
  bool here_[kRanksMax] = {};
  std::vector<uint8_t> staging_;  // for memory of processes
};

// A rank has posted: its block goes to whoever is here, and theirs to it.
bool IdealCard::arrive(uint32_t rank) {
  const Posted& posted = shared_->posted[rank];
  here_[rank] = true;
  arrived_[arrived_count_++] = rank;
  if (posted.operation != Operation::kAllgather) return true;
  const size_t bytes = posted.block_bytes;
  if (posted.pid != 0) {
    if (staging_.size() < bytes * shared_->header.ranks) {
      staging_.resize(bytes * shared_->header.ranks);
    }
    const iovec local = {staging_.data() + rank * bytes, bytes};
    const iovec remote = {reinterpret_cast<void*>(posted.send_address), bytes};
    return process_vm_readv(static_cast<pid_t>(posted.pid), &local, 1, &remote, 1, 0) ==
           static_cast<ssize_t>(bytes);
  }
  for (uint32_t i = 0; i < arrived_count_; i++) {
    const uint32_t other = arrived_[i];
    memcpy(receive_buffer(other) + rank * bytes, send_block(rank), bytes);
    if (other != rank) memcpy(receive_buffer(rank) + other * bytes, send_block(other), bytes);
  }
  return true;
}

bool IdealCard::copy_processes() {
  const uint32_t ranks = shared_->header.ranks;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const Posted& posted = shared_->posted[rank];
    if (posted.operation != Operation::kAllgather || posted.pid == 0) continue;
    const size_t bytes = posted.block_bytes * ranks;
    const iovec local = {staging_.data(), bytes};
    const iovec remote = {reinterpret_cast<void*>(posted.receive_address), bytes};
    if (process_vm_writev(static_cast<pid_t>(posted.pid), &local, 1, &remote, 1, 0) !=
        static_cast<ssize_t>(bytes)) {
      return false;
    }
  }
  return true;
}

// One look at every flag. False when memory cannot be reached.
bool IdealCard::turn() {
  const uint32_t ranks = shared_->header.ranks;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (here_[rank]) continue;
    if (__atomic_load_n(&shared_->posted[rank].sequence, __ATOMIC_ACQUIRE) != sequence_) continue;
    if (!arrive(rank)) return false;
  }
  if (arrived_count_ < ranks) return true;
  if (!copy_processes()) return false;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    __atomic_store_n(&shared_->done[rank].sequence, sequence_, __ATOMIC_RELEASE);
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
  CLI::App app(
      "Plays the ideal card: copies and flags, without packets. peal-perf --floor starts it; by "
      "itself it is of no use.",
      "ideal-card");
  command_line::set_up(app, "ideal-card FD CPU");
  int fd = -1;
  std::string cpu_text;
  command_line::Group group(app);
  group.add("FD", fd, "", "Is the descriptor of the shared memory.")
      ->transform(command_line::whole(0, INT_MAX));
  group.add("CPU", cpu_text, "", "Is the processor to run on, or -1 for any.");
  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  if (cpu_text.empty()) return command_line::complain(app, "FD and CPU are missing");
  uint64_t cpu = 0;
  const bool pinned = cpu_text != "-1";
  if (pinned && !command_line::parse_whole(cpu_text, 0, CPU_SETSIZE - 1, &cpu))
    return command_line::complain(app, "CPU: '" + cpu_text + "' is neither a processor nor -1");
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
  return IdealCard(shared).run();
}

}  // namespace
}  // namespace peal::ideal

int main(int argc, char** argv) { return peal::ideal::start(argc, argv); }
