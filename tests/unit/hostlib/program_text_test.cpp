// SPDX-License-Identifier: BSD-2-Clause
// Programs for people.
#include "hostlib/program_text.h"

#include <gtest/gtest.h>

#include "hostlib/program_collectives.h"

namespace peal::host {
namespace {

void* memory() { return reinterpret_cast<void*>(0x1000); }

TEST(ProgramText, SaysWhatEachDescriptorDoes) {
  Program other({.rank = 1, .ranks = 4});
  Program program({.rank = 1, .ranks = 4});
  const uint16_t own = program.add_counter(1);
  program.add_counter(PEAL_ANY_RANK);
  const Program::Notice notice = {.counter = 1, .steps = 2};
  program.put(2, memory(), 32, {.key = 9, .offset = 77}, &notice, own);
  program.put(2, memory(), 32, {.key = 9, .offset = 77}, nullptr);
  program.put(2, nullptr, 0, {}, &notice);
  program.send(3, 11, memory(), 16, own);
  program.receive(0, 12, memory(), 8);
  program.wait(own, 5);
  program.signal(3, {.program = &other, .counter = 4});
  EXPECT_EQ(text_of(program),
            "program of rank 1 of 4: tasks\n"
            "counter 0: own\n"
            "counter 1: told by any rank\n"
            "0 put 32 bytes at 0x1000 to rank 2 at key 9 + 77, moves counter 1 by 2; its end adds "
            "one to counter 0\n"
            "1 put 32 bytes at 0x1000 to rank 2 at key 9 + 77\n"
            "2 put 0 bytes at 0x0 to rank 2, moves counter 1 by 2\n"
            "3 send 16 bytes at 0x1000 to rank 3, tag 11; its end adds one to counter 0\n"
            "4 receive 8 bytes at 0x1000 from rank 0, tag 12\n"
            "5 wait until counter 0 has reached 5\n"
            "6 signal rank 3, moves counter 4 of another program by 1\n"
            "7 complete\n"
            "8 jump\n");
}

TEST(ProgramText, ShowsGates) {
  Program program({.rank = 0, .ranks = 2});
  const uint16_t ready = program.add_counter(1);
  program.put(1, memory(), 8, {.key = 9, .offset = 0}, nullptr, PEAL_NO_COUNTER);
  ASSERT_TRUE(program.gate(ready, 2));
  EXPECT_EQ(text_of(program),
            "program of rank 0 of 2: tasks\n"
            "counter 0: told by rank 1\n"
            "0 put 8 bytes at 0x1000 to rank 1 at key 9 + 0, held until counter 0 has reached 2\n"
            "1 complete\n"
            "2 jump\n");
  const std::string graph = graph_of(program);
  EXPECT_NE(graph.find("  step_0 [label=\"0 put\"];\n"
                       "  counter_0 -> step_0 [label=\"2\"];\n"
                       "  step_0 -> rank_1;\n"),
            std::string::npos)
      << graph;
}

// The second rank of the paper's four, with its two segments.
TEST(ProgramText, OfThePapersBroadcast) {
  const std::vector<Program::Remote> buffers(4, {.key = 3, .offset = 0});
  const Program program = chain_broadcast(1, 4, 0, memory(), 100, 64, buffers);
  EXPECT_EQ(text_of(program),
            "program of rank 1 of 4: session mode, 2 scheduled\n"
            "counter 0, the scheduling pointer: told by rank 0\n"
            "counter 1: told by rank 2\n"
            "0 signal rank 0, moves counter 1 by 1\n"
            "1 wait until counter 1 has reached 1\n"
            "2 put 64 bytes at 0x1000 to rank 2 at key 3 + 0, moves counter 0 by 1\n"
            "3 put 36 bytes at 0x1040 to rank 2 at key 3 + 64, moves counter 0 by 1\n"
            "4 complete\n"
            "5 jump\n");
  EXPECT_EQ(graph_of(program),
            "digraph program {\n"
            "  node [shape=box];\n"
            "  rank_0 [shape=ellipse, label=\"rank 0\"];\n"
            "  rank_2 [shape=ellipse, label=\"rank 2\"];\n"
            "  counter_0 [shape=diamond, label=\"pointer\"];\n"
            "  rank_0 -> counter_0;\n"
            "  counter_1 [shape=diamond, label=\"counter 1\"];\n"
            "  rank_2 -> counter_1;\n"
            "  step_0 [label=\"0 signal\"];\n"
            "  step_0 -> rank_0;\n"
            "  step_1 [label=\"1 wait\"];\n"
            "  counter_1 -> step_1 [label=\"1\"];\n"
            "  step_2 [label=\"2 put\"];\n"
            "  step_2 -> rank_2;\n"
            "  step_3 [label=\"3 put\"];\n"
            "  step_3 -> rank_2;\n"
            "  end [label=\"complete, jump\"];\n"
            "  step_0 -> step_1 -> step_2 -> step_3 -> end [style=bold, weight=10];\n"
            "}\n");
}

TEST(ProgramText, GraphsShowReceivesEndsAndOwnSignals) {
  Program program({.rank = 0, .ranks = 2});
  const uint16_t own = program.add_counter(0);
  program.add_counter(PEAL_ANY_RANK);
  program.receive(1, 0, memory(), 8, own);
  program.signal(0, {.counter = own});
  EXPECT_EQ(graph_of(program),
            "digraph program {\n"
            "  node [shape=box];\n"
            "  rank_1 [shape=ellipse, label=\"rank 1\"];\n"
            "  rank_any [shape=ellipse, label=\"any rank\"];\n"
            "  counter_0 [shape=diamond, label=\"counter 0\"];\n"
            "  counter_1 [shape=diamond, label=\"counter 1\"];\n"
            "  rank_any -> counter_1;\n"
            "  step_0 [label=\"0 receive\"];\n"
            "  rank_1 -> step_0;\n"
            "  step_0 -> counter_0 [style=dashed];\n"
            "  step_1 [label=\"1 signal\"];\n"
            "  step_1 -> counter_0;\n"
            "  end [label=\"complete, jump\"];\n"
            "  step_0 -> step_1 -> end [style=bold, weight=10];\n"
            "}\n");
}

}  // namespace
}  // namespace peal::host
