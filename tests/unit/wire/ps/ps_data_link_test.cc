#include "common/wire/ps/ps_data_link.h"

#include <sys/resource.h>

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

// A ps on this host, which shares memory.
class SharingPsTest : public PsDataLinkTest {
 protected:
  static constexpr size_t kBytes = fake::kClusterElements * sizeof(float);

  SharingPsTest() { options_.link.share_from_bytes = 0; }
  ~SharingPsTest() noexcept override {}

  // The next replies name an arena of that value.
  void answerFromMemory(float value) {
    ps_[0].arena = std::make_shared<SharedMemory>(kBytes);
    ps_[0].gives_arena = true;
    std::fill_n(reinterpret_cast<float*>(ps_[0].arena->data()), fake::kClusterElements, value);
  }
  PsDataLink& openOverlapped() {
    link_ = std::make_unique<PsDataLink>(
        loop_, options_.link, 0, options_.ps[0],
        ShardTraffic{.job = {.overlap = true}, .elements = fake::kClusterElements});
    get(link_->open());
    return *link_;
  }
};

TEST_F(SharingPsTest, ReadsTheGradientWhereItIsWritten) {
  PsDataLink& link = open();
  EXPECT_EQ(ps_[0].calls, (std::vector<std::string>{"openDoor", "shareMemory"}));
  ASSERT_EQ(ps_[0].gradient_keys.size(), 1u);
  link.gradients()[15] = 4;
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(ps_[0].gradient, std::vector<float>(link.gradients(), link.gradients() + 16));
  EXPECT_EQ(ps_[0].gradient[15], 4);
}

TEST_F(SharingPsTest, ParametersAreReadWhereThePsHasThem) {
  PsDataLink& link = open();
  answerFromMemory(7);
  get(link.pull({}));
  EXPECT_EQ(link.parameters()[15], 7);
  reinterpret_cast<float*>(ps_[0].arena->data())[15] = 8;
  EXPECT_EQ(link.parameters()[15], 8) << "no copy";
}

// The ps must not write an arena that the worker still reads when it calls.
TEST_F(SharingPsTest, SaysWhichParametersAreInUse) {
  PsDataLink& link = openOverlapped();
  ASSERT_EQ(ps_[0].gradient_keys.size(), 2u);
  answerFromMemory(1);
  const uint64_t first = ps_[0].arena->key();
  get(link.pull({}));
  answerFromMemory(2);
  link.turn();
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(link.parameters()[0], 2);
  get(link.pull({}));
  EXPECT_EQ(ps_[0].in_use, (std::vector<uint64_t>{0, first, first}))
      << "nothing at first; while the exchange went on, and during a pull behind it, the first";
}

TEST_F(SharingPsTest, AnExchangeThatIsWaitedForUsesNothing) {
  PsDataLink& link = open();
  answerFromMemory(1);
  get(link.pull({}));
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  get(link.pull({}));
  EXPECT_EQ(ps_[0].in_use, (std::vector<uint64_t>{0, 0, 0}));
}

// The ps holds the gradient of a batch that is not the last; the worker writes the next one into
// the same arena.
TEST_F(SharingPsTest, GradientsOfSeveralBatchesAStepTravel) {
  PsDataLink& link = open(2);
  EXPECT_TRUE(ps_[0].gradient_keys.empty());
  answerFromMemory(5);
  get(link.pull({}));
  const uint64_t key = ps_[0].arena->key();
  ps_[0].arena = nullptr;
  ps_[0].states.push_back({.outcome = replication::Outcome::kQueued, .next_batch = 1});
  link.gradients()[3] = 9;
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(ps_[0].gradient[3], 9);
  EXPECT_EQ(link.parameters()[0], 5) << "they stay for the second batch";
  EXPECT_EQ(ps_[0].in_use, (std::vector<uint64_t>{0, key}));
}

// The cluster file of the ps forbids it, or the ps is of an earlier version, or the kernel rejects
// it.
TEST_F(SharingPsTest, WhereItIsRefusedArenasTravel) {
  ps_[0].refuses_memory = Error(ErrorCode::kUnavailable, "its cluster file says no");
  PsDataLink& link = open();
  EXPECT_EQ(ps_[0].calls, std::vector<std::string>{"openDoor"});
  link.gradients()[2] = 6;
  ps_[0].parameters.assign(fake::kClusterElements, 3);
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(ps_[0].gradient[2], 6);
  EXPECT_EQ(link.parameters()[0], 3);
}

TEST_F(SharingPsTest, SmallArenasTravel) {
  options_.link.share_from_bytes = kBytes + 1;
  open();
  EXPECT_TRUE(ps_[0].calls.empty());
}

TEST_F(SharingPsTest, NothingIsSharedWhereTheFileSaysSo) {
  cluster::JobSpec job;
  job.cluster.worker.resize(1);
  job.cluster.ps.resize(2);
  EXPECT_EQ(linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1}).share_from_bytes,
            kShareFromBytes);
  job.cluster.shared_memory = false;
  options_.link = linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1});
  EXPECT_EQ(options_.link.share_from_bytes, std::nullopt);
  open();
  EXPECT_TRUE(ps_[0].calls.empty());
}

// The parameters of the previous connection stay: the worker computes with them.
TEST_F(SharingPsTest, IsAskedAnewOnEachConnection) {
  PsDataLink& link = openOverlapped();
  answerFromMemory(1);
  get(link.pull({}));
  const float* before = link.parameters();
  const std::vector<uint64_t> keys = ps_[0].gradient_keys;
  kill(0);
  answerFromMemory(2);
  link.gradients()[0] = 4;
  link.turn();
  const replication::StepState state = get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(state.global_step, 1u);
  EXPECT_EQ(ps_[0].gradient_keys, keys) << "the arenas are where they were";
  EXPECT_EQ(ps_[0].gradient[0], 4);
  EXPECT_EQ(link.parameters()[0], 2);
  EXPECT_EQ(before[0], 1);
}

// Another process of the ps may not share, for example because it has another cluster file.
TEST_F(SharingPsTest, GradientsTravelToASuccessorThatDoesNotShare) {
  PsDataLink& link = open();
  ps_[0].refuses_memory = Error(ErrorCode::kUnavailable, "no");
  kill(0);
  link.gradients()[1] = 2;
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(ps_[0].gradient[1], 2);
}

// The trainer has the address of the gradients, so the link can't move them.
TEST_F(SharingPsTest, GradientsStayWhereTheyAreWhenSharingBeginsLater) {
  ps_[0].refuses_memory = Error(ErrorCode::kUnavailable, "no");
  PsDataLink& link = open();
  const float* gradients = link.gradients();
  ps_[0].refuses_memory.reset();
  kill(0);
  link.gradients()[1] = 2;
  get(link.exchange({0, 0, 0, replication::kFirstEpoch}));
  EXPECT_EQ(link.gradients(), gradients);
  EXPECT_TRUE(ps_[0].gradient_keys.empty());
  EXPECT_EQ(ps_[0].gradient[1], 2);
}

TEST_F(SharingPsTest, ANameWithoutMemoryIsRefused) {
  PsDataLink& link = open();
  answerFromMemory(1);
  ps_[0].gives_arena = false;
  EXPECT_EQ(errorOf(link.pull({})).code(), ErrorCode::kBadData);
  options_.link.share_from_bytes = std::nullopt;
  const Error error = errorOf(open().pull({}));
  EXPECT_EQ(error.message(), "ps/0 (fake:1) names shared memory, but none is shared");
}

TEST_F(SharingPsTest, ASmallerArenaIsRefused) {
  PsDataLink& link = open();
  ps_[0].arena = std::make_shared<SharedMemory>(kBytes - 1);
  EXPECT_EQ(errorOf(link.pull({})).code(), ErrorCode::kBadData);
}

TEST_F(SharingPsTest, ArenasThatAreNoMoreAreUnmapped) {
  PsDataLink& link = open();
  answerFromMemory(1);
  get(link.pull({}));
  EXPECT_EQ(link.TEST_arenasMapped(), 1u);
  ps_[0].gone = {ps_[0].arena->key()};
  answerFromMemory(2);
  get(link.pull({}));
  EXPECT_EQ(link.parameters()[0], 2);
  EXPECT_EQ(link.TEST_arenasMapped(), 1u);
}

// A process may have no descriptor left: it repeats the call on a connection without shared memory.
TEST_F(SharingPsTest, ArenasTravelOnceOneCannotBeMapped) {
  PsDataLink& link = open();
  answerFromMemory(1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  int pulls = 0;
  ps_[0].on_call = [&](const std::string& call) {
    if (call != "pull") return;
    if (++pulls == 1) return void(::setrlimit(RLIMIT_NOFILE, &none));
    ps_[0].arena = nullptr;  // it doesn't share on this connection
    ps_[0].parameters.assign(fake::kClusterElements, 5);
  };
  auto pulled = link.pull({});
  loop_.live(seconds(1));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  get(kj::mv(pulled));
  EXPECT_EQ(pulls, 2);
  EXPECT_EQ(link.parameters()[0], 5);
  EXPECT_FALSE(link.TEST_sharesMemory());
  EXPECT_EQ(std::count(ps_[0].calls.begin(), ps_[0].calls.end(), "openDoor"), 1);
}

}  // namespace
}  // namespace dtf::wire
