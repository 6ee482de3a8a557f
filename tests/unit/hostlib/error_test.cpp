// SPDX-License-Identifier: BSD-2-Clause
// What a user reads when the card says no: the status by its name, and what it means.
#include "hostlib/error.h"

#include <gtest/gtest.h>

#include "base/names.h"

namespace peal::host {
namespace {

TEST(Error, EveryStatusKeepsItsNumberAndItsSentence) {
  for (const names::Row& row : names::kStatuses) {
    EXPECT_EQ(static_cast<uint32_t>(from_status(row.value)), row.value);
    EXPECT_STREQ(peal_strerror(from_status(row.value)), row.text);
  }
}

TEST(Error, RefusalNamesTheCommandAndTheStatus) {
  EXPECT_EQ(refused("reserve group", PEAL_STATUS_BAD_RANK), PEAL_ERR_BAD_RANK);
  EXPECT_STREQ(last_error_text(),
               "reserve group: the card refused with BAD_RANK: rank or group size out of range");
}

TEST(Error, StatusOfANewerCard) {
  EXPECT_EQ(refused("reserve group", PEAL_STATUS_COUNT), PEAL_ERR_CARD_ANSWER);
  EXPECT_EQ(last_error_text(), "reserve group: the card refused with status-" +
                                   std::to_string(PEAL_STATUS_COUNT) +
                                   ": the card's answer makes no sense");
}

TEST(Error, CodesOfTheLibraryHaveSentencesToo) {
  for (int code = PEAL_ERR_INVALID_ARGUMENT; code <= PEAL_ERR_FORKED; code++) {
    if (code == 73) continue;  // nobody's
    EXPECT_STRNE(peal_strerror(static_cast<peal_error>(code)), "unknown error") << code;
  }
  EXPECT_STREQ(peal_strerror(static_cast<peal_error>(PEAL_ERR_FORKED + 1)), "unknown error");
}

}  // namespace
}  // namespace peal::host
