// The link with a ps on this host, see ps_data_link_memory.cc. Remote memory needs a real loop:
// ps_remote_test.cc and tests/conformance/remote_memory_test.cc.

#include <sys/resource.h>

#include <algorithm>

#include "common/wire/ps/ps_data_link.h"
#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using std::chrono::seconds;

// A ps on this host, which shares memory.
class SharingPsTest : public fake::FakeCluster {
 protected:
  static constexpr size_t kBytes = fake::kClusterElements * sizeof(float);

  SharingPsTest() { options_.link.share_from_bytes = 0; }
  ~SharingPsTest() noexcept override {}

  PsDataLink& open(uint32_t batches_per_step = 1) {
    link_ = std::make_unique<PsDataLink>(loop_, options_.link, 0, options_.ps[0],
                                         ShardTraffic{.job = {.batches_per_step = batches_per_step},
                                                      .elements = fake::kClusterElements});
    get(link_->open());
    return *link_;
  }
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
  std::unique_ptr<PsDataLink> link_;
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
