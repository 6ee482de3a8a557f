// SPDX-License-Identifier: BSD-2-Clause
// What whoever started pealrun gave it that is of no use to pealrun itself. Its children are given
// it as it was.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace peal::run {

class Inherited {
 public:
  // Changes it. Where SIGCHLD is ignored nobody can wait for children, and their numbers may be
  // others' at once; and each rank costs pealrun a descriptor or two.
  Inherited();
  // Of a child, before it becomes another program.
  void give_back() const;

 private:
  struct sigaction children_ = {};
  rlimit descriptors_ = {};
  bool raised_;  // the limit of descriptors
};

}  // namespace peal::run
