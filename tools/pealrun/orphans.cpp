// SPDX-License-Identifier: BSD-2-Clause
// Finding and ending what ranks left behind; see orphans.h.
#include "tools/pealrun/orphans.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace peal::run {
namespace {

constexpr int kLookMs = 10;

// -1 when it is gone. A program's name may hold anything, brackets and spaces too.
pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  int parent = -1;
  if (name_end == std::string::npos) return -1;
  return sscanf(line.c_str() + name_end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

// Those that have ended but were not waited for, too. The kernel's own list of children
// (/proc/PID/task/TID/children) may pass over some while others end.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return found;
  while (const dirent* entry = readdir(processes)) {
    const std::string_view name(entry->d_name);
    pid_t pid = -1;
    const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || stop != name.data() + name.size()) continue;
    if (parent_of(std::string(name)) == getpid()) found.push_back(pid);
  }
  closedir(processes);
  return found;
}

}  // namespace

Orphans::Orphans() : others_(children()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> Orphans::here() const {
  std::vector<pid_t> found = children();
  std::erase_if(found, [this](pid_t pid) { return std::ranges::count(others_, pid) != 0; });
  return found;
}

void Orphans::reaped(pid_t pid) {
  std::erase(others_, pid);
  std::erase(asked_, pid);
}

bool Orphans::terminate() {
  const size_t before = asked_.size();
  for (const pid_t pid : here()) {
    if (std::ranges::count(asked_, pid) != 0) continue;
    kill(pid, SIGTERM);
    asked_.push_back(pid);
  }
  return asked_.size() != before;
}

// Mostly nobody: but what starts the cards may have started them in a session of their own, and
// cards that are not killed leave nothing behind.
Orphans::~Orphans() {
  const uint64_t kill_at_ms = monotonic_ms() + kPatienceMs;
  while (!gave_up_ && !here().empty() && monotonic_ms() < kill_at_ms) {
    terminate();
    for (const pid_t pid : here()) waitpid(pid, nullptr, WNOHANG);
    poll(nullptr, 0, kLookMs);
  }
  kill_all();
}

void Orphans::kill_all(uint64_t patience_ms) {
  const uint64_t give_up_at_ms = monotonic_ms() + patience_ms;
  while (!gave_up_) {
    const std::vector<pid_t> found = here();
    if (found.empty()) return;
    size_t killed = 0;
    for (const pid_t pid : found) {
      if (kill(pid, SIGKILL) == 0) killed++;
    }
    poll(nullptr, 0, kLookMs);
    for (const pid_t pid : found) waitpid(pid, nullptr, WNOHANG);
    gave_up_ = killed == 0 || monotonic_ms() >= give_up_at_ms;
    const size_t left = gave_up_ ? here().size() : 0;  // whoever ended may have left somebody
    if (left != 0) fprintf(stderr, "pealrun: %zu processes do not end\n", left);
  }
}

}  // namespace peal::run
