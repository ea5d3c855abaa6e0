#include "daemons/shard_metrics.h"

#include <gtest/gtest.h>

#include "common/replication/epoch.h"
#include "tests/support/http_client.h"

namespace dtf::daemons {
namespace {

ServiceLook lookAt(const shard::ShardStatus& status) {
  return lookOf({.shard = status});
}

testing::MetricsPage pageOf(const host::PsReport& report) {
  return testing::parseMetrics(metricsText(lookOf(report).metrics, {{"task", "ps/0"}}));
}

TEST(PsMetrics, APsIsReadyOnceItHoldsValues) {
  shard::ShardStatus status;
  status.missing = "worker/1 (awaited for 3.2 s)";
  EXPECT_EQ(lookAt(status).status, "waiting for worker/1 (awaited for 3.2 s)");
  EXPECT_EQ(lookAt(status).not_ready,
            "it holds no values yet, and waits for worker/1 (awaited for 3.2 s)");
  status.missing.clear();
  EXPECT_EQ(lookAt(status).not_ready, "it holds no values yet: the chief brings them");
  status.declared = status.initialised = true;
  status.steps = 100;
  status.coordinator.global_step = 7;
  EXPECT_EQ(lookAt(status).not_ready, "");
  EXPECT_EQ(lookAt(status).status, "step 7 of 100");
  status.missing = "worker/1 (lost for 1.0 s)";
  EXPECT_EQ(lookAt(status).not_ready, "") << "the others can go on";
  EXPECT_EQ(lookAt(status).status, "step 7 of 100, waiting for worker/1 (lost for 1.0 s)");
}

TEST(PsMetrics, SayWhatTheStatusSays) {
  shard::ShardStatus status;
  status.steps = 1000;
  status.gradient_bytes = 12345;
  status.callers_waiting = 2;
  status.coordinator.global_step = 7;
  status.coordinator.gradients_applied = 6;
  status.coordinator.gradients_stale = 5;
  status.coordinator.gradients_repeated = 4;
  using replication::MemberState;
  for (const MemberState state : {MemberState::kJoined, MemberState::kLost, MemberState::kJoined})
    status.members.push_back({state});
  status.epoch = replication::nextEpoch(replication::kFirstEpoch, 1);
  const testing::MetricsPage page = pageOf(
      {.shard = status, .elements = 100, .control = {2, {30, 40}}, .bulk = {1, {5000, 6000}}});
  EXPECT_EQ(page.value("dtf_epoch"), 2);
  EXPECT_EQ(page.value("dtf_parameter_bytes"), 400);
  EXPECT_EQ(page.value("dtf_connections", "kind=\"control\""), 2);
  EXPECT_EQ(page.value("dtf_received_bytes_total", "kind=\"control\""), 30);
  EXPECT_EQ(page.value("dtf_sent_bytes_total", "kind=\"bulk\""), 6000);
  EXPECT_EQ(page.value("dtf_global_step"), 7);
  EXPECT_EQ(page.value("dtf_job_steps"), 1000);
  EXPECT_EQ(page.value("dtf_gradient_bytes_total"), 12345);
  EXPECT_EQ(page.value("dtf_waiting_calls"), 2);
  EXPECT_EQ(page.value("dtf_gradients_total", "outcome=\"applied\""), 6);
  EXPECT_EQ(page.value("dtf_gradients_total", "outcome=\"stale\""), 5);
  EXPECT_EQ(page.value("dtf_gradients_total", "outcome=\"repeated\""), 4);
  EXPECT_EQ(page.value("dtf_workers", "state=\"joined\""), 2);
  EXPECT_EQ(page.value("dtf_workers", "state=\"lost\""), 1);
  EXPECT_EQ(page.value("dtf_workers", "state=\"awaited\""), 0);
}

TEST(PsMetrics, TheWorkerThatTheOthersWaitForIsNamed) {
  shard::ShardStatus status;
  EXPECT_EQ(pageOf({.shard = status}).value("dtf_straggler_seconds", "worker=\"\",phase=\"\""), 0);
  status.straggler = {1, replication::Phase::kData, std::chrono::milliseconds(250)};
  EXPECT_EQ(pageOf({.shard = status})
                .value("dtf_straggler_seconds", "worker=\"worker/1\",phase=\"data\""),
            0.25);
}

TEST(PsMetrics, EveryStalenessIsInItsBucket) {
  shard::ShardStatus status;
  for (const uint64_t staleness : {0, 0, 1, 2, 3, 4, 5, 63, 64, 1000})
    status.coordinator.staleness.add(staleness);
  const testing::MetricsPage page = pageOf({.shard = status});
  const auto up_to = [&page](const std::string& bound) {
    return page.value("dtf_staleness_steps_bucket", "le=\"" + bound + "\"");
  };
  EXPECT_EQ(up_to("0"), 2);
  EXPECT_EQ(up_to("1"), 3);
  EXPECT_EQ(up_to("2"), 4);
  EXPECT_EQ(up_to("4"), 6);
  EXPECT_EQ(up_to("8"), 7);
  EXPECT_EQ(up_to("32"), 7);
  EXPECT_EQ(up_to("63"), 8);
  EXPECT_EQ(up_to("+Inf"), 10);
  EXPECT_EQ(page.value("dtf_staleness_steps_count"), 10);
  EXPECT_EQ(page.value("dtf_staleness_steps_sum"), 1142);
  EXPECT_EQ(page.value("dtf_staleness_max_steps"), 1000);
}

}  // namespace
}  // namespace dtf::daemons
