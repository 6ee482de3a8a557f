// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim program-cost`: programs carried out again and again, for who counts what that costs a
// card (tools/firmware-cost).
#include <algorithm>
#include <cstdio>
#include <memory>

#include "hostlib/program_collectives.h"
#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/program_hosts.h"
#include "tools/peal-sim/report_json.h"

namespace peal::sim {

namespace {

using command_line::Group;
using command_line::whole;

constexpr uint32_t kSegmentBytes = 64;

struct Arguments {
  std::string program = "chain";
  uint32_t cards = 3;
  uint32_t steps = 28;
  uint32_t starts = 100;
  bool sums = false;
  std::string json;
};

// Nothing but the queue itself: a counter that the program tells, and waits for.
host::Program local_steps(uint32_t rank, uint32_t ranks, uint32_t steps) {
  host::Program program({.rank = rank, .ranks = ranks});
  const uint16_t counter = program.add_counter(rank);
  for (uint32_t step = 1; step <= steps; step++) {
    program.signal(rank, {.counter = counter});
    program.wait(counter, step);
  }
  return program;
}

// As libpeal makes them of short blocks: two in turn, whose collective buffers lie behind the
// receive buffer.
host::Programs collected_allgathers(uint32_t ranks, const ProgramHosts::Place& place) {
  const uint64_t side = ranks * uint64_t{kSegmentBytes};
  host::Programs programs;
  for (uint64_t turn = 1; turn <= 2; turn++) {
    host::Collecting own;
    own.rank = place.rank;
    own.ranks = ranks;
    own.send = static_cast<const uint8_t*>(place.send);
    own.block_bytes = kSegmentBytes;
    own.own = place.receives[place.rank];
    own.collective = static_cast<uint8_t*>(place.receive) + turn * side;
    own.collectives = place.receives;
    for (host::Program::Remote& remote : own.collectives) remote.offset += turn * side;
    programs.push_back(std::make_unique<host::Program>(host::collected_allgather(own)));
  }
  return programs;
}

// Those that are started in turn.
host::Programs programs_of(const Arguments& arguments, const ProgramHosts::Place& place,
                           uint64_t bytes) {
  const uint32_t ranks = arguments.cards;
  const auto alone = [](host::Program&& program) {
    host::Programs programs;
    programs.push_back(std::make_unique<host::Program>(std::move(program)));
    return programs;
  };
  if (arguments.program == "local") return alone(local_steps(place.rank, ranks, arguments.steps));
  if (arguments.program == "barrier") return alone(host::dissemination_barrier(place.rank, ranks));
  if (arguments.program == "allgather") return collected_allgathers(ranks, place);
  if (arguments.program == "alltoall") {
    return alone(
        host::pairwise_alltoall(place.rank, ranks, place.send, kSegmentBytes, 16, place.receives));
  }
  return alone(host::chain_broadcast(place.rank, ranks, 0, place.receive, bytes, kSegmentBytes,
                                     place.receives));
}

int program_cost(const Arguments& arguments) {
  ClusterOptions options;
  options.cards = arguments.cards;
  options.checksums = arguments.sums ? Checksums::kSoftware : Checksums::kSkipped;
  options.check_seals = false;
  const uint64_t bytes = uint64_t{std::max(arguments.steps, 3 * arguments.cards)} * kSegmentBytes;
  ProgramHosts hosts(options, {.bytes = bytes}, [&](const ProgramHosts::Place& place) {
    return programs_of(arguments, place, arguments.steps * uint64_t{kSegmentBytes});
  });
  const size_t turns = arguments.program == "allgather" ? 2 : 1;
  for (uint32_t start = 0; start < arguments.starts; start++) {
    for (uint32_t rank = 0; rank < hosts.ranks(); rank++) hosts.start_one(rank, start % turns);
    hosts.run();
  }
  if (const std::string problems = hosts.problems(); !problems.empty()) {
    std::fputs(problems.c_str(), stderr);
    return hosts.only_stuck() ? kExitStuck : kExitWrong;
  }
  const Cluster& cluster = hosts.cluster();
  const uint64_t descriptors = cluster.counter(PEAL_COUNTER_DESCRIPTORS);
  const uint64_t fetched = cluster.counter(PEAL_COUNTER_DESCRIPTORS_FETCHED);
  const uint64_t packets = cluster.counter(PEAL_COUNTER_SENT_P2P);
  const uint64_t answers = cluster.counter(PEAL_COUNTER_SENT_P2P_CONTROL);
  if (arguments.json != "-") {
    std::printf("%llu descriptors, %llu fetched, %llu packets, %llu of control\n",
                static_cast<unsigned long long>(descriptors),
                static_cast<unsigned long long>(fetched), static_cast<unsigned long long>(packets),
                static_cast<unsigned long long>(answers));
  }
  if (!arguments.json.empty()) {
    write_json(arguments.json, {{"descriptors", descriptors},
                                {"descriptors_fetched", fetched},
                                {"sent_p2p", packets},
                                {"sent_p2p_control", answers}});
  }
  return 0;
}

}  // namespace

Command add_program_cost_command(command_line::App& app) {
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  Group group(app);
  group
      .add("--program", a.program, "NAME",
           "Carries out this one. chain: a broadcast down a chain, segments of 64 bytes. local: "
           "signals to itself, and waits for them. barrier, allgather (collected), alltoall (by "
           "pairs): what a persistent request can be, blocks of 64 bytes.")
      .check(command_line::one_of({"chain", "local", "barrier", "allgather", "alltoall"}))
      .show_default();
  group.add("--cards", a.cards, "N", "Has so many cards, a rank each.")
      .check(whole(2, 64))
      .show_default();
  group.add("--steps", a.steps, "N", "Has so many segments, or pairs of a signal and a wait.")
      .check(whole(1, 4000))
      .show_default();
  group.add("--starts", a.starts, "N", "Starts the programs so many times, one after the other.")
      .check(whole(1, 1'000'000))
      .show_default();
  group.add_flag("--sums", a.sums, "Lets the cards sum their packets.");
  group.add("--json", a.json, "FILE",
            "Writes what was counted to this file (-: standard output). Default: none.");
  return [arguments] { return program_cost(*arguments); };
}

}  // namespace peal::sim
