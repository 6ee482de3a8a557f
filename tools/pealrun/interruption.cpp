// SPDX-License-Identifier: BSD-2-Clause
#include "tools/pealrun/interruption.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace peal::run {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

Interruption::Interruption() {
  sigemptyset(&set_);
  for (const int number : kEnding) {
    struct sigaction given = {};
    sigaction(number, nullptr, &given);
    if (given.sa_handler != SIG_IGN) sigaddset(&set_, number);
  }
  descriptor_ = signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interruption::~Interruption() {
  if (descriptor_ >= 0) close(descriptor_);
}

int Interruption::signal() const {
  sigset_t pending;
  sigpending(&pending);
  for (const int number : kEnding) {
    if (sigismember(&set_, number) == 1 && sigismember(&pending, number) == 1) return number;
  }
  return 0;
}

}  // namespace peal::run
