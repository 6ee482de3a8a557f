// SPDX-License-Identifier: BSD-2-Clause
// Is the card alive? It beats at least every interval. Silence counts only while we are looking: a
// process that was stopped for an hour (with its card, say) has not seen an hour of silence.
#pragma once

#include <algorithm>
#include <cstdint>

namespace peal::host {

class Liveness {
 public:
  static constexpr uint64_t kPatienceNs = 5'000'000'000;

  // True when the card has been silent for longer than ten intervals plus five seconds of looking.
  bool silent(uint64_t beats, uint64_t interval_ns, uint64_t now_ns) {
    if (!looked_ || beats != beats_) {
      looked_ = true;
      beats_ = beats;
      silence_ns_ = 0;
    } else {
      silence_ns_ += std::min(now_ns - last_look_ns_, kLookMaxNs);
    }
    last_look_ns_ = now_ns;
    return silence_ns_ > 10 * interval_ns + kPatienceNs;
  }
  // Nobody looked for a while because nothing was pending: start again.
  void forget() { looked_ = false; }

 private:
  static constexpr uint64_t kLookMaxNs = 200'000'000;

  bool looked_ = false;
  uint64_t beats_ = 0;
  uint64_t last_look_ns_ = 0;
  uint64_t silence_ns_ = 0;
};

}  // namespace peal::host
