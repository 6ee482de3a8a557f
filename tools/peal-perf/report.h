// SPDX-License-Identifier: BSD-2-Clause
// The results: a table for people, a JSON list for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peal::perf {

struct Record {
  std::string operation;
  std::string algorithm;
  std::string memory;
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  uint64_t iterations = 0;
  double latency_us = 0;  // median
  double latency_us_min = 0;
  double latency_us_max = 0;
  double period_us = 0;  // median, back to back
  bool verified = false;
  // Packets per operation, from the cards' counters; all zero for the ideal card.
  double packets = 0;
  double packets_collective = 0;
  double packets_recycling = 0;
  double packets_repair = 0;
  // Against the ideal card, round by round; zero where it was not measured.
  double ratio = 0;
  double ratio_min = 0;
  double ratio_max = 0;
};

void print_header(bool with_ratio);
void print_record(const Record& record, bool with_ratio);
// False with errno.
bool write_json(const std::string& path, const std::vector<Record>& records);

}  // namespace peal::perf
