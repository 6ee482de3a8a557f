// SPDX-License-Identifier: BSD-2-Clause
// The links of a torus: which way a frame goes, what it waits for, and what a model may say of it.
#include "emulator/cluster/torus.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "emulator/cluster/cost_model.h"

namespace peal::sim {
namespace {

constexpr TimeNs kBusy = 1000;

TEST(Torus, AFrameGoesTheShorterWayInEachDimension) {
  const auto way = [](uint32_t from, uint32_t to) {
    const Torus torus({4, 3, 2});
    std::vector<uint32_t> cards;
    for (uint32_t at = from; at != to; cards.push_back(at)) at = torus.hop(at, to).next;
    return cards;
  };
  using Way = std::vector<uint32_t>;
  EXPECT_EQ(way(0, 0), Way{});
  EXPECT_EQ(way(0, 1), Way{1});
  EXPECT_EQ(way(0, 2), (Way{1, 2}));
  EXPECT_EQ(way(0, 3), Way{3}) << "the last is beside the first";
  EXPECT_EQ(way(3, 0), Way{0});
  EXPECT_EQ(way(0, 8), Way{8});
  EXPECT_EQ(way(0, 12), Way{12});
  EXPECT_EQ(way(1, 4 + 3 + 12), (Way{2, 3, 7, 19})) << "x, then y, then z";
}

TEST(Torus, EachLinkIsOneWayOfItsOwn) {
  const Torus torus({3, 3, 2});
  std::set<size_t> links;
  for (uint32_t from = 0; from < 18; from++) {
    for (uint32_t to = 0; to < 18; to++) {
      if (from != to && torus.hop(from, to).next == to) links.insert(torus.hop(from, to).link);
    }
  }
  EXPECT_EQ(links.size(), 18u * 5) << "two each in x and y, one in z";
}

TEST(Torus, FramesWaitForALinkOfTheirWayAndForNoOther) {
  Torus torus({3, 3, 1});
  const auto enter = [&](uint32_t from, uint32_t to, TimeNs head_ns) {
    return torus.enter(torus.hop(from, to).link, head_ns, kBusy);
  };
  EXPECT_EQ(enter(0, 1, 5), 5u);
  EXPECT_EQ(enter(0, 2, 5), 5u) << "the other way";
  EXPECT_EQ(enter(1, 0, 5), 5u) << "towards it";
  EXPECT_EQ(enter(0, 3, 5), 5u) << "another dimension";
  EXPECT_EQ(torus.waits(), 0u);
  EXPECT_EQ(enter(0, 1, 10), 5 + kBusy) << "behind the first";
  EXPECT_EQ(enter(0, 4, 20), 5 + 2 * kBusy) << "first along x, as the others";
  EXPECT_EQ(enter(0, 1, 5 + 3 * kBusy), 5 + 3 * kBusy) << "free again";
  EXPECT_EQ(torus.waits(), 2u);
}

TEST(Torus, AModelSaysHowManyCardsItHas) {
  CostModel model;
  EXPECT_EQ(network_problem(model, 7), "");
  EXPECT_EQ(parse_cost_model(R"({"torus": [2, 2, 3], "sources": {"torus": "x"}})", &model), "");
  EXPECT_EQ(network_problem(model, 12), "");
  EXPECT_EQ(network_problem(model, 8), "the model's torus has 2x2x3 = 12 cards, not 8");
  for (const char* wrong : {R"({"torus": 12})", R"({"torus": [2, 2]})", R"({"torus": [2, 0, 3]})",
                            R"({"torus": [2, -1, 3]})", R"({"torus": [65536, 2, 1]})"}) {
    EXPECT_NE(parse_cost_model(wrong, &model).find("three whole numbers"), std::string::npos);
  }
  EXPECT_EQ(parse_cost_model(R"({"dma_duplex": 2})", &model), "cost model: dma_duplex is 0 or 1");
  EXPECT_EQ(model.torus, (Torus::Size{2, 2, 3}));
}

}  // namespace
}  // namespace peal::sim
