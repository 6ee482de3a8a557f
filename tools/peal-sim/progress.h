// SPDX-License-Identifier: BSD-2-Clause
// A line on standard error that says how far a long run is, every other second, when somebody looks
// at it.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "emulator/cluster/sim_time.h"

namespace peal::sim {

class Progress {
 public:
  Progress(std::string what, bool quiet)
      : what_(std::move(what)), on_(!quiet && isatty(STDERR_FILENO) == 1) {}

  // For RunOptions::progress; empty when nobody looks. Must not outlive this object.
  std::function<void(TimeNs, uint64_t, uint64_t)> callback() {
    if (!on_) return {};
    return [this](TimeNs now_ns, uint64_t unfinished, uint64_t sent) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_ < std::chrono::seconds(2)) return;
      last_ = now;
      shown_ = true;
      std::fprintf(stderr,
                   "\r%s: virtual %.3f ms, %" PRIu64 " packets, %" PRIu64 " posts to go \033[K",
                   what_.c_str(), static_cast<double>(now_ns) / 1e6, sent, unfinished);
    };
  }

  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  std::string what_;
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace peal::sim
