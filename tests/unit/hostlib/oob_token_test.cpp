// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/oob_token.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace peal::host {
namespace {

// The vectors that come with the reference implementation (vectors_sip128): the key is 00 01 .. 0f,
// the message 00 01 .. of that length.
TEST(OobToken, KeyedHashIsSipHash24) {
  OobToken key;
  uint8_t message[16];
  for (uint8_t i = 0; i < 16; i++) key[i] = message[i] = i;
  EXPECT_EQ(token_text(keyed_hash(key, message, 0)), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(token_text(keyed_hash(key, message, 1)), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(token_text(keyed_hash(key, message, 15)), "5493e99933b0a8117e08ec0f97cfc3d9");
}

TEST(OobToken, EveryPartChangesTheProof) {
  const OobToken token = {1};
  const OobNonce mine = {2};
  const OobNonce yours = {3};
  const OobProof proof = make_proof(token, OobSide::kRank, 4, 5, mine, yours);
  EXPECT_TRUE(same_proof(proof, make_proof(token, OobSide::kRank, 4, 5, mine, yours)));
  for (const OobProof& other : {make_proof({9}, OobSide::kRank, 4, 5, mine, yours),
                                make_proof(token, OobSide::kServer, 4, 5, mine, yours),
                                make_proof(token, OobSide::kRank, 5, 5, mine, yours),
                                make_proof(token, OobSide::kRank, 4, 6, mine, yours),
                                make_proof(token, OobSide::kRank, 4, 5, yours, yours),
                                make_proof(token, OobSide::kRank, 4, 5, mine, mine)}) {
    EXPECT_FALSE(same_proof(proof, other));
  }
}

TEST(OobToken, OneBitAnywhereIsNoticed) {
  const OobProof proof = {0, 1, 2, 255};
  for (size_t bit = 0; bit < 128; bit++) {
    OobProof other = proof;
    other[bit / 8] = static_cast<uint8_t>(other[bit / 8] ^ (1u << bit % 8));
    EXPECT_FALSE(same_proof(proof, other)) << bit;
  }
}

TEST(OobToken, Drawn) {
  OobToken one = {};
  OobToken other = {};
  ASSERT_TRUE(draw(&one));
  ASSERT_TRUE(draw(&other));
  EXPECT_NE(one, other);
  OobToken read = {};
  EXPECT_TRUE(parse_token(token_text(one).c_str(), &read));
  EXPECT_EQ(read, one);
}

TEST(OobToken, Environment) {
  std::optional<OobToken> token;
  std::string error;
  unsetenv("PEAL_OOB_TOKEN");
  EXPECT_TRUE(token_of_environment(&token, &error));
  EXPECT_FALSE(token.has_value());
  setenv("PEAL_OOB_TOKEN", "000102030405060708090A0b0c0d0e0f", 1);
  EXPECT_TRUE(token_of_environment(&token, &error));
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token_text(*token), "000102030405060708090a0b0c0d0e0f");
  for (const char* wrong :
       {"0", "000102030405060708090a0b0c0d0e0", "000102030405060708090a0b0c0d0e0f0",
        "000102030405060708090a0b0c0d0e0g"}) {
    setenv("PEAL_OOB_TOKEN", wrong, 1);
    EXPECT_FALSE(token_of_environment(&token, &error)) << wrong;
    EXPECT_FALSE(token.has_value());
    EXPECT_EQ(error, "$PEAL_OOB_TOKEN has " + std::to_string(strlen(wrong)) +
                         " characters or strange ones: expected 32 hexadecimal digits");
  }
  unsetenv("PEAL_OOB_TOKEN");
}

}  // namespace
}  // namespace peal::host
