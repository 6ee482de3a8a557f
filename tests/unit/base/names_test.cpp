// SPDX-License-Identifier: BSD-2-Clause
// The lists of abi/: numbers never change, because a card, a driver and a library of different ages
// exchange them; names are what programs print and take.
#include "base/names.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

namespace peal::names {
namespace {

std::string listed(Rows rows) {
  std::string text;
  for (const Row& row : rows) text += std::to_string(row.value) + " " + row.name + "\n";
  return text;
}

TEST(Names, StatusesAreThese) {
  EXPECT_EQ(listed(kStatuses),
            "0 OK\n1 PEER_DEAD\n2 MISMATCH\n3 BAD_OPCODE\n4 BAD_ALGORITHM\n5 BAD_FLAGS\n"
            "6 BAD_GROUP\n7 BAD_SEQUENCE\n8 BAD_KEY\n9 BAD_BOUNDS\n10 BAD_ACCESS\n11 BAD_LENGTH\n"
            "12 BAD_ROOT\n13 TOO_MANY\n14 NO_RESOURCES\n15 BUSY\n16 CLOSED\n17 DMA_FAULT\n"
            "18 BAD_VERSION\n19 BAD_ADDRESS\n20 BAD_RANK\n21 TRUNCATED\n22 BAD_PROGRAM\n");
}

TEST(Names, PacketTypesAreThese) {
  EXPECT_EQ(listed(kPacketTypes),
            "1 DATA\n2 SIGNAL\n3 NACK\n4 NOT_YET\n5 REFUSE\n6 DEATH\n7 PROBE\n8 ALIVE\n"
            "9 FAREWELL\n10 OPEN\n11 ACCEPT\n12 CLOSE\n13 CLOSED\n14 ACK\n15 REFUSED\n16 SKIP\n"
            "17 PUT\n18 STREAM\n19 ANNOUNCE\n20 READY\n21 GET\n22 DONE\n23 FAILURE\n24 KNOWN\n"
            "25 SEEK\n");
}

TEST(Names, OperationsAreThese) {
  EXPECT_EQ(listed(kOperations),
            "0 none\n1 barrier\n2 allgather\n3 destroy\n4 recycle\n5 broadcast\n6 alltoall\n"
            "7 allgatherv\n8 alltoallv\n9 send\n10 receive\n11 put\n12 get\n13 fence\n14 start\n");
}

TEST(Names, AlgorithmsAreThese) {
  EXPECT_EQ(listed(kAlgorithms),
            "0 none\n1 dissemination\n2 all-to-all-broadcast\n3 recursive-doubling\n4 binomial\n5 "
            "bruck\n6 direct\n7 ring\n");
}

TEST(Names, AdministrativeOpcodesAreThese) {
  EXPECT_EQ(listed(kAdminOpcodes),
            "1 open context\n2 close context\n3 register memory\n4 unregister memory\n"
            "5 reserve group\n6 connect group\n7 abandon group\n8 read counters\n"
            "9 reap channels\n10 add peers\n11 commit program\n12 free program\n");
}

TEST(Names, OpcodesOfProgramsAreThese) {
  EXPECT_EQ(listed(kProgramOpcodes),
            "1 put\n2 send\n3 receive\n4 wait\n5 signal\n6 complete\n7 jump\n");
}

struct List {
  const char* what;
  Rows rows;
  uint32_t count;  // of the enumeration: one more than its last value
  char between;    // words of a name; '_' where the name is the symbol itself
};

class EveryList : public testing::TestWithParam<List> {};

TEST_P(EveryList, EndsWhereItsEnumerationDoes) {
  const List& list = GetParam();
  EXPECT_EQ(list.rows.back().value + 1, list.count);
  for (size_t i = 1; i < list.rows.size(); i++)
    EXPECT_EQ(list.rows[i].value, list.rows[i - 1].value + 1) << list.rows[i].name;
}

TEST_P(EveryList, NamesFollowTheSymbolsAndAreUnique) {
  std::set<std::string> names;
  for (const Row& row : GetParam().rows) {
    std::string expected = row.symbol;
    if (GetParam().between != '_') {
      for (char& letter : expected)
        letter = letter == '_' ? GetParam().between : static_cast<char>(std::tolower(letter));
    }
    EXPECT_EQ(row.name, expected);
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_NE(row.text, std::string("")) << row.name << " says nothing";
  }
}

TEST_P(EveryList, WordAndNumberFindEachOther) {
  for (const Row& row : GetParam().rows) {
    EXPECT_EQ(row_of(GetParam().rows, row.value), &row);
    EXPECT_EQ(value_of(GetParam().rows, row.name), row.value);
  }
  EXPECT_EQ(row_of(GetParam().rows, GetParam().count), nullptr);
  EXPECT_EQ(value_of(GetParam().rows, "carousel"), std::nullopt);
  EXPECT_EQ(value_of(GetParam().rows, ""), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Names, EveryList,
    testing::Values(List{"statuses", kStatuses, PEAL_STATUS_COUNT, '_'},
                    List{"packet_types", kPacketTypes, PEAL_PACKET_TYPE_COUNT, '_'},
                    List{"operations", kOperations, PEAL_OPERATION_COUNT, '-'},
                    List{"algorithms", kAlgorithms, PEAL_ALGORITHM_COUNT, '-'},
                    List{"admin_opcodes", kAdminOpcodes, PEAL_ADMIN_OPCODE_COUNT, ' '},
                    List{"program_opcodes", kProgramOpcodes, PEAL_PROGRAM_OPCODE_COUNT, '-'},
                    List{"program_modes", kProgramModes, PEAL_PROGRAM_MODE_COUNT, '-'},
                    List{"program_reasons", kProgramReasons, PEAL_PROGRAM_REASON_COUNT, '-'}),
    [](const auto& list) { return std::string(list.param.what); });

TEST(Names, WhatIsInNoListIsPrintedByItsNumber) {
  EXPECT_EQ(status(77), "status-77");
  EXPECT_EQ(packet_type(0), "type-0");
  EXPECT_EQ(operation(200), "operation-200");
  EXPECT_EQ(algorithm(200), "algorithm-200");
  EXPECT_EQ(admin_opcode(0), "opcode-0");
}

TEST(Names, AListReadsAsASentenceDoes) {
  EXPECT_EQ(names::list_of({}), "");
  EXPECT_EQ(names::list_of({"a"}), "a");
  EXPECT_EQ(names::list_of({"a", "b"}), "a or b");
  EXPECT_EQ(names::list_of({"a", "b", "c"}), "a, b or c");
}

TEST(Names, OfSomeInTheirOrder) {
  EXPECT_EQ(names_of(kOperations, {PEAL_OPERATION_ALLGATHER, PEAL_OPERATION_BARRIER}),
            (std::vector<std::string>{"allgather", "barrier"}));
}

}  // namespace
}  // namespace peal::names
