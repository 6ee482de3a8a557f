// SPDX-License-Identifier: BSD-2-Clause
// The cost model: what a file may say, and that virtual time follows from it.
#include <gtest/gtest.h>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

TEST(CostModel, ReadsTheNamesItKnows) {
  CostModel model;
  EXPECT_EQ(parse_cost_model(R"({"comment": "x", "packet_ns": 7, "frame_extra_bytes": 8})", &model),
            "");
  EXPECT_EQ(model.packet_ns, 7u);
  EXPECT_EQ(model.frame_extra_bytes, 8u);
  EXPECT_EQ(model.send_ns, CostModel().send_ns);
}

TEST(CostModel, RefusesWhatItDoesNotKnow) {
  CostModel model;
  EXPECT_NE(parse_cost_model("{", &model), "");
  EXPECT_NE(parse_cost_model("[]", &model), "");
  EXPECT_NE(parse_cost_model(R"({"speed": 1})", &model), "");
  EXPECT_NE(parse_cost_model(R"({"packet_ns": -1})", &model), "");
  EXPECT_NE(parse_cost_model(R"({"packet_ns": 1.5})", &model), "");
  EXPECT_NE(parse_cost_model(R"({"packet_ns": 10000000000})", &model), "");
  EXPECT_NE(parse_cost_model(R"({"packet_ns": 9, "speed": 1})", &model), "");
  EXPECT_EQ(model.packet_ns, CostModel().packet_ns);
  EXPECT_NE(load_cost_model("no/such/file", &model), "");
}

// A barrier of two is one packet each way: the latency is the sum of what lies on its path.
TEST(CostModel, ABarrierOfTwoTakesTheSumOfItsPath) {
  const Scenario scenario = bare_plan(2, kBarrier, 1);
  const CostModel& costs = scenario.costs;
  const TimeNs wire_ns = (PEAL_HEADER_BYTES + costs.frame_extra_bytes) * costs.byte_gap_ps / 1000;
  // The send happens in the turn of the submission, the completion in the turn of the arrival.
  const TimeNs path_ns = costs.doorbell_ns + costs.submission_ns + costs.send_ns + wire_ns +
                         costs.wire_latency_ns + costs.packet_ns + costs.completion_ns;
  const Report report = run(scenario);
  ASSERT_TRUE(report.ok) << failures(report);
  ASSERT_EQ(report.latencies_ns.size(), 1u);
  EXPECT_EQ(report.latencies_ns[0], path_ns);
}

TEST(CostModel, ASlowerWireIsSlower) {
  Scenario scenario = bare_plan(8, broadcast(4000), 3);
  const Report fast = run(scenario);
  scenario.costs.byte_gap_ps *= 100;
  const Report slow = run(scenario);
  ASSERT_TRUE(fast.ok && slow.ok);
  EXPECT_GT(slow.latencies_ns[0], 5 * fast.latencies_ns[0]);
  EXPECT_EQ(slow.packets, fast.packets);
}

TEST(Scenario, SaysWhatIsWrongWithIt) {
  Scenario scenario = plan(4, kBarrier, 1);
  EXPECT_EQ(scenario.problem(), "");
  scenario.groups[0].places[1].card = 4;
  EXPECT_NE(scenario.problem(), "");
  scenario = plan(4, kBarrier, 1);
  scenario.groups[0].places[1] = scenario.groups[0].places[0];
  EXPECT_NE(scenario.problem(), "");
  scenario = plan(4, kBarrier, 1);
  scenario.faults.corrupt = 0.1;
  scenario.checksums = ChecksumChoice::kSkipped;
  EXPECT_NE(scenario.problem(), "");
  scenario = plan(4, kBarrier, 1);
  scenario.groups[0].after_group = 0;
  EXPECT_NE(scenario.problem(), "");
}

}  // namespace
}  // namespace peal::sim
