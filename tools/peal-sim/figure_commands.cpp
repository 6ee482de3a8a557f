// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim broadcast-figure`, `alltoall-figure` and `allgather-figure`: the papers' figures of
// programs.
#include <bit>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/program_figures.h"
#include "tools/peal-sim/report_json.h"

namespace peal::sim {

namespace {

using command_line::Group;
using command_line::number;
using command_line::whole;

// A figure is of one machine, so its model has no default.
void add_model(Group& group, std::string* file, const std::string& what,
               const std::string& example) {
  group
      .add("--model", *file, "FILE",
           "Takes " + what + " from this file; see tools/peal-sim/models/" + example + ".json.")
      .required();
}

void add_json(Group& group, std::string* file) {
  group.add("--json", *file, "FILE",
            "Writes the figures to this file (-: standard output). Default: none.");
}

CostModel model_of(const std::string& file) {
  CostModel model;
  const std::string problem = load_cost_model(file, &model);
  if (!problem.empty()) throw UsageError("--model: " + problem);
  return model;
}

double microseconds(TimeNs time) { return static_cast<double>(time) / 1000; }

struct BroadcastArguments {
  std::string model;
  uint64_t bytes = uint64_t{128} << 20;
  uint64_t segment = uint64_t{2} << 20;
  std::string json;
};

int broadcast_figure(const BroadcastArguments& arguments) {
  const CostModel model = model_of(arguments.model);
  if (model.torus[0] == 0) throw UsageError("--model: this one has no torus");
  struct Row {
    const char* name;
    bool trinary;
    Start start;
  };
  constexpr Row kRows[] = {{"chain", false, Start::kResident},
                           {"trinaryx3", true, Start::kResident},
                           {"trinaryx3, enqueued anew", true, Start::kEnqueued}};
  const bool prints = arguments.json != "-";
  if (prints) {
    std::printf("%ux%ux%u cards, %llu bytes in segments of %llu\n", model.torus[0], model.torus[1],
                model.torus[2], static_cast<unsigned long long>(arguments.bytes),
                static_cast<unsigned long long>(arguments.segment));
    std::printf("%-26s %12s %10s %12s %8s\n", "", "descriptors", "start us", "whole us", "GB/s");
  }
  nlohmann::json records = nlohmann::json::array();
  for (const Row& row : kRows) {
    const BroadcastTimes times = measure(model, {.trinary = row.trinary,
                                                 .start = row.start,
                                                 .bytes = arguments.bytes,
                                                 .segment_bytes = arguments.segment});
    const double rate = static_cast<double>(arguments.bytes) / static_cast<double>(times.total_ns);
    if (prints) {
      std::printf("%-26s %12llu %10.2f %12.1f %8.2f\n", row.name,
                  static_cast<unsigned long long>(times.descriptors), microseconds(times.start_ns),
                  microseconds(times.total_ns), rate);
      std::fflush(stdout);
    }
    records.push_back({{"algorithm", row.name},
                       {"descriptors", times.descriptors},
                       {"start_us", microseconds(times.start_ns)},
                       {"whole_us", microseconds(times.total_ns)},
                       {"gigabytes_per_second", rate}});
  }
  if (!arguments.json.empty()) write_json(arguments.json, records);
  return 0;
}

struct AlltoallArguments {
  std::string model;
  uint32_t ranks = 64;
  uint32_t ranks_per_card = 8;
  uint64_t bytes = 65536;
  uint32_t window = 0;
  uint32_t overlap = 0;
  std::string json;
};

// Records go to standard output alone, if at all.
nlohmann::json overlap_record(const CostModel& model, const AlltoallFigure& figure, uint32_t starts,
                              bool prints) {
  const AlltoallOverlap overlap = measure_overlap(model, figure, starts);
  if (prints) {
    std::printf("%8u %12.1f %12.1f %12.1f %11.2f %11.2f\n", figure.window, overlap.comm_ns / 1000,
                overlap.work_ns / 1000, overlap.both_ns / 1000, 100 * overlap.share,
                100 * overlap.ratio);
    std::fflush(stdout);
  }
  return {{"window", figure.window},           {"comm_us", overlap.comm_ns / 1000},
          {"work_us", overlap.work_ns / 1000}, {"both_us", overlap.both_ns / 1000},
          {"overlap", overlap.share},          {"work_of_both", overlap.ratio}};
}

nlohmann::json time_record(const CostModel& model, const AlltoallFigure& figure, bool prints) {
  const AlltoallTimes times = measure(model, figure);
  if (prints) {
    std::printf("%8u %12.1f %12llu\n", figure.window, microseconds(times.total_ns),
                static_cast<unsigned long long>(times.sent_again));
    std::fflush(stdout);
  }
  return {{"window", figure.window},
          {"whole_us", microseconds(times.total_ns)},
          {"sent_again", times.sent_again}};
}

int alltoall_figure(const AlltoallArguments& arguments) {
  const CostModel model = model_of(arguments.model);
  if (arguments.ranks % arguments.ranks_per_card != 0) {
    throw UsageError("--ranks " + std::to_string(arguments.ranks) + ": they do not fill cards of " +
                     std::to_string(arguments.ranks_per_card));
  }
  const bool prints = arguments.json != "-";
  if (prints) {
    std::printf("%u ranks, %u a card, %llu bytes for each rank\n", arguments.ranks,
                arguments.ranks_per_card, static_cast<unsigned long long>(arguments.bytes));
    if (arguments.overlap == 0) {
      std::printf("%8s %12s %12s\n", "window", "whole us", "sent again");
    } else {
      std::printf("%8s %12s %12s %12s %11s %11s\n", "window", "T_comm us", "T_work us", "T_both us",
                  "overlap %", "work %");
    }
  }
  nlohmann::json records = nlohmann::json::array();
  std::vector<uint32_t> windows = {1, 2, 4, 6, 8, 16, 32};
  if (arguments.window != 0) windows = {arguments.window};
  for (const uint32_t window : windows) {
    const AlltoallFigure figure = {.ranks = arguments.ranks,
                                   .ranks_per_card = arguments.ranks_per_card,
                                   .block_bytes = arguments.bytes,
                                   .window = window};
    records.push_back(arguments.overlap == 0
                          ? time_record(model, figure, prints)
                          : overlap_record(model, figure, arguments.overlap, prints));
  }
  if (!arguments.json.empty()) write_json(arguments.json, records);
  return 0;
}

struct AllgatherArguments {
  std::string model;
  uint32_t ranks = 32;
  uint64_t bytes = 32768;
  bool messages = false;
  double message_us = -1;  // below 0: the model's
  double page_us = -1;
  double deregister_us = -1;
  std::string json;
};

int compare_allgathers(const CostModel& model, const AllgatherArguments& arguments) {
  if (!std::has_single_bit(arguments.ranks)) {
    throw UsageError("--ranks " + std::to_string(arguments.ranks) + ": no power of two");
  }
  const AllgatherComparison times = compare(model, arguments.ranks, arguments.bytes);
  const auto ratio = [](TimeNs messages, TimeNs program) {
    return static_cast<double>(messages) / static_cast<double>(program);
  };
  const double kept = ratio(times.messages_ns, times.program_ns);
  const double anew = ratio(times.messages_registering_ns, times.program_registering_ns);
  if (arguments.json != "-") {
    std::printf("%u ranks, %llu bytes of each\n%-24s %12s %12s %8s\n", arguments.ranks,
                static_cast<unsigned long long>(arguments.bytes), "", "messages us", "program us",
                "ratio");
    std::printf("%-24s %12.1f %12.1f %8.2f\n", "registrations kept",
                microseconds(times.messages_ns), microseconds(times.program_ns), kept);
    std::printf("%-24s %12.1f %12.1f %8.2f\n", "registered anew",
                microseconds(times.messages_registering_ns),
                microseconds(times.program_registering_ns), anew);
  }
  if (!arguments.json.empty()) {
    write_json(arguments.json,
               {{"messages_us", microseconds(times.messages_ns)},
                {"program_us", microseconds(times.program_ns)},
                {"messages_registering_us", microseconds(times.messages_registering_ns)},
                {"program_registering_us", microseconds(times.program_registering_ns)}});
  }
  return 0;
}

int allgather_figure(const AllgatherArguments& arguments) {
  CostModel model = model_of(arguments.model);
  const auto set = [](double us, TimeNs* cost) {
    if (us >= 0) *cost = static_cast<TimeNs>(std::llround(us * 1000));
  };
  set(arguments.message_us, &model.message_ns);
  set(arguments.page_us, &model.register_page_ns);
  set(arguments.deregister_us, &model.deregister_ns);
  if (arguments.messages) return compare_allgathers(model, arguments);
  const bool prints = arguments.json != "-";
  if (prints) {
    std::printf("%u ranks, %llu bytes of each\n%12s %12s\n", arguments.ranks,
                static_cast<unsigned long long>(arguments.bytes), "copied up to", "whole us");
  }
  nlohmann::json records = nlohmann::json::array();
  // Each exchange is twice as long as the one before.
  const uint64_t longest = arguments.bytes * arguments.ranks;
  for (uint64_t copied = 0; copied < longest; copied = copied == 0 ? arguments.bytes : 2 * copied) {
    const TimeNs total_ns = measure(model, AllgatherFigure{.ranks = arguments.ranks,
                                                           .block_bytes = arguments.bytes,
                                                           .copied_bytes = copied});
    if (prints) {
      std::printf("%12llu %12.1f\n", static_cast<unsigned long long>(copied),
                  microseconds(total_ns));
      std::fflush(stdout);
    }
    records.push_back({{"copied_bytes", copied}, {"whole_us", microseconds(total_ns)}});
  }
  if (!arguments.json.empty()) write_json(arguments.json, records);
  return 0;
}

}  // namespace

Command add_broadcast_figure_command(command_line::App& app) {
  auto arguments = std::make_shared<BroadcastArguments>();
  BroadcastArguments& a = *arguments;
  Group group(app);
  add_model(group, &a.model, "the costs in virtual time, and the torus,", "tofu2");
  group.add("--bytes", a.bytes, "N", "Broadcasts so many bytes.")
      .check(whole(1, uint64_t{1} << 30))
      .show_default();
  group.add("--segment", a.segment, "N", "Cuts them into segments of so many.")
      .check(whole(1, uint64_t{1} << 30))
      .show_default();
  add_json(group, &a.json);
  return [arguments] { return broadcast_figure(*arguments); };
}

Command add_alltoall_figure_command(command_line::App& app) {
  auto arguments = std::make_shared<AlltoallArguments>();
  AlltoallArguments& a = *arguments;
  Group group(app);
  add_model(group, &a.model, "the costs in virtual time", "connectx2");
  group.add("--ranks", a.ranks, "N", "Has so many ranks.").check(whole(2, 1024)).show_default();
  group.add("--ranks-per-card", a.ranks_per_card, "N", "Gives so many ranks one card.")
      .check(whole(1, 32))
      .show_default();
  group.add("--bytes", a.bytes, "N", "Each rank has so many bytes for each.")
      .check(whole(1, 1 << 26))
      .show_default();
  group.add("--window", a.window, "W", "Sends so many before it waits for them; 0: several.")
      .check(whole(0, 1024))
      .show_default();
  group
      .add("--overlap", a.overlap, "N",
           "Measures what hosts can compute in, over so many starts one after the other; 0: the "
           "time of one start.")
      .check(whole(0, 1000))
      .show_default();
  add_json(group, &a.json);
  return [arguments] { return alltoall_figure(*arguments); };
}

Command add_allgather_figure_command(command_line::App& app) {
  auto arguments = std::make_shared<AllgatherArguments>();
  AllgatherArguments& a = *arguments;
  Group group(app);
  add_model(group, &a.model, "the costs in virtual time", "mvapich-pcix");
  group.add("--ranks", a.ranks, "N", "Has so many ranks, with a card each.")
      .check(whole(2, 256))
      .show_default();
  group.add("--bytes", a.bytes, "N", "Each rank has so many bytes for all.")
      .check(whole(1, 1 << 20))
      .show_default();
  group.add_flag("--messages", a.messages,
                 "Compares it with messages of hosts, a rendezvous for each exchange.");
  group
      .add("--message-us", a.message_us, "US",
           "A message sent or received costs its host so much. Default: as the model says.")
      .check(number(0, 1000));
  group
      .add("--page-us", a.page_us, "US",
           "A page of memory registered costs its host so much. Default: as the model says.")
      .check(number(0, 1000));
  group
      .add("--deregister-us", a.deregister_us, "US",
           "Memory given back costs its host so much. Default: as the model says.")
      .check(number(0, 1000));
  add_json(group, &a.json);
  return [arguments] { return allgather_figure(*arguments); };
}

}  // namespace peal::sim
