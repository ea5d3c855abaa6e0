#include "common/wire/ps/ps_data_link.h"

#include <algorithm>

#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PsDataLinkTest : public fake::FakeCluster {
 protected:
  ~PsDataLinkTest() noexcept override {}

  PsDataLink& open(uint32_t batches_per_step = 1) {
    link_ = std::make_unique<PsDataLink>(loop_, options_.link, 0, options_.ps[0],
                                         ShardTraffic{.job = {.batches_per_step = batches_per_step},
                                                      .elements = fake::kClusterElements});
    get(link_->open());
    return *link_;
  }
  std::unique_ptr<PsDataLink> link_;
};

TEST_F(PsDataLinkTest, AGradientGoesOutAndParametersComeBack) {
  PsDataLink& link = open();
  for (uint64_t i = 0; i < fake::kClusterElements; ++i) link.gradients()[i] = static_cast<float>(i);
  ps_[0].parameters.assign(fake::kClusterElements, 7);
  const replication::StepState state = get(link.exchange({0, 0, 0.5F, replication::kFirstEpoch}));
  EXPECT_EQ(state.next_step, 1u);
  EXPECT_EQ(ps_[0].gradient, std::vector<float>(link.gradients(), link.gradients() + 16));
  EXPECT_EQ(link.parameters()[15], 7);
}

TEST_F(PsDataLinkTest, ParametersStayWhileMoreBatchesOfTheStepAreDue) {
  PsDataLink& link = open(2);
  ps_[0].parameters.assign(fake::kClusterElements, 7);
  get(link.pull({}));
  ps_[0].states.push_back({.outcome = replication::Outcome::kQueued, .next_batch = 1});
  const replication::StepState state = get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(state.outcome, replication::Outcome::kQueued);
  EXPECT_EQ(link.parameters()[0], 7);
}

TEST_F(PsDataLinkTest, AnAnswerWithoutTheParametersThatAreDueIsRefused) {
  PsDataLink& link = open(2);
  ps_[0].states.push_back({.outcome = replication::Outcome::kQueued});
  const Error error = errorOf(link.exchange({0, 1, 0, replication::kFirstEpoch}));
  EXPECT_EQ(error.message(),
            "ps/0 (fake:1) kept a gradient for later instead of sending parameters");
}

TEST_F(PsDataLinkTest, AShardOfAnotherSizeIsRefused) {
  PsDataLink& link = open();
  ps_[0].parameters.resize(fake::kClusterElements / 2);
  EXPECT_EQ(errorOf(link.pull({})).code(), ErrorCode::kBadData);
}

TEST_F(PsDataLinkTest, AveragesLieBesideTheParameters) {
  PsDataLink& link = open();
  ps_[0].parameters.assign(fake::kClusterElements, 7);
  get(link.pull({}));
  ps_[0].parameters.assign(fake::kClusterElements, 8);
  get(link.pullAside(false));
  EXPECT_EQ(link.parameters()[0], 7);
  EXPECT_EQ(link.aside()[0], 8);
}

TEST_F(PsDataLinkTest, WhatIsNotAnsweredIsSaidAgainAsItWas) {
  PsDataLink& link = open();
  link.gradients()[3] = 5;
  const std::vector<float> values(fake::kClusterElements);
  const std::vector<std::pair<std::string, std::function<kj::Promise<void>()>>> calls = {
      {"initialise", [&] { return link.initialise(values, replication::kFirstEpoch); }},
      {"pull", [&] { return link.pull({}).ignoreResult(); }},
      {"averages", [&] { return link.pullAside(false); }},
      {"exchange", [&] {
         return link.exchange({0, 0, 0.5F, replication::kFirstEpoch}).ignoreResult();
       }}};
  for (const auto& [name, call] : calls) {
    ps_[0].calls.clear();
    ps_[0].hangs = name;
    auto waiting = call();
    loop_.settle();
    ASSERT_EQ(ps_[0].calls, std::vector<std::string>{name});
    ps_[0].hangs.reset();
    ps_[0].gradient.clear();
    kill(0);
    loop_.live(milliseconds(200));  // a link that has just healed isn't mended at once
    get(kj::mv(waiting));
    EXPECT_EQ(ps_[0].calls, (std::vector<std::string>{name, name}));
  }
  EXPECT_EQ(ps_[0].gradient.at(3), 5);
  EXPECT_EQ(ps_[0].step, 1u);
}

// Between the batches of a step a worker computes from these parameters.
TEST_F(PsDataLinkTest, ParametersOutliveTheConnectionThatBroughtThem) {
  PsDataLink& link = open(2);
  ps_[0].parameters.assign(fake::kClusterElements, 7);
  get(link.pull({}));
  kill(0);
  ps_[0].states.push_back({.outcome = replication::Outcome::kQueued, .next_batch = 1});
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(link.parameters()[0], 7);
  EXPECT_EQ(link.parameters()[fake::kClusterElements - 1], 7);
}

// The ps answers each hello, so it counts as present, but it never answers a call.
TEST_F(PsDataLinkTest, ACallThatBreaksEveryConnectionIsGivenUp) {
  options_.link.timeouts.rejoin_seconds = 5;
  options_.link.timeouts.step_seconds = 5;
  PsDataLink& link = open();
  ps_[0].hangs = "exchange";
  std::optional<Error> error;
  auto exchange = link.exchange({0, 0, 0, replication::kFirstEpoch})
                      .ignoreResult()
                      .eagerlyEvaluate([&](kj::Exception&& e) { error = net::toError(e); });
  for (int i = 0; i < 200 && !error; ++i) {
    loop_.live(milliseconds(100));
    kill(0);
  }
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->message().starts_with("lost ps/0 (fake:1) while exchanging a step: "))
      << error->message();
  EXPECT_GT(std::count(ps_[0].calls.begin(), ps_[0].calls.end(), "exchange"), 20);
}

TEST_F(PsDataLinkTest, APsThatIsLostInAStepIsNamed) {
  options_.link.timeouts.rejoin_seconds = 0;
  PsDataLink& link = open();
  ps_[0].hangs = "exchange";
  auto exchange = link.exchange({0, 0, 0, replication::kFirstEpoch});
  loop_.settle();
  kill(0);
  const Error error = errorOf(kj::mv(exchange));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(error.message().starts_with("lost ps/0 (fake:1) while exchanging a step: "))
      << error.message();
}

// It accepts the session once the control connection has declared the model.
TEST_F(PsDataLinkTest, APsThatHasNotBeenToldTheModelYetIsAskedAgain) {
  ps_[0].bulk_hellos_too_early = 3;
  PsDataLink link(loop_, options_.link, 0, options_.ps[0],
                  ShardTraffic{.elements = fake::kClusterElements});
  bool is_open = false;
  auto opening = link.open().then([&] { is_open = true; }).eagerlyEvaluate([](kj::Exception&& e) {
    ADD_FAILURE() << e.getDescription().cStr();
  });
  loop_.live(seconds(10));
  EXPECT_TRUE(is_open);
  EXPECT_EQ(ps_[0].bulk_hellos_too_early, 0);
}

// A certificate for another task, for example: repeating the hello would not help.
TEST_F(PsDataLinkTest, ARefusalOfTheHelloIsFinal) {
  ps_[0].refused_bulk_hello = Error(ErrorCode::kPermission, "each task needs its own key");
  PsDataLink link(loop_, options_.link, 0, options_.ps[0],
                  ShardTraffic{.elements = fake::kClusterElements});
  std::optional<Error> error;
  auto opening = link.open().eagerlyEvaluate([&](kj::Exception&& e) { error = net::toError(e); });
  loop_.live(milliseconds(100));
  ASSERT_TRUE(error) << "it is asked again";
  EXPECT_EQ(error->code(), ErrorCode::kPermission);
  EXPECT_NE(error->message().find("each task needs its own key"), std::string::npos)
      << error->message();
}

// A ps of version 0.1.0 names no codec, and may have it.
TEST_F(PsDataLinkTest, APsWithoutTheCodecOfTheJobIsNotExchangedWith) {
  const ShardTraffic rounds{.job = {.codec = arena::CodecKind::kBFloat16},
                            .elements = fake::kClusterElements};
  PsDataLink tried(loop_, options_.link, 0, options_.ps[0], rounds);
  get(tried.open());
  ps_[0].codecs = {"float32", "rows", "another"};
  PsDataLink link(loop_, options_.link, 0, options_.ps[0], rounds);
  const Error error = errorOf(link.open());
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_NE(error.message().find("ps/0 (fake:1): this job's parameters and gradients travel as "
                                 "bfloat16, and the other task's version doesn't have it"),
            std::string::npos)
      << error.message();
  open();
}

TEST_F(PsDataLinkTest, WhatAPsRefusesKeepsItsCode) {
  PsDataLink& link = open();
  ps_[0].refusal = Error(ErrorCode::kPermission, "worker/0 was lost");
  const Error error = errorOf(link.pull({}));
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_EQ(error.message(), "worker/0 was lost");
}

}  // namespace
}  // namespace dtf::wire
