// SPDX-License-Identifier: BSD-2-Clause
// One line of text per frame sent, in the order of sending;
// the same text in every home of the firmware.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include "emulator/cluster/observer.h"
#include "emulator/common/packet_text.h"

namespace peal::sim {

class TraceFile final : public Observer {
 public:
  explicit TraceFile(const std::string& path) : path_(path), file_(path) {
    if (!file_) throw std::runtime_error("cannot write '" + path + "'");
  }

  void on_send(TimeNs, const FrameView& frame) override {
    file_ << emulator::packet_text(*frame.header, frame.to_card) << '\n';
  }

  void close() {
    file_.close();
    if (!file_) throw std::runtime_error("cannot write all of '" + path_ + "'");
  }

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace peal::sim
