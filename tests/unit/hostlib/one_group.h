// SPDX-License-Identifier: BSD-2-Clause
// A context at a card of the test's own, and a group of one rank in it.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {

class OneGroup : public testing::Test {
 protected:
  void SetUp() override {
    context = open_fake(&card);
    group = make_fake_group(context);
    ASSERT_NE(group, nullptr);
  }
  void TearDown() override { peal_close(context); }

  peal_request* post() {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_ibarrier(group, &request), PEAL_OK);
    return request;
  }
  peal_submission take() {
    peal_submission entry = {};
    EXPECT_TRUE(card.take(&entry));
    return entry;
  }

  FakeCard card;
  peal_context* context = nullptr;
  peal_group* group = nullptr;
};

}  // namespace peal::host
