// The protocol of a host's sum, with its workers as objects of one process: their locks and
// mappings are apart, as in processes.

#include "common/exchange/host_sum.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace dtf::exchange {
namespace {

namespace fs = std::filesystem;
using replication::Outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;

replication::StepState stateAt(uint64_t epoch, uint64_t step, bool done = false) {
  replication::StepState state;
  state.global_step = state.next_step = step;
  state.epoch = epoch;
  state.done = done;
  return state;
}

class HostSumProtocol : public ::testing::Test {
 protected:
  HostSumProtocol() : folder_("/dev/shm/dtf-sum-test-" + std::to_string(::getpid())) {}
  ~HostSumProtocol() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  HostSumOptions optionsOf(uint32_t rank) const {
    return {.file = folder_ / "sum",
            .ranks = {3, 4, 6},
            .rank = rank,
            .start_timeout = seconds(20),
            .step_timeout = step_timeout_,
            .rejoin_timeout = rejoin_timeout_};
  }
  std::unique_ptr<HostSum> join(uint32_t rank) const {
    return std::make_unique<HostSum>(optionsOf(rank), std::vector<uint64_t>{16, 32});
  }

  // Passes a reply with parameters that are all `value`.
  static void publish(HostSum& leader, const replication::StepState& state,
                      const std::optional<SumStep>& answers, float value) {
    const std::vector<float> parameters(32, value);
    const std::vector<const float*> shards(2, parameters.data());
    leader.publish(state, answers, shards);
  }
  static void handOver(HostSum& member, const SumStep& step, float value) {
    member.gradient(0)[0] = value;
    member.gradient(1)[31] = value + 0.5F;
    member.handOver(step, value);
  }
  std::string errorOf(const std::function<void()>& action) const {
    try {
      action();
      return "no error";
    } catch (const Error& error) {
      return error.message();
    }
  }

  const fs::path folder_;
  Duration step_timeout_ = seconds(50), rejoin_timeout_ = seconds(50);
};

TEST_F(HostSumProtocol, TheLeaderCollectsByRankAndTheMembersGetTheReply) {
  const auto leader = join(3), first = join(4), second = join(6);
  EXPECT_TRUE(leader->leads());
  EXPECT_FALSE(second->leads());
  auto losses = std::async(std::launch::async, [&] { return leader->collect({1, 0}); });
  handOver(*second, {1, 0}, 6);
  handOver(*first, {1, 0}, 4);
  EXPECT_EQ(losses.get(), (std::vector<float>{4, 6}));
  EXPECT_EQ(leader->collected(0, 0)[0], 4);
  EXPECT_EQ(leader->collected(1, 1)[31], 6.5F);
  auto reply = std::async(std::launch::async, [&] { return second->awaitReply({1, 0}); });
  publish(*leader, stateAt(1, 1), SumStep{1, 0}, 9);
  EXPECT_EQ(reply.get().next_step, 1u);
  EXPECT_EQ(first->awaitReply({1, 0}).outcome, Outcome::kApplied);
  EXPECT_EQ(first->parameters(0)[15], 9);
  EXPECT_EQ(second->parameters(1)[31], 9);
}

TEST_F(HostSumProtocol, AReplyOfALaterEpochSaysThatAllWentBack) {
  const auto leader = join(3), member = join(4);
  handOver(*member, {1, 7}, 1);
  publish(*leader, stateAt(2, 5), SumStep{1, 7}, 3);
  const replication::StepState state = member->awaitReply({1, 7});
  EXPECT_EQ(state.outcome, Outcome::kWentBack);
  EXPECT_EQ(state.next_step, 5u);
  EXPECT_EQ(state.epoch, 2u);
}

TEST_F(HostSumProtocol, AJobThatWasStoppedIsDoneForTheMembersToo) {
  const auto leader = join(3), member = join(4);
  handOver(*member, {1, 7}, 1);
  publish(*leader, stateAt(1, 7, true), SumStep{1, 7}, 3);
  const replication::StepState state = member->awaitReply({1, 7});
  EXPECT_TRUE(state.done);
  EXPECT_EQ(state.outcome, Outcome::kStale);
}

// The later process computes the same gradient; the leader may be reading the earlier one.
TEST_F(HostSumProtocol, AGradientThatIsHandedOverOutlivesItsProcess) {
  const auto leader = join(3), other = join(6);
  auto member = join(4);
  handOver(*member, {1, 0}, 4);
  handOver(*other, {1, 0}, 6);
  member = nullptr;
  EXPECT_EQ(leader->collect({1, 0}), (std::vector<float>{4, 6}));
  member = join(4);
  handOver(*member, {1, 0}, 44);
  EXPECT_EQ(leader->collect({1, 0}), (std::vector<float>{4, 6}));
  EXPECT_EQ(leader->collected(0, 0)[0], 4);
  publish(*leader, stateAt(1, 1), SumStep{1, 0}, 9);
  EXPECT_EQ(member->awaitReply({1, 0}).next_step, 1u);
}

// The earlier leader may have been lost after its exchange: a pull brings the same parameters.
TEST_F(HostSumProtocol, ALeaderThatComesBackAnswersWithWhatItPulls) {
  auto leader = join(3);
  const auto member = join(4);
  handOver(*member, {1, 0}, 4);
  leader = nullptr;
  auto reply = std::async(std::launch::async, [&] { return member->awaitReply({1, 0}); });
  leader = join(3);
  publish(*leader, stateAt(1, 0), std::nullopt, 8);  // not yet applied
  publish(*leader, stateAt(1, 1), std::nullopt, 9);
  EXPECT_EQ(reply.get().next_step, 1u);
  EXPECT_EQ(member->parameters(0)[0], 9);
}

TEST_F(HostSumProtocol, ALeaderIsBehindAMemberOfALaterEpoch) {
  const auto leader = join(3), member = join(4), other = join(6);
  handOver(*other, {1, 7}, 6);
  handOver(*member, {2, 5}, 4);
  EXPECT_EQ(leader->collect({1, 7}), std::nullopt);
}

// The leader has settled on a step that the ps had, and the member, which started later, on the
// next.
TEST_F(HostSumProtocol, ALeaderIsBehindAMemberOfALaterStep) {
  const auto leader = join(3);
  auto member = join(6);
  handOver(*member, {1, 8}, 6);
  EXPECT_EQ(leader->collect({1, 7}), std::nullopt) << "also while worker/4 is missing";
  member = nullptr;
  const auto other = join(4);
  handOver(*other, {1, 8}, 4);
  EXPECT_EQ(leader->collect({1, 8}), (std::vector<float>{4, 6}));
}

// The members' waits would end by themselves after rejoin_seconds, with another reason.
TEST_F(HostSumProtocol, AnErrorOfTheLeaderIsItsMembersToo) {
  auto leader = join(3);
  auto member = join(4);
  auto reply = std::async(std::launch::async, [&] { return member->awaitReply({1, 7}); });
  leader->fail(Error(ErrorCode::kBadConfig, "ps/0 refuses the gradient" + std::string(9000, '.')));
  try {
    reply.get();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_TRUE(error.message().starts_with(
        "worker/3, which exchanges the gradients of this host, has failed: ps/0 refuses the "
        "gradient..."))
        << error.message();
    EXPECT_LT(error.message().size(), 5000u);
  }
  member = nullptr;
  member = join(4);  // waits for the next leader
  leader = nullptr;
  reply = std::async(std::launch::async, [&] { return member->awaitReply({1, 7}); });
  leader = join(3);
  publish(*leader, stateAt(1, 8), std::nullopt, 2);
  EXPECT_EQ(reply.get().next_step, 8u);
}

TEST_F(HostSumProtocol, AnErrorOfTheLeadersProcessAloneIsNamedInTheWaitForItsReturn) {
  rejoin_timeout_ = milliseconds(20);
  auto leader = join(3);
  const auto member = join(4);
  leader->fail(Error(ErrorCode::kUnavailable, "fenced: worker/3 was declared lost"));
  leader = nullptr;
  EXPECT_EQ(errorOf([&] {
              member->awaitReply({1, 7});
            }),
            "worker/4 has waited 0 s for worker/3, on the same host, to be back after \"fenced: "
            "worker/3 was declared lost\" (timeouts.rejoin_seconds)");
}

// It waits for other hosts, or for a worker that is to return, by deadlines of its own.
TEST_F(HostSumProtocol, ALeaderThatRunsHasNoDeadline) {
  step_timeout_ = rejoin_timeout_ = milliseconds(1);
  const auto leader = join(3), member = join(4);
  auto reply = std::async(std::launch::async, [&] { return member->awaitReply({1, 0}); });
  EXPECT_EQ(reply.wait_for(milliseconds(300)), std::future_status::timeout);
  publish(*leader, stateAt(1, 1), SumStep{1, 0}, 9);
  EXPECT_EQ(reply.get().next_step, 1u);
}

TEST_F(HostSumProtocol, AWorkerThatHasNeverOpenedTheFileIsAFaultOfItsPlace) {
  rejoin_timeout_ = milliseconds(20);
  const auto leader = join(3);
  try {
    leader->collect({1, 0});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "worker/3 has waited 0 s for worker/4, on the same host, to open " +
                  (folder_ / "sum").string() +
                  " (timeouts.rejoin_seconds): if it runs, it has another /dev/shm, user or "
                  "run_dir: let the containers of a host share them, give each container an "
                  "address of its own, or leave out 'topology'");
  }
}

TEST_F(HostSumProtocol, WorkersOfAnotherJobDoNotMeet) {
  const auto leader = join(3);
  HostSumOptions options = optionsOf(4);
  options.identity = 1;
  options.start_timeout = milliseconds(20);
  EXPECT_NE(errorOf([&] { HostSum(options, {16, 32}); }).find("of another job"), std::string::npos);
}

TEST_F(HostSumProtocol, TheEndOfTheJobEndsTheWaitForAnEarlierProcess) {
  const auto earlier = join(4);
  const HostSumOptions options = optionsOf(4);
  options.ended->end(Error(ErrorCode::kUnavailable, "ps/0 was lost"));
  EXPECT_EQ(errorOf([&] { HostSum(options, {16, 32}); }), "ps/0 was lost");
}

TEST_F(HostSumProtocol, ParametersInUseAreNotOverwritten) {
  const auto leader = join(3);
  auto member = join(4);
  handOver(*member, {1, 0}, 4);
  publish(*leader, stateAt(1, 1), SumStep{1, 0}, 1);
  member->awaitReply({1, 0});
  publish(*leader, stateAt(1, 2), SumStep{1, 1}, 2);
  auto third = std::async(std::launch::async, [&] {
    publish(*leader, stateAt(1, 3), SumStep{1, 2}, 3);
  });
  EXPECT_EQ(third.wait_for(milliseconds(30)), std::future_status::timeout);
  EXPECT_EQ(member->parameters(0)[0], 1);
  handOver(*member, {1, 1}, 4);
  EXPECT_GE(member->awaitReply({1, 1}).next_step, 2u);
  third.get();
}

// The leader publishes as fast as it can, like one that answers pulls.
TEST_F(HostSumProtocol, AMemberNeverSeesAMixOfReplies) {
  constexpr uint64_t kReplies = 3000;
  const auto leader = join(3), member = join(4);
  auto publishing = std::async(std::launch::async, [&] {
    for (uint64_t step = 1; step <= kReplies; ++step)
      publish(*leader, stateAt(1, step), SumStep{1, step - 1}, static_cast<float>(step));
  });
  for (uint64_t step = 0; step < kReplies;) {
    const replication::StepState state = member->awaitReply({1, step});
    ASSERT_GT(state.next_step, step);
    ASSERT_EQ(state.global_step, state.next_step);
    for (const uint32_t shard : {0U, 1U})
      ASSERT_EQ(member->parameters(shard)[15], static_cast<float>(state.next_step));
    step = state.next_step;
  }
  publishing.get();
}

TEST_F(HostSumProtocol, WaitsHaveDeadlinesAndNames) {
  step_timeout_ = rejoin_timeout_ = milliseconds(20);
  const auto leader = join(3);
  join(4).reset();
  EXPECT_EQ(errorOf([&] {
              leader->collect({1, 4});
            }),
            "worker/3 has waited 0 s for worker/4, on the same host, to be back "
            "(timeouts.rejoin_seconds)");
  const auto member = join(4), other = join(6);
  handOver(*member, {1, 4}, 1);
  EXPECT_EQ(errorOf([&] {
              leader->collect({1, 4});
            }),
            "worker/3 has waited 0 s for worker/6, on the same host, to compute step 4 "
            "(timeouts.step_seconds and rejoin_seconds)");
}

TEST_F(HostSumProtocol, TheEndOfTheJobEndsAWait) {
  HostSumOptions options = optionsOf(4);
  const auto leader = join(3);
  HostSum member(options, {16, 32});
  auto reply = std::async(std::launch::async, [&] { return member.awaitReply({1, 0}); });
  options.ended->end(Error(ErrorCode::kUnavailable, "ps/0 was lost"));
  EXPECT_EQ(errorOf([&] { reply.get(); }), "ps/0 was lost");
}

}  // namespace
}  // namespace dtf::exchange
