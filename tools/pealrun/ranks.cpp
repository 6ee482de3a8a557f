// SPDX-License-Identifier: BSD-2-Clause
// Starting and watching ranks; see ranks.h.
#include "tools/pealrun/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

namespace peal::run {
namespace {

constexpr int kCannotRun = 127;         // as a shell has it
constexpr int kTimedOut = 124;          // as timeout(1) has it
constexpr double kReaderPatienceS = 5;  // of --timeout, when ranks were killed at its end
constexpr size_t kPieceBytes = 65536;   // of output; what a pipe holds unless somebody changed that

double now_s() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Ranks::~Ranks() { end_all(); }

bool Ranks::start(const std::string& oob, const std::string& token) {
  oob_ = oob;
  token_ = token;
  if (options_.label) output_.open();
  for (uint32_t number = options_.first; number <= options_.last; number++) {
    // A terminal's signal, which is not forwarded, has not reached a rank that comes after it.
    if (interruption_.signal() != 0) return false;
    ranks_.push_back(Rank{number, -1, -1, {}});
    if (!start_one(ranks_.back())) return false;
  }
  if (interruption_.signal() != 0) return false;
  if (options_.timeout_s > 0) timeout_at_s_ = reader_until_s_ = now_s() + options_.timeout_s;
  return true;
}

bool Ranks::start_one(Rank& rank) {
  int output[2] = {-1, -1};
  if (options_.label && pipe2(output, O_CLOEXEC) != 0) {
    perror("pealrun: pipe");
    return false;
  }
  const pid_t parent = getpid();
  rank.pid = fork();
  if (rank.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    become(rank, output[1]);
  }
  if (output[1] >= 0) close(output[1]);
  rank.output = output[0];
  if (rank.output >= 0) fcntl(rank.output, F_SETFL, O_NONBLOCK);
  if (rank.pid < 0) perror("pealrun: fork");
  return rank.pid > 0;
}

void Ranks::become(const Rank& rank, int output) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (placement_.pin_ranks) {
    const cpu_set_t cpus = cpus_of_rank(placement_, rank.number);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
      fprintf(stderr, "pealrun: cannot run rank %u on the processors %s: %s\n", rank.number,
              cpu_list(cpus).c_str(), strerror(errno));
      _exit(kCannotRun);
    }
  }
  const std::string card = options_.card_urls.empty()
                               ? cards_.url(rank.number % options_.cards)
                               : options_.card_urls[rank.number % options_.card_urls.size()];
  setenv("PEAL_RANK", std::to_string(rank.number).c_str(), 1);
  setenv("PEAL_SIZE", std::to_string(options_.ranks).c_str(), 1);
  setenv("PEAL_CARD", card.c_str(), 1);
  setenv("PEAL_OOB", oob_.c_str(), 1);
  setenv("PEAL_OOB_TOKEN", token_.c_str(), 1);
  // For tools that measure: where the cards poll, whether they give way there, and a further card
  // for each rank. What another pealrun has said of its own cards, which may have started this one,
  // says nothing of these.
  unsetenv("PEAL_CARD_CPU");
  unsetenv("PEAL_CARD_YIELDS");
  unsetenv("PEAL_SECOND_CARD");
  if (!placement_.card_cpus.empty()) {
    setenv("PEAL_CARD_CPU", std::to_string(placement_.card_cpus.back()).c_str(), 1);
  }
  if (placement_.cards_yield) setenv("PEAL_CARD_YIELDS", "1", 1);
  if (options_.cards >= 2 * options_.ranks) {
    setenv("PEAL_SECOND_CARD", cards_.url(rank.number + options_.ranks).c_str(), 1);
  }
  if (rank.number != options_.first) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  inherited_.give_back();  // (what is opened before may need more descriptors)
  std::vector<char*> arguments;
  for (const std::string& word : options_.program) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  // A program beside pealrun may be named without its folder.
  const std::string beside = own_folder() + "/" + options_.program[0];
  if (options_.program[0].find('/') == std::string::npos && access(beside.c_str(), X_OK) == 0) {
    execv(beside.c_str(), arguments.data());
  }
  execvp(arguments[0], arguments.data());
  fprintf(stderr, "pealrun: cannot start %s: %s\n", arguments[0], strerror(errno));
  _exit(kCannotRun);
}

int Ranks::watch(int signals, std::function<void(uint32_t)> on_end) {
  on_end_ = std::move(on_end);
  while (!is_over()) {
    if (!kill_if_late()) wait_for_news(signals);
  }
  end_all();
  return exit_status_;
}

void Ranks::wait_for_news(int signals) {
  std::vector<pollfd> waits = {{signals, POLLIN, 0}};
  if (options_.label) {
    // While the output is full ranks wait, as they would for its reader itself.
    waits.push_back({output_.left() != 0 ? output_.descriptor() : -1, POLLOUT, 0});
    for (const Rank& rank : ranks_)
      waits.push_back({output_.is_full() ? -1 : rank.output, POLLIN, 0});
  }
  poll(waits.data(), waits.size(), milliseconds_left());
  if (options_.label) copy_outputs(waits);
  signalfd_siginfo info = {};
  while (read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGCHLD)
      forward(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
  }
  reap();
  terminate_if_late();
}

void Ranks::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    orphans_.reaped(pid);
    if (pid == cards_.pid()) {
      cards_.reaped();
      fprintf(stderr, "pealrun: peal-nic ended before the ranks\n");
      failed(1);
      continue;
    }
    for (Rank& rank : ranks_) {
      if (rank.pid == pid) one_ended(rank, status);
    }
  }
  if (alive() != 0) return;
  // What ranks left behind may finish what it does: a tee(1) has their last words.
  begin_grace(options_.grace_s >= 0 ? options_.grace_s : kGraceDefaultS);
  if (terminate_at_s_ == 0) terminate_at_s_ = (now_s() + kill_at_s_) / 2;
}

void Ranks::one_ended(Rank& rank, int status) {
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "pealrun: rank %u (pid %d) was killed by signal %d (%s)\n", rank.number,
            static_cast<int>(rank.pid), WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    fprintf(stderr, "pealrun: rank %u (pid %d) exited with status %d\n", rank.number,
            static_cast<int>(rank.pid), WEXITSTATUS(status));
  }
  rank.pid = -1;
  on_end_(rank.number);
  if (status != 0) failed(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// Of a rank or of the cards. The first failure is the job's, and from it on the grace period runs.
void Ranks::failed(int status) {
  if (exit_status_ != 0) return;
  exit_status_ = status;
  if (options_.grace_s >= 0) begin_grace(options_.grace_s);
}

void Ranks::begin_grace(double seconds) {
  if (kill_at_s_ == 0 && !killed_) kill_at_s_ = now_s() + std::max(seconds, 1e-3);
}

bool Ranks::kill_if_late() {
  const double now = now_s();
  const bool timed_out = timeout_at_s_ != 0 && now >= timeout_at_s_;
  if (!timed_out && (kill_at_s_ == 0 || now < kill_at_s_)) return false;
  if (killed_) {
    gave_up_ = true;
    return true;
  }
  signal_all(SIGKILL);  // before anything is said: who reads that may be slow as well
  if (alive() == 0) {
    fprintf(stderr, "pealrun: killing what the ranks left behind\n");
  } else if (timed_out) {
    fprintf(stderr, "pealrun: killing %zu ranks after %g s\n", alive(), options_.timeout_s);
    exit_status_ = kTimedOut;
  } else {
    fprintf(stderr, "pealrun: killing the other %zu ranks\n", alive());
  }
  timeout_at_s_ = 0;
  kill_at_s_ = now + static_cast<double>(Orphans::kPatienceMs) * 1e-3;
  killed_ = true;
  return true;
}

// Half of the time that is left to them before they are killed; who comes later is told at once.
void Ranks::terminate_if_late() {
  if (killed_ || terminate_at_s_ == 0 || now_s() < terminate_at_s_) return;
  if (!orphans_.terminate() || terminated_) return;
  terminated_ = true;
  fprintf(stderr, "pealrun: ending what the ranks left behind\n");
}

// To the ranks; when these have ended, to what they left behind. A terminal's has reached our whole
// process group by itself.
void Ranks::forward(int number, bool of_terminal) {
  const auto tell = [&](pid_t pid) {
    if (!of_terminal || getpgid(pid) != getpgrp()) kill(pid, number);
  };
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) tell(rank.pid);
  }
  if (alive() != 0) return;
  for (const pid_t pid : orphans_.here()) tell(pid);
}

void Ranks::signal_all(int number) {
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) kill(rank.pid, number);
  }
}

// Whatever happened before; nothing is left of the ranks then, but for who does not end.
void Ranks::end_all() {
  orphans_.kill_all(gave_up_ ? Orphans::kLastPatienceMs : Orphans::kPatienceMs);  // ranks, too
  for (Rank& rank : ranks_) rank.pid = -1;
  if (reader_until_s_ != 0) reader_until_s_ = std::max(reader_until_s_, now_s() + kReaderPatienceS);
  // Only what is there now: somebody else may hold the pipe, and write for ever.
  for (Rank& rank : ranks_) {
    int bytes = 0;
    if (rank.output < 0 || ioctl(rank.output, FIONREAD, &bytes) != 0) bytes = 0;
    for (; bytes > 0; bytes -= static_cast<int>(kPieceBytes)) {
      wait_for_reader(kPieceBytes);
      copy_output(rank);
    }
    end_output(rank);
  }
  wait_for_reader(0);
}

// When nobody is left who could be kept waiting: a pager may take long. Until a signal, or the end
// of --timeout.
void Ranks::wait_for_reader(size_t left_max) {
  while (output_.left() > left_max) {
    pollfd waits[] = {{output_.descriptor(), POLLOUT, 0}, {interruption_.descriptor(), POLLIN, 0}};
    const double left_ms = (reader_until_s_ - now_s()) * 1e3;
    poll(waits, 2,
         reader_until_s_ == 0 ? -1 : static_cast<int>(std::clamp(left_ms + 1, 0.0, 3.6e6)));
    output_.write_some();
    const int number = interruption_.signal();
    const bool late = reader_until_s_ != 0 && now_s() >= reader_until_s_;
    if (output_.left() == 0 || (number == 0 && !late)) continue;
    fprintf(stderr, "pealrun: output that nobody has read is lost\n");
    output_.give_up();
    if (exit_status_ == 0) exit_status_ = number != 0 ? 128 + number : kTimedOut;
  }
}

// A turn begins with whom the last one had no room for.
void Ranks::copy_outputs(const std::vector<pollfd>& waits) {
  if (waits[1].revents != 0) output_.write_some();
  const size_t first = next_heard_;
  for (size_t i = 0; i < ranks_.size(); i++) {
    const size_t place = (first + i) % ranks_.size();
    if (waits[2 + place].revents == 0) continue;
    next_heard_ = place;
    if (output_.is_full()) return;
    if (!copy_output(ranks_[place])) end_output(ranks_[place]);
  }
}

// Whole lines only, so that ranks do not mix theirs. One piece a turn, for a rank may write faster
// than it is read. False at the end of the output.
bool Ranks::copy_output(Rank& rank) {
  char buffer[kPieceBytes];
  const ssize_t got = read(rank.output, buffer, sizeof(buffer));
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  size_t begin = 0;
  size_t end = rank.line.size();  // there is none before: a line may be long
  rank.line.append(buffer, static_cast<size_t>(got));
  while ((end = rank.line.find('\n', end)) != std::string::npos) {
    output_.add_line(rank.number, std::string_view(rank.line).substr(begin, end - begin));
    begin = ++end;
  }
  rank.line.erase(0, begin);
  output_.write_some();
  return got != 0;
}

void Ranks::end_output(Rank& rank) {
  if (rank.output < 0) return;
  if (!rank.line.empty()) output_.add_line(rank.number, rank.line);
  rank.line.clear();
  output_.write_some();
  close(rank.output);
  rank.output = -1;
}

size_t Ranks::alive() const {
  return static_cast<size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.pid > 0; }));
}

// An output that is still open then is somebody else's: nobody waits for it.
bool Ranks::is_over() const {
  return gave_up_ || (alive() == 0 && (killed_ || orphans_.here().empty()));
}

int Ranks::milliseconds_left() const {
  double until = 0;
  if (kill_at_s_ != 0) until = kill_at_s_;
  if (timeout_at_s_ != 0 && (until == 0 || timeout_at_s_ < until)) until = timeout_at_s_;
  if (until == 0) return -1;
  const double now = now_s();
  if (!killed_ && terminate_at_s_ > now) until = std::min(until, terminate_at_s_);
  const double left_ms = (until - now) * 1e3;
  return static_cast<int>(std::clamp(left_ms + 1, 0.0, 3.6e6));
}

}  // namespace peal::run
