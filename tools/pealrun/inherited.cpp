// SPDX-License-Identifier: BSD-2-Clause
#include "tools/pealrun/inherited.h"

namespace peal::run {

Inherited::Inherited() : raised_(getrlimit(RLIMIT_NOFILE, &descriptors_) == 0) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &children_);
  rlimit most = descriptors_;
  most.rlim_cur = most.rlim_max;
  raised_ = raised_ && setrlimit(RLIMIT_NOFILE, &most) == 0;
}

void Inherited::give_back() const {
  sigaction(SIGCHLD, &children_, nullptr);
  if (raised_) setrlimit(RLIMIT_NOFILE, &descriptors_);
}

}  // namespace peal::run
