// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/choice.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/names.h"

namespace peal::host {
namespace {

ChoiceTable make(uint32_t size, const ChoiceSources& sources = {},
                 uint32_t addresses = PEAL_RANKS_MAX) {
  ChoiceTable table;
  EXPECT_EQ(make_choice_table({size, addresses}, sources, &table), PEAL_OK)
      << peal_last_error_text();
  return table;
}

ChoiceSources with_rules(const char* rules) {
  ChoiceSources sources;
  sources.rules = rules;
  return sources;
}

// "first-algorithm(where: rule)", for each part of an operation's lengths.
std::string parts_of(const ChoiceTable& table, const Subject& subject) {
  std::string text;
  for (const ChoiceTable::Part& part : table.parts(subject)) {
    const auto rule = [&table](uint32_t index) {
      const PlacedRule& placed = table.rules()[index];
      return placed.where + ": " + text_of(placed.rule);
    };
    text += std::to_string(part.first_bytes) + " " +
            name_of(subject, part.algorithm, part.program) + " (" + rule(part.rule);
    if (part.passed_over != part.rule) text += ", not " + rule(part.passed_over);
    text += ")\n";
  }
  return text;
}

TEST(Choice, TheDefaultIsBySizeOfTheGroupAndOfTheBlock) {
  for (const uint32_t size : {1u, 2u}) {
    EXPECT_EQ(parts_of(make(size), {PEAL_OPERATION_ALLGATHER}),
              "0 recursive-doubling (the default table: allgather:0:n1-2:recursive-doubling)\n"
              "1 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast)\n");
  }
  for (const uint32_t size : {3u, 16u}) {
    EXPECT_EQ(parts_of(make(size), {PEAL_OPERATION_ALLGATHER}),
              "0 recursive-doubling (the default table: allgather:0-512:n3-16:recursive-doubling)\n"
              "513 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast)\n"
              "65536 direct (the default table: allgather:64k-:n3-16:direct)\n");
  }
  for (const uint32_t size : {17u, 1024u}) {
    EXPECT_EQ(parts_of(make(size), {PEAL_OPERATION_ALLGATHER}),
              "0 recursive-doubling (the default table: allgather:0-2k:n17-:recursive-doubling)\n"
              "2049 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast)\n");
  }
  EXPECT_EQ(parts_of(make(8), {PEAL_OPERATION_BARRIER}),
            "0 dissemination (the default table: barrier:dissemination)\n");
  EXPECT_EQ(parts_of(make(8), {PEAL_OPERATION_ALLTOALL}),
            "0 bruck (the default table: alltoall:0-2k:n1-8:bruck)\n"
            "2049 direct (the default table: alltoall:direct)\n");
  EXPECT_EQ(parts_of(make(9), {PEAL_OPERATION_ALLTOALL}),
            "0 bruck (the default table: alltoall:0-1k:n9-:bruck)\n"
            "1025 direct (the default table: alltoall:direct)\n");
  EXPECT_EQ(parts_of(make(8), {PEAL_OPERATION_ALLGATHERV}),
            "0 direct (the default table: allgatherv:direct)\n");
  EXPECT_EQ(parts_of(make(8), {PEAL_OPERATION_ALLTOALLV}),
            "0 bruck (the default table: alltoallv:n5-8:bruck)\n");
  for (const uint32_t ranks : {4, 9}) {
    EXPECT_EQ(parts_of(make(ranks), {PEAL_OPERATION_ALLTOALLV}),
              "0 direct (the default table: alltoallv:direct)\n");
  }
}

TEST(Choice, ProgramsAreChosenByWhatArrivesAtARank) {
  EXPECT_EQ(parts_of(make(8), {PEAL_OPERATION_ALLTOALL, true}),
            "0 collected (the default table: alltoall_init:0-4k:collected)\n"
            "4097 direct (the default table: alltoall_init:direct)\n");
  EXPECT_EQ(parts_of(make(7), {PEAL_OPERATION_ALLTOALL, true}),
            "0 collected (the default table: alltoall_init:0-4681:collected)\n"
            "4682 direct (the default table: alltoall_init:direct)\n");
  EXPECT_EQ(parts_of(make(32), {PEAL_OPERATION_ALLGATHER, true}),
            "0 collected (the default table: allgather_init:0-64:n1-32:collected)\n"
            "65 recursive-doubling (the default table: "
            "allgather_init:0-32k:n1-32:recursive-doubling)\n"
            "32769 ring (the default table: allgather_init:ring)\n");
  EXPECT_EQ(parts_of(make(33), {PEAL_OPERATION_ALLGATHER, true}),
            "0 ring (the default table: allgather_init:ring)\n");
  EXPECT_EQ(parts_of(make(3), {PEAL_OPERATION_BROADCAST, true}),
            "0 binomial (the default table: broadcast_init:0-1048575:binomial)\n"
            "1048576 chain (the default table: broadcast_init:chain)\n");
  EXPECT_EQ(make(2).program(PEAL_OPERATION_BROADCAST, 1 << 30), ProgramWay::kBinomial);
}

// A rule is of the one or of the other, and ranks that differ in either are told.
TEST(Choice, ARuleOfProgramsIsOfNothingElse) {
  const ChoiceTable table = make(8, with_rules("allgather_init:100-:ring,allgather:direct"));
  EXPECT_EQ(table.program(PEAL_OPERATION_ALLGATHER, 99), ProgramWay::kCollected);
  EXPECT_EQ(table.program(PEAL_OPERATION_ALLGATHER, 100), ProgramWay::kRing);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, 99), PEAL_ALGORITHM_DIRECT);
  EXPECT_NE(table.hash(), make(8, with_rules("allgather:direct")).hash());
  EXPECT_NE(table.hash(), make(8, with_rules("allgather_init:100-:ring")).hash());
  EXPECT_EQ(make(8, with_rules("broadcast_init:1M-:chain")).hash(), make(8).hash());
  EXPECT_NE(make(8, with_rules("broadcast_init:chain")).hash(),
            make(8, with_rules("broadcast_init:binomial")).hash());
  // Programs go by whichever addresses the cards have.
  EXPECT_EQ(make(17, with_rules("alltoall_init:direct"), 16).program(PEAL_OPERATION_ALLTOALL, 8),
            ProgramWay::kPairs);
}

// The cards would refuse a direct exchange in a group of more ranks than they remember addresses.
TEST(Choice, WhatTheCardsCannotDoIsPassedOver) {
  const ChoiceSources direct = with_rules("allgather:4k-:direct");
  for (const uint32_t size : {5u, 7u, 16u}) {
    EXPECT_EQ(make(size, direct, 16).hash(), make(size, direct).hash()) << size;
  }
  const ChoiceTable table = make(17, direct, 16);
  EXPECT_EQ(parts_of(table, {PEAL_OPERATION_ALLTOALL}),
            "0 bruck (the default table: alltoall:0-1k:n9-:bruck)\n"
            "1025 bruck (the default table: alltoall:bruck, not the default table: "
            "alltoall:direct)\n");
  EXPECT_EQ(parts_of(table, {PEAL_OPERATION_ALLGATHER}),
            "0 recursive-doubling (the default table: allgather:0-2k:n17-:recursive-doubling)\n"
            "2049 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast)\n"
            "4096 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast, not "
            "peal_group_params.algorithms: allgather:4k-:direct)\n");
  EXPECT_NE(table.hash(), make(17, direct).hash()) << "ranks with other cards must hear of it";
}

TEST(Choice, APartIsFromItsFirstByteToTheNext) {
  const ChoiceTable table = make(8);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, 0), PEAL_ALGORITHM_RECURSIVE_DOUBLING);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, 512), PEAL_ALGORITHM_RECURSIVE_DOUBLING);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, 513), PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, 65535), PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_ALLGATHER, UINT32_MAX), PEAL_ALGORITHM_DIRECT);
  EXPECT_EQ(table.algorithm(PEAL_OPERATION_BARRIER, 0), PEAL_ALGORITHM_DISSEMINATION);
}

TEST(Choice, EveryOperationHasAnAlgorithmAtEveryLength) {
  for (const uint32_t size : {1u, 2u, 3u, 16u, 17u, 1024u}) {
    const ChoiceTable table = make(size);
    for (const Subject& subject : subjects()) {
      ASSERT_FALSE(table.parts(subject).empty());
      EXPECT_EQ(table.parts(subject)[0].first_bytes, 0u);
    }
  }
}

// Each of them says something of its own lengths; the next is asked only where it says nothing.
TEST(Choice, TheStrongestSourceThatSaysAnythingDecides) {
  char path[] = "/tmp/peal-choice-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  FILE* file = fdopen(fd, "w");
  fputs("# of this machine\n\nallgather:0-99:recursive-doubling  # small\n", file);
  fputs("allgather:0-199:all-to-all-broadcast, allgather:0-499:recursive-doubling\r\n", file);
  fclose(file);
  ChoiceSources sources;
  sources.rules = "allgather:0-9:all-to-all-broadcast,allgather:n9:recursive-doubling";
  sources.rules_variable = "allgather:0-49:recursive-doubling";
  sources.rules_file = path;
  const std::string file_name(path);
  EXPECT_EQ(parts_of(make(8, sources), {PEAL_OPERATION_ALLGATHER}),
            "0 all-to-all-broadcast (peal_group_params.algorithms: "
            "allgather:0-9:all-to-all-broadcast)\n"
            "10 recursive-doubling ($PEAL_ALGORITHMS: allgather:0-49:recursive-doubling)\n"
            "50 recursive-doubling (" +
                file_name +
                ":3: allgather:0-99:recursive-doubling)\n"
                "100 all-to-all-broadcast (" +
                file_name +
                ":4: allgather:0-199:all-to-all-broadcast)\n"
                "200 recursive-doubling (" +
                file_name +
                ":4: allgather:0-499:recursive-doubling)\n"
                "500 recursive-doubling (the default table: "
                "allgather:0-512:n3-16:recursive-doubling)\n"
                "513 all-to-all-broadcast (the default table: allgather:all-to-all-broadcast)\n"
                "65536 direct (the default table: allgather:64k-:n3-16:direct)\n");
  sources.allgather_variable = "all-to-all-broadcast";
  EXPECT_EQ(parts_of(make(8, sources), {PEAL_OPERATION_ALLGATHER}),
            "0 all-to-all-broadcast (peal_group_params.algorithms: "
            "allgather:0-9:all-to-all-broadcast)\n"
            "10 all-to-all-broadcast ($PEAL_ALLGATHER_ALGORITHM: "
            "allgather:all-to-all-broadcast)\n");
  sources.allgather = PEAL_ALLGATHER_RECURSIVE_DOUBLING;
  EXPECT_EQ(parts_of(make(8, sources), {PEAL_OPERATION_ALLGATHER}),
            "0 recursive-doubling (peal_group_params.allgather_algorithm: "
            "allgather:recursive-doubling)\n");
  EXPECT_EQ(remove(path), 0);
}

TEST(Choice, WhatTheOldVariableSaysOfNothing) {
  for (const char* nothing : {"", "auto"}) {
    ChoiceSources sources;
    sources.allgather_variable = nothing;
    EXPECT_EQ(make(8, sources).hash(), make(8).hash());
  }
}

TEST(Choice, NonsenseIsRefused) {
  ChoiceTable table;
  ChoiceSources sources;
  sources.allgather_variable = "ring";
  EXPECT_EQ(make_choice_table({8, PEAL_RANKS_MAX}, sources, &table), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(),
               "$PEAL_ALLGATHER_ALGORITHM is \"ring\": expected auto, all-to-all-broadcast or "
               "recursive-doubling");
  sources = {};
  sources.allgather = 7;
  EXPECT_EQ(make_choice_table({8, PEAL_RANKS_MAX}, sources, &table), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "allgather algorithm 7 in the parameters");
  const std::string no_algorithm =
      "\"allgather\": the algorithm is missing: expected all-to-all-broadcast, "
      "recursive-doubling, direct or ring";
  sources = with_rules("allgather");
  EXPECT_EQ(make_choice_table({8, PEAL_RANKS_MAX}, sources, &table), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_last_error_text(), "peal_group_params.algorithms: " + no_algorithm);
  sources = {};
  sources.rules_variable = "allgather";
  EXPECT_EQ(make_choice_table({8, PEAL_RANKS_MAX}, sources, &table), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_last_error_text(), "$PEAL_ALGORITHMS: " + no_algorithm);
}

// Rules of ranks that are not there, and rules behind one that decides everything, are no
// difference; nor is where a rule stands.
TEST(Choice, TablesThatChooseAlikeAgree) {
  const uint32_t hash = make(8).hash();
  EXPECT_EQ(make(8, with_rules("allgather:n9-:recursive-doubling")).hash(), hash);
  EXPECT_EQ(make(8, with_rules("allgather:100-300:recursive-doubling")).hash(), hash);
  ChoiceSources variable;
  variable.rules_variable = "allgather:0-1k:recursive-doubling";
  const uint32_t longer = make(8, variable).hash();
  EXPECT_NE(longer, hash);
  EXPECT_EQ(make(8, with_rules("allgather:0-600:recursive-doubling,"
                               "allgather:600-1024:recursive-doubling"))
                .hash(),
            longer);
}

TEST(Choice, EveryDifferenceChangesTheHash) {
  const uint32_t hash = make(8).hash();
  EXPECT_EQ(make(8).hash(), hash);
  EXPECT_NE(make(9).hash(), hash);
  EXPECT_NE(make(1025).hash(), make(1026).hash()) << "though they choose alike";
  EXPECT_NE(make(8, with_rules("allgather:recursive-doubling")).hash(), hash);
  EXPECT_NE(make(8, with_rules("allgather:all-to-all-broadcast")).hash(), hash);
  EXPECT_NE(make(8, with_rules("allgather:513:recursive-doubling")).hash(), hash);
  EXPECT_NE(make(8, with_rules("allgather:512:all-to-all-broadcast")).hash(), hash);
  EXPECT_NE(make(8, with_rules("allgather:0-4:all-to-all-broadcast")).hash(),
            make(8, with_rules("allgather:0-5:all-to-all-broadcast")).hash());
}

}  // namespace
}  // namespace peal::host
