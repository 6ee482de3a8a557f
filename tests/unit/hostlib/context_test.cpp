// SPDX-License-Identifier: BSD-2-Clause
// What peal_open() makes of its environment before it looks for a card, and how peal_close() leaves
// one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "hostlib/rings.h"
#include "peal/peal.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

class OpenEnvironment : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"PEAL_SPIN_US", "PEAL_REGISTRATIONS", "PEAL_PROGRAMS"}) unsetenv(name);
  }
  // How opening a card that is not there ends; the text only where it is the environment's fault.
  static std::string opened(const char* name, const char* value) {
    setenv(name, value, 1);
    peal_context* context = nullptr;
    const peal_error error = peal_open("emu:/nowhere", &context);
    EXPECT_EQ(context, nullptr);
    unsetenv(name);
    if (error == PEAL_ERR_NO_CARD) return "good";
    EXPECT_EQ(error, PEAL_ERR_INVALID_ARGUMENT);
    return peal_last_error_text();
  }
};

TEST_F(OpenEnvironment, HowLongAWaitLooks) {
  for (const char* good : {"", "0", "60000000"}) EXPECT_EQ(opened("PEAL_SPIN_US", good), "good");
  for (const std::string wrong : {"soon", "60000001", "-1", "1k", " 1"}) {
    EXPECT_EQ(opened("PEAL_SPIN_US", wrong.c_str()),
              "$PEAL_SPIN_US is \"" + wrong + "\": expected microseconds, at most 60000000");
  }
}

TEST_F(OpenEnvironment, HowManyRegistrationsAreKept) {
  for (const char* good : {"", "2", "65536"})
    EXPECT_EQ(opened("PEAL_REGISTRATIONS", good), "good") << good;
  for (const std::string wrong : {"all", "1", "65537"}) {
    EXPECT_EQ(opened("PEAL_REGISTRATIONS", wrong.c_str()),
              "$PEAL_REGISTRATIONS is \"" + wrong + "\": expected a number from 2 to 65536");
  }
}

TEST_F(OpenEnvironment, WhetherThereAreProgramsOfPersistentRequests) {
  for (const char* good : {"", "0", "1"}) EXPECT_EQ(opened("PEAL_PROGRAMS", good), "good") << good;
  for (const std::string wrong : {"no", "2", "00", "1 ", "off"}) {
    EXPECT_EQ(opened("PEAL_PROGRAMS", wrong.c_str()),
              "$PEAL_PROGRAMS is \"" + wrong + "\": expected 0 or 1");
  }
}

TEST(OpenVersion, OfANewerProgramIsRefused) {
  peal_context* context = nullptr;
  for (const uint32_t version : {0u, PEAL_API_VERSION + 1u}) {
    EXPECT_EQ(peal_open_version(version, "emu:/nowhere", &context), PEAL_ERR_BAD_VERSION);
    EXPECT_EQ(std::string(peal_last_error_text()),
              "the program was built with version " + std::to_string(version) +
                  " of peal.h, this library (" + peal_version() + ") knows 1 to " +
                  std::to_string(PEAL_API_VERSION));
  }
  for (uint32_t version = 1; version <= PEAL_API_VERSION; version++) {
    EXPECT_EQ(peal_open_version(version, "emu:/nowhere", &context), PEAL_ERR_NO_CARD) << version;
  }
}

TEST(Close, EndsTheContextBeforeMemoryGoes) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  void* memory = nullptr;
  ASSERT_EQ(peal_alloc(context, 64, &memory), PEAL_OK);
  const std::set<uint32_t> mapped = card.mapped;
  peal_close(context);
  EXPECT_EQ(card.ended, 1);
  EXPECT_EQ(card.mapped_at_end, mapped);
  EXPECT_EQ(mapped.size(), 1u);
  EXPECT_TRUE(card.mapped.empty());
}

TEST(Close, WaitsForOneThatMakesNoSenseAndForNoneThatIsGone) {
  for (const peal_error why : {PEAL_ERR_CARD_GONE, PEAL_ERR_CARD_ANSWER}) {
    FakeCard card;
    peal_context* context = open_fake(&card);
    break_context(*context, why);
    peal_close(context);
    EXPECT_EQ(card.ended, why == PEAL_ERR_CARD_GONE ? 0 : 1);
  }
}

}  // namespace
}  // namespace peal::host
