// Workers of two hosts train through their sums, with ps in this process.

#include "common/exchange/host_sum_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"

namespace dtf::exchange {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr uint32_t kWorkers = 5;
constexpr uint64_t kSteps = 6;

// The gradient of a worker, the same for each element.
float gradientOf(uint32_t rank, uint64_t step) {
  return 0.1F * static_cast<float>(rank + 1) + 1e-3F * static_cast<float>(step * step);
}

class HostSumClientTest : public ::testing::Test {
 protected:
  HostSumClientTest()
      : cluster_(2, kWorkers, clock_),
        folder_("/dev/shm/dtf-sum-client-test-" + std::to_string(::getpid())) {
    model_.layout =
        arena::makeLayout({{"a", Shape{16}, {{0, 0, 16}}}, {"b", Shape{20}, {{1, 0, 20}}}}, 2);
    model_.optimizer.learning_rate = 1;
    model_.steps = kSteps;
    model_.replication.mode = cluster::ReplicationSpec::Mode::kSync;
    model_.replication.host_leaders = {0, 0, 2, 0, 2};
    model_.replication = replication::completeReplication(model_.replication, kWorkers);
  }
  ~HostSumClientTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  HostSumOptions optionsOf(uint32_t rank) const {
    const uint32_t leader = replication::pusherOf(model_.replication, rank);
    return {.file = folder_ / std::to_string(leader),
            .ranks = replication::pushedBy(model_.replication, leader),
            .rank = rank,
            .start_timeout = seconds(20),
            .step_timeout = seconds(20),
            .rejoin_timeout = seconds(20)};
  }

  void initialise(ExchangeClient& chief) const {
    const std::vector<float> zeros(64);
    std::vector<std::span<const float>> values;
    for (const arena::ShardLayout& shard : model_.layout.shards)
      values.emplace_back(zeros.data(), shard.elements);
    chief.job().initialise(values, replication::kFirstEpoch);
  }

  // Returns the first parameter of each shard after the last step.
  std::vector<float> train(uint32_t rank) {
    LocalExchangeClient inner(cluster_, rank);
    HostSumClient client(inner, optionsOf(rank));
    client.declare(model_);
    if (rank == 0) initialise(client);
    client.job().waitInitialised();
    replication::StepState state = client.pull();
    while (!state.done) {
      for (uint32_t shard = 0; shard < 2; ++shard)
        std::fill_n(client.gradients(shard), 16, gradientOf(rank, state.next_step));
      const float loss = static_cast<float>(rank);
      state = pushPull(client, state.next_step, 0, loss);
      losses_[rank] = state.loss;
    }
    return {client.view(Values::kParameters, 0)[0], client.view(Values::kParameters, 1)[3]};
  }

  // Returns the parameters of each worker after the training.
  std::vector<std::vector<float>> trainAll() {
    std::vector<std::vector<float>> results(kWorkers);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kWorkers; ++rank)
      threads.emplace_back([this, rank, &results] { results[rank] = train(rank); });
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  SystemClock clock_;
  LocalCluster cluster_;
  const fs::path folder_;
  arena::ModelDeclaration model_;
  std::vector<float> losses_ = std::vector<float>(kWorkers);
};

// By host and rank: ((g0 + g1 + g3) / 3 * 3 + (g2 + g4) / 2 * 2) / 5.
TEST_F(HostSumClientTest, TheSumIsByHostThenByRank) {
  const std::vector<std::vector<float>> results = trainAll();
  float expected = 0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const auto g = [step](uint32_t rank) { return gradientOf(rank, step); };
    const float first = (g(0) + g(1) + g(3)) * (1 / 3.0F), second = (g(2) + g(4)) * (1 / 2.0F);
    expected -= first * (3 / 5.0F) + second * (2 / 5.0F);
  }
  for (const std::vector<float>& of_worker : results) {
    EXPECT_FLOAT_EQ(of_worker[0], expected);
    EXPECT_EQ(of_worker, results[0]) << "all have the same bits";
  }
  for (const float loss : losses_) EXPECT_FLOAT_EQ(loss, (0 + 1 + 2 + 3 + 4) / 5.0F);
  EXPECT_EQ(cluster_.status(0).coordinator.global_step, kSteps);
}

// An earlier process of the leader was lost after its exchange: ps/0 had committed the step when
// the leader was back, and all ps when its member was.
TEST_F(HostSumClientTest, ALeaderBehindItsMemberGoesOnWithTheStepOfThePs) {
  model_.replication.host_leaders = {0, 0, 0, 0, 0};
  const HostSumOptions of_member = optionsOf(1);
  LocalExchangeClient to_ps(cluster_, 0), member_to_ps(cluster_, 1);
  HostSumClient leader(to_ps, optionsOf(0)), member(member_to_ps, of_member);
  leader.declare(model_);
  member.declare(model_);
  initialise(leader);
  EXPECT_EQ(leader.pull().next_step, 0u);
  EXPECT_EQ(pushPull(to_ps, 0, 0, 1).next_step, 1u);  // by the earlier process
  EXPECT_EQ(member.pull().next_step, 1u);
  auto reply = std::async(std::launch::async, [&] { return pushPull(member, 1, 0, 1); });
  const replication::StepState state = pushPull(leader, 0, 0, 1);
  EXPECT_EQ(state.outcome, replication::Outcome::kStale);
  EXPECT_EQ(state.next_step, 1u);
  of_member.ended->end(Error(ErrorCode::kUnavailable, "the test has ended"));
  EXPECT_THROW(reply.get(), Error);
}

TEST_F(HostSumClientTest, AnErrorOfTheLeadersExchangeReachesItsMembers) {
  model_.replication.host_leaders = {0, 0, 0, 0, 0};
  HostSumOptions of_leader = optionsOf(0);
  LocalExchangeClient to_ps(cluster_, 0), member_to_ps(cluster_, 1);
  HostSumClient leader(to_ps, of_leader), member(member_to_ps, optionsOf(1));
  leader.declare(model_);
  member.declare(model_);
  initialise(leader);
  leader.pull();
  member.pull();
  of_leader.ended->end(Error(ErrorCode::kDeadline, "worker/9 is late"));
  EXPECT_THROW(pushPull(leader, 0, 0, 1), Error);
  try {
    pushPull(member, 0, 0, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "worker/0, which exchanges the gradients of this host, has failed: worker/9 is late");
  }
}

TEST_F(HostSumClientTest, NothingStreamsAndNoRowsTravel) {
  LocalExchangeClient inner(cluster_, 1);
  HostSumClient client(inner, optionsOf(1));
  client.declare(model_);
  EXPECT_FALSE(client.traits().streams || client.traits().overlaps || client.traits().on_device ||
               client.traits().brings_rows);
  EXPECT_TRUE(client.traits().has_whole);
}

}  // namespace
}  // namespace dtf::exchange
