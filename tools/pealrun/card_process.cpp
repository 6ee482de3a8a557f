// SPDX-License-Identifier: BSD-2-Clause
// Starting and ending peal-nic; see card_process.h.
#include "tools/pealrun/card_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

namespace peal::run {
namespace {

constexpr int kReadyTimeoutMs = 60'000;  // DPDK starts in 0.3 s on a quiet machine
constexpr int kStopTimeoutMs = 10'000;

std::string find_nic(const Options& options) {
  if (!options.nic.empty()) return options.nic;
  const std::string beside = own_folder() + "/peal-nic";
  return access(beside.c_str(), X_OK) == 0 ? beside : "peal-nic";
}

// Waits for the first byte on the ready pipe; false on end of file, time-out or interruption.
bool wait_ready(int fd, const Interruption& interruption) {
  while (true) {
    pollfd waits[] = {{fd, POLLIN, 0}, {interruption.descriptor(), POLLIN, 0}};
    const int ready = poll(waits, 2, kReadyTimeoutMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || interruption.signal() != 0) return false;
    char byte = 0;
    const ssize_t got = read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

}  // namespace

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (bytes <= 0) return ".";
  const std::string whole(path, static_cast<size_t>(bytes));
  return whole.substr(0, whole.rfind('/'));
}

std::string CardProcess::url(uint32_t card) const {
  const size_t cores = sockets_.size();
  return "emu:" + sockets_[card % cores] + ",card=" + std::to_string(card / cores);
}

bool CardProcess::start(const Options& options, const Placement& placement,
                        const std::string& folder, const Inherited& inherited,
                        const Interruption& interruption) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) {
    perror("pealrun: pipe");
    return false;
  }
  std::vector<std::string> words = {find_nic(options), "--cards", std::to_string(options.cards),
                                    "--ready-fd", std::to_string(ready[1])};
  for (const int cpu : placement.card_cpus)
    words.insert(words.end(), {"--lcore-affinity", std::to_string(cpu)});
  sockets_ = {folder + "/cards"};
  for (size_t i = 1; i < placement.card_cpus.size(); i++)
    sockets_.push_back(sockets_[0] + std::to_string(i));
  for (const std::string& socket : sockets_) words.insert(words.end(), {"--socket", socket});
  if (placement.cards_yield) words.emplace_back("--yield");
  if (!options.counters_file.empty()) {
    words.insert(words.end(), {"--counters-json", options.counters_file});
  }
  words.insert(words.end(), options.nic_options.begin(), options.nic_options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    // A terminal's interrupt is for the ranks; the cards go after them.
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    inherited.give_back();
    fcntl(ready[1], F_SETFD, 0);
    execvp(arguments[0], arguments.data());
    fprintf(stderr, "pealrun: cannot start %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
  }
  if (pid_ > 0) setpgid(pid_, pid_);  // whoever of us is first
  close(ready[1]);
  const bool good = pid_ > 0 && wait_ready(ready[0], interruption);
  close(ready[0]);
  if (!good) {
    if (interruption.signal() == 0)
      fprintf(stderr, "pealrun: %s did not become ready\n", words[0].c_str());
    stop();
  }
  return good;
}

// False when some are left when the time is over. `status` is that of the first.
bool CardProcess::wait_for_all(int* status) const {
  for (int waited_ms = 0; waited_ms < kStopTimeoutMs; waited_ms += 10) {
    pid_t done = 0;
    int its_status = 0;
    while ((done = waitpid(-pid_, &its_status, WNOHANG)) > 0) {
      if (done == pid_) *status = its_status;
    }
    if (done < 0) return true;
    poll(nullptr, 0, 10);
  }
  return false;
}

bool CardProcess::stop() {
  if (pid_ <= 0) return true;
  int status = -1;  // of nobody
  kill(-pid_, SIGTERM);
  if (!wait_for_all(&status)) {
    fprintf(stderr, "pealrun: peal-nic does not end; killing it\n");
    kill(-pid_, SIGKILL);
    wait_for_all(&status);
  }
  pid_ = -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace peal::run
