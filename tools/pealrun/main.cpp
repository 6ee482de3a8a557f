// SPDX-License-Identifier: BSD-2-Clause
// pealrun: a job on one machine without MPI. Cards first, then the out-of-band server, then the
// ranks; the other way round at the end, whatever happened in between.
#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "hostlib/oob_server.h"
#include "tools/pealrun/card_process.h"
#include "tools/pealrun/cpus.h"
#include "tools/pealrun/folder.h"
#include "tools/pealrun/inherited.h"
#include "tools/pealrun/interruption.h"
#include "tools/pealrun/options.h"
#include "tools/pealrun/orphans.h"
#include "tools/pealrun/ranks.h"

namespace peal::run {
namespace {

constexpr int kCannotStart = 125;

// Serves the exchange in a thread, for as long as it lives.
class OobThread {
 public:
  OobThread(uint32_t size, const host::OobToken& token) : server_(size, token) {}
  OobThread(const OobThread&) = delete;
  OobThread& operator=(const OobThread&) = delete;
  ~OobThread() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
    const std::string refused = server_.refused_text();
    if (!refused.empty()) fprintf(stderr, "pealrun: at the exchange %s\n", refused.c_str());
  }
  bool listen(const std::string& text) {
    host::OobAddress address;
    std::string error;
    if (host::parse_oob_address(text, &address, &error) && server_.listen(address, &error)) {
      return true;
    }
    fprintf(stderr, "pealrun: %s\n", error.c_str());
    return false;
  }
  // After the ranks were forked: a child of a process with threads may do little before exec.
  void serve() {
    thread_ = std::thread([this] { server_.run(); });
  }
  void ended(uint32_t rank) { server_.ended(rank); }

 private:
  host::OobServer server_;
  std::thread thread_;
};

// The job's secret: that of the environment when a job has several parts, else a new one.
bool find_token(host::OobToken* token) {
  std::optional<host::OobToken> given;
  std::string error;
  if (!host::token_of_environment(&given, &error)) {
    fprintf(stderr, "pealrun: %s\n", error.c_str());
    return false;
  }
  if (given) {
    *token = *given;
    return true;
  }
  if (host::draw(token)) return true;
  perror("pealrun: getrandom");
  return false;
}

int block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&set, number);
  }
  sigset_t blocked = set;
  // Not ignored: that would survive exec, and ranks have of it what pealrun was given.
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// The exit status of a job that was not started.
int not_started(const Interruption& interruption) {
  const int number = interruption.signal();
  if (number == 0) return kCannotStart;
  fprintf(stderr, "pealrun: ended by signal %d (%s) before all ranks were started\n", number,
          strsignal(number));
  return 128 + number;
}

int run(const Options& options) {
  const Inherited inherited;
  Placement placement;
  std::string error;
  if (!place(options, &placement, &error)) {
    fprintf(stderr, "pealrun: %s\n", error.c_str());
    return kCannotStart;
  }
  host::OobToken token = {};
  if (!find_token(&token)) return kCannotStart;
  const Folder folder(temporary_place());
  if (folder.path().empty()) {
    fprintf(stderr, "pealrun: cannot make a temporary folder: %s\n", strerror(errno));
    return kCannotStart;
  }
  const int signals = block_signals();
  if (signals < 0) {
    perror("pealrun: signalfd");
    return kCannotStart;
  }
  const Interruption interruption;
  Orphans orphans;
  CardProcess cards;
  if (options.cards != 0 &&
      !cards.start(options, placement, folder.path(), inherited, interruption))
    return not_started(interruption);
  orphans.leave_out(cards.pid());

  const std::string oob = options.oob.empty() ? "unix:" + folder.path() + "/oob" : options.oob;
  std::optional<OobThread> server;
  if (options.first == 0) {  // the part of the job with rank 0 serves the others
    server.emplace(options.ranks, token);
    if (!server->listen(oob)) return kCannotStart;
  }
  int status = kCannotStart;
  {
    Ranks ranks(options, placement, inherited, interruption, cards, orphans);
    if (ranks.start(oob, host::token_text(token))) {
      if (server) server->serve();
      status = ranks.watch(signals, [&server](uint32_t rank) {
        if (server) server->ended(rank);
      });
    } else {
      status = not_started(interruption);
    }
  }
  if (!cards.stop()) {
    fprintf(stderr, "pealrun: peal-nic did not end well\n");
    if (status == 0) status = 1;
  }
  close(signals);
  return status;
}

}  // namespace
}  // namespace peal::run

int main(int argc, char** argv) {
  peal::run::Options options;
  if (const auto status = peal::run::parse_options(argc, argv, &options)) return *status;
  return peal::run::run(options);
}
