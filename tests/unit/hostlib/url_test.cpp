// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/url.h"

#include <gtest/gtest.h>

namespace peal::host {
namespace {

TEST(Url, Socket) {
  CardUrl url;
  ASSERT_EQ(parse_card_url("emu:/run/cards", &url), PEAL_OK);
  EXPECT_EQ(url.kind, CardUrl::Kind::kSocket);
  EXPECT_EQ(url.path, "/run/cards");
  EXPECT_EQ(url.card, 0u);
  ASSERT_EQ(parse_card_url("emu:/run/a,b,card=17", &url), PEAL_OK);
  EXPECT_EQ(url.path, "/run/a,b");
  EXPECT_EQ(url.card, 17u);
}

TEST(Url, CharacterDevice) {
  CardUrl url;
  ASSERT_EQ(parse_card_url("char:/dev/peal0", &url), PEAL_OK);
  EXPECT_EQ(url.kind, CardUrl::Kind::kCharacterDevice);
  EXPECT_EQ(url.path, "/dev/peal0");
}

TEST(Url, Refused) {
  CardUrl url;
  for (const char* text :
       {"", "emu", "emu:", "char:", "/dev/peal0", "verbs:mlx5_0", "emu:/x,card=", "emu:/x,card=-1",
        "emu:/x,card=1x", "emu:/x,card=99999999999", "emu:,card=1"}) {
    EXPECT_EQ(parse_card_url(text, &url), PEAL_ERR_INVALID_ARGUMENT) << text;
  }
}

}  // namespace
}  // namespace peal::host
