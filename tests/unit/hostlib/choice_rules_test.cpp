// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/choice_rules.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace peal::host {
namespace {

// The rules, one a line, or what is wrong.
std::string parse(std::string_view text) {
  PlacedRules rules;
  const peal_error error = parse_rules(text, "here", &rules);
  if (error != PEAL_OK) {
    EXPECT_EQ(error, PEAL_ERR_INVALID_ARGUMENT);
    return peal_last_error_text();
  }
  std::string all;
  for (const PlacedRule& each : rules) all += each.where + ": " + text_of(each.rule) + "\n";
  return all;
}

class RulesFile : public testing::Test {
 protected:
  void SetUp() override {
    const int fd = mkstemp(path_);
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { remove(path_); }

  void write(const std::string& text) {
    FILE* file = fopen(path_, "w");
    ASSERT_EQ(fwrite(text.data(), 1, text.size(), file), text.size());
    ASSERT_EQ(fclose(file), 0);
  }
  std::string at(int line) { return std::string(path_) + ":" + std::to_string(line); }

  char path_[32] = "/tmp/peal-rules-XXXXXX";
};

TEST(ChoiceRules, WhatTheyMayLookLike) {
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(parse("  \n# nothing\n\t\n"), "");
  EXPECT_EQ(parse("barrier:dissemination"), "here: barrier:dissemination\n");
  EXPECT_EQ(parse("allgather:0-4k:recursive-doubling,allgather:4k-:all-to-all-broadcast"),
            "here: allgather:0-4k:recursive-doubling\n"
            "here: allgather:4k-:all-to-all-broadcast\n");
  EXPECT_EQ(parse("allgather:0-4k:doubling,allgather_init:doubling"),
            "here: allgather:0-4k:recursive-doubling\n"
            "here: allgather_init:recursive-doubling\n");
  EXPECT_NE(parse("barrier:doubling").find("\"doubling\" is no algorithm of barrier"),
            std::string::npos);
  EXPECT_EQ(parse(" allgather : 0x10-2M : n2-16 : recursive-doubling # why\n"
                  "allgather:n8:7:recursive-doubling"),
            "here: allgather:16-2M:n2-16:recursive-doubling\n"
            "here: allgather:7:n8:recursive-doubling\n");
  EXPECT_EQ(parse("allgather:0-:n0-:recursive-doubling"), "here: allgather:recursive-doubling\n");
}

TEST(ChoiceRules, ARangeHasBothItsEnds) {
  PlacedRules rules;
  ASSERT_EQ(parse_rules("allgather:2-4:n8-:recursive-doubling", "here", &rules), PEAL_OK);
  const ChoiceRule& rule = rules.at(0).rule;
  EXPECT_FALSE(rule.bytes.has(1));
  EXPECT_TRUE(rule.bytes.has(2));
  EXPECT_TRUE(rule.bytes.has(4));
  EXPECT_FALSE(rule.bytes.has(5));
  EXPECT_FALSE(rule.ranks.has(7));
  EXPECT_TRUE(rule.ranks.has(8));
  EXPECT_TRUE(rule.ranks.has(UINT64_MAX));
}

TEST(ChoiceRules, WhatIsWrongIsQuoted) {
  const std::string no_range =
      " is no range: expected bytes, as 0-4k, 4k- or 8, or ranks, as n2-16";
  const std::string bad_range =
      ": expected A-B with A not above B, A- or A; k and M are 1024 and 1024 * 1024";
  const std::string ways = ": expected all-to-all-broadcast, recursive-doubling, direct or ring";
  const std::string no_operation =
      " is no operation: expected barrier, allgather, broadcast, alltoall, allgatherv, alltoallv, "
      "barrier_init, allgather_init, broadcast_init, alltoall_init, allgatherv_init or "
      "alltoallv_init";
  EXPECT_EQ(parse("gather:recursive-doubling"),
            "here: \"gather:recursive-doubling\": \"gather\"" + no_operation);
  EXPECT_EQ(parse("destroy:dissemination"),
            "here: \"destroy:dissemination\": \"destroy\"" + no_operation);
  EXPECT_EQ(parse("allgather"), "here: \"allgather\": the algorithm is missing" + ways);
  EXPECT_EQ(parse("allgather:"), "here: \"allgather:\": the algorithm is missing" + ways);
  EXPECT_EQ(parse("allgather:0-4k"),
            "here: \"allgather:0-4k\": \"0-4k\" is no algorithm of allgather" + ways);
  EXPECT_EQ(
      parse("allgather:dissemination"),
      "here: \"allgather:dissemination\": \"dissemination\" is no algorithm of allgather" + ways);
  EXPECT_EQ(parse("allgather:ring:recursive-doubling"),
            "here: \"allgather:ring:recursive-doubling\": \"ring\"" + no_range);
  EXPECT_EQ(parse("allgather::recursive-doubling"),
            "here: \"allgather::recursive-doubling\": \"\"" + no_range);
  EXPECT_EQ(parse("allgather:nine:recursive-doubling"),
            "here: \"allgather:nine:recursive-doubling\": \"nine\"" + no_range);
  EXPECT_EQ(parse("allgather:-8:recursive-doubling"),
            "here: \"allgather:-8:recursive-doubling\": \"-8\"" + no_range);
  for (const std::string range : {"4x", "9-8", "1-2-3", "99999999999999999999", "4K"}) {
    const std::string rule = "allgather:" + range + ":recursive-doubling";
    EXPECT_EQ(parse(rule),
              "here: \"" + rule + "\": \"" + range + "\" is no range of bytes" + bad_range);
  }
  EXPECT_EQ(
      parse("allgather:n9-8:recursive-doubling"),
      "here: \"allgather:n9-8:recursive-doubling\": \"n9-8\" is no range of ranks" + bad_range);
  EXPECT_EQ(parse("allgather:1:2:recursive-doubling"),
            "here: \"allgather:1:2:recursive-doubling\": bytes are there twice");
  EXPECT_EQ(parse("allgather:n1:n2:recursive-doubling"),
            "here: \"allgather:n1:n2:recursive-doubling\": ranks are there twice");
  for (const char* text : {",", "barrier:dissemination,", "barrier:dissemination,,"}) {
    EXPECT_EQ(parse(text), "here: a rule is empty: a comma too many?");
  }
}

TEST(ChoiceRules, OfPersistentRequests) {
  const std::string rules =
      "barrier_init:dissemination,allgather_init:0-4k:recursive-doubling,allgather_init:collected,"
      "allgather_init:n2-16:ring,broadcast_init:binomial,broadcast_init:1M-:chain,"
      "alltoall_init:collected,alltoall_init:direct,allgatherv_init:8:direct,alltoallv_init:direct";
  std::string lines = "here: " + rules + "\n";
  for (size_t at = lines.find(','); at != std::string::npos; at = lines.find(',')) {
    lines.replace(at, 1, "\nhere: ");
  }
  EXPECT_EQ(parse(rules), lines);
  EXPECT_EQ(parse("broadcast_init:ring"),
            "here: \"broadcast_init:ring\": \"ring\" is no algorithm of broadcast_init: expected "
            "binomial or chain");
  EXPECT_EQ(parse("broadcast:chain"),
            "here: \"broadcast:chain\": \"chain\" is no algorithm of broadcast: expected binomial");
  EXPECT_EQ(parse("alltoallv_init:8:direct"),
            "here: \"alltoallv_init:8:direct\": \"8\" is a range of bytes, but in alltoallv_init "
            "ranks know no common length");
}

// What one rank sends another is known to these two.
TEST(ChoiceRules, AnOperationWithoutACommonLength) {
  EXPECT_EQ(parse("alltoallv:n2-16:direct"), "here: alltoallv:n2-16:direct\n");
  EXPECT_EQ(parse("allgatherv:0-4k:direct"), "here: allgatherv:0-4k:direct\n");
  for (const std::string range : {"0-4k", "8", "0-"}) {
    EXPECT_EQ(parse("alltoallv:" + range + ":direct"),
              "here: \"alltoallv:" + range + ":direct\": \"" + range +
                  "\" is a range of bytes, but in alltoallv ranks know no common length");
  }
}

TEST(ChoiceRules, WhatIsQuotedIsPrintableAndShort) {
  const std::string text = parse("\x1b[31m" + std::string(1000, 'x'));
  const std::string shown = "\"?[31m" + std::string(75, 'x') + "...\"";
  EXPECT_EQ(text, "here: " + shown + ": " + shown +
                      " is no operation: expected barrier, allgather, broadcast, alltoall, "
                      "allgatherv, alltoallv, barrier_init, allgather_init, broadcast_init, "
                      "alltoall_init, allgatherv_init or alltoallv_init");
}

TEST(ChoiceRules, ThereIsALimit) {
  std::string text;
  for (size_t i = 0; i < kRulesMax; i++) text += "barrier:dissemination\n";
  PlacedRules rules;
  EXPECT_EQ(parse_rules(text, "here", &rules), PEAL_OK);
  EXPECT_EQ(rules.size(), kRulesMax);
  EXPECT_EQ(parse(text + "barrier:dissemination"), "here: more than 256 rules");
}

TEST_F(RulesFile, EveryRuleIsOfItsLine) {
  write("# one\nallgather:recursive-doubling\n\n  barrier:dissemination,allgather:8:" +
        std::string("all-to-all-broadcast"));
  PlacedRules rules;
  ASSERT_EQ(read_rules_file(path_, &rules), PEAL_OK);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].where, at(2));
  EXPECT_EQ(text_of(rules[0].rule), "allgather:recursive-doubling");
  EXPECT_EQ(rules[1].where, at(4));
  EXPECT_EQ(text_of(rules[2].rule), "allgather:8:all-to-all-broadcast");
}

TEST_F(RulesFile, AWrongLineIsNamed) {
  write("barrier:dissemination\n\nbarrier:bruck\n");
  PlacedRules rules;
  EXPECT_EQ(read_rules_file(path_, &rules), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_last_error_text(),
            at(3) +
                ": \"barrier:bruck\": \"bruck\" is no algorithm of barrier: expected "
                "dissemination");
}

TEST_F(RulesFile, WhatCannotBeRead) {
  PlacedRules rules;
  EXPECT_EQ(read_rules_file("/nowhere/rules", &rules), PEAL_ERR_SYSTEM);
  EXPECT_EQ(peal_last_error_text(),
            std::string("opening the rules /nowhere/rules: ") + strerror(ENOENT));
  EXPECT_EQ(read_rules_file("/tmp", &rules), PEAL_ERR_SYSTEM);
  EXPECT_EQ(peal_last_error_text(), std::string("reading the rules /tmp: ") + strerror(EISDIR));
  write(std::string(kRulesFileBytesMax, '\n'));
  EXPECT_EQ(read_rules_file(path_, &rules), PEAL_OK);
  write(std::string(kRulesFileBytesMax + 1, '\n'));
  EXPECT_EQ(read_rules_file(path_, &rules), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_last_error_text(), std::string(path_) + ": rules of more than 65536 bytes");
  EXPECT_TRUE(rules.empty());
}

}  // namespace
}  // namespace peal::host
