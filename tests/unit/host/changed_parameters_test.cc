#include "common/host/changed_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace dtf::host {
namespace {

constexpr uint64_t kNumbers = 2048;

class ChangedParametersTest : public ::testing::Test {
 protected:
  using Version = std::shared_ptr<const arena::ParameterVersion>;

  // A worker's side of the exchange.
  struct Worker {
    uint32_t rank = 0;
    uint64_t base = 0;
    std::vector<float> values = std::vector<float>(kNumbers);
  };

  Version parameters(float value) {
    const std::shared_ptr<arena::ParameterVersion> made = pool_.acquire(0);
    for (uint64_t i = 0; i < kNumbers; ++i)
      made->mutableData()[i] = value + static_cast<float>(i % 37) / 100;
    return made;
  }
  // Answers a call of the worker. Returns whether it was a change.
  bool answer(Worker& worker, const Version& parameters) {
    const auto sent = changed_.changeFor(worker.rank, worker.base, {parameters, epoch_}, *codec_);
    if (sent) {
      codec_->applyChange(sent->part.bytes, worker.values.data(), worker.values.data());
      worker.base = sent->base;
    } else {
      worker.base = changed_.sentWhole(worker.rank, {parameters, epoch_});
      std::copy_n(parameters->data(), kNumbers, worker.values.begin());
    }
    return sent.has_value();
  }
  static double distance(const Worker& worker, const Version& parameters) {
    double most = 0;
    for (uint64_t i = 0; i < kNumbers; ++i)
      most = std::max<double>(most, std::abs(worker.values[i] - parameters->data()[i]));
    return most;
  }

  const std::unique_ptr<const arena::ChangeCodec> codec_ =
      arena::makeChangeCodec(arena::CodecKind::kInt8, kNumbers, {});
  arena::VersionPool pool_{kNumbers, 2};
  ChangedParameters changed_;
  uint64_t epoch_ = 0;
};

TEST_F(ChangedParametersTest, AWorkerGetsAllParametersOnceAndChangesFromThenOn) {
  Worker worker;
  const Version first = parameters(1), second = parameters(2);
  EXPECT_FALSE(answer(worker, first));
  EXPECT_EQ(distance(worker, first), 0);
  EXPECT_TRUE(answer(worker, second));
  EXPECT_LT(distance(worker, second), 0.01);
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(answer(worker, second));
  EXPECT_LT(distance(worker, second), 1e-6) << "an error in one change is part of the next one";
}

TEST_F(ChangedParametersTest, WorkersWithOneBaseGetOneChangeEncodedOnce) {
  Worker a{0}, b{1};
  const Version first = parameters(1), second = parameters(2);
  answer(a, first);
  answer(b, first);
  EXPECT_EQ(a.base, b.base);
  const auto to_a = changed_.changeFor(0, a.base, {second}, *codec_);
  const auto to_b = changed_.changeFor(1, b.base, {second}, *codec_);
  ASSERT_TRUE(to_a && to_b);
  EXPECT_EQ(to_a->base, to_b->base);
  EXPECT_EQ(to_a->part.owner, to_b->part.owner);
}

// A worker that began later has another base; the others' is still one.
TEST_F(ChangedParametersTest, AnotherBaseBetweenThemDoesNotPartTheOthers) {
  Worker first{0}, other{1}, last{2};
  const Version one = parameters(1), two = parameters(2), three = parameters(3);
  answer(first, one);
  answer(last, one);
  answer(first, two);
  answer(last, two);
  answer(other, two);
  for (Worker* worker : {&first, &other, &last}) EXPECT_TRUE(answer(*worker, three));
  EXPECT_EQ(first.base, last.base);
  EXPECT_NE(first.base, other.base);
}

// The parameters of the course that the job has left are no base of the restored ones.
TEST_F(ChangedParametersTest, AfterGoingBackAllParametersAreSent) {
  Worker worker;
  answer(worker, parameters(1));
  const Version forward = parameters(2), restored = parameters(1);
  EXPECT_TRUE(answer(worker, forward));
  ++epoch_;
  EXPECT_FALSE(answer(worker, restored));
  EXPECT_EQ(distance(worker, restored), 0);
  EXPECT_TRUE(answer(worker, parameters(2)));
}

// In async training each worker has parameters of its own.
TEST_F(ChangedParametersTest, WorkersWithTheirOwnBasesStayClose) {
  Worker a{0}, b{1};
  for (float value = 1; value < 20; ++value) {
    const Version now = parameters(value);
    answer(static_cast<int>(value) % 3 == 0 ? b : a, now);
    EXPECT_LT(distance(static_cast<int>(value) % 3 == 0 ? b : a, now), 0.05);
  }
}

// The reply to a call may be lost: the call is repeated with the number of the call before.
TEST_F(ChangedParametersTest, ARepeatedCallGetsAChangeOfTheSameBase) {
  Worker worker;
  answer(worker, parameters(1));
  answer(worker, parameters(2));
  const Version third = parameters(3);
  EXPECT_TRUE(changed_.changeFor(0, worker.base, {third}, *codec_).has_value()) << "and is lost";
  EXPECT_TRUE(answer(worker, parameters(4)));
  EXPECT_LT(distance(worker, parameters(4)), 0.05);
}

TEST_F(ChangedParametersTest, AnUnknownBaseIsAnsweredWithAllParameters) {
  Worker worker;
  const Version first = parameters(1);
  answer(worker, first);
  answer(worker, parameters(2));
  Worker anew{worker.rank};
  EXPECT_FALSE(answer(anew, first)) << "a new process of the worker";
  EXPECT_FALSE(answer(worker, first)) << "the process before it";
  ChangedParameters restarted;
  EXPECT_FALSE(restarted.changeFor(0, anew.base, {first}, *codec_).has_value())
      << "another process of the ps";
  EXPECT_NE(restarted.sentWhole(0, {first}), anew.base);
}

TEST_F(ChangedParametersTest, ABaseOfAnotherModelIsUnknown) {
  Worker worker;
  answer(worker, parameters(1));
  const auto larger = arena::makeChangeCodec(arena::CodecKind::kInt8, 2 * kNumbers, {});
  arena::VersionPool pool{2 * kNumbers, 1};
  EXPECT_FALSE(changed_.changeFor(0, worker.base, {pool.acquire(0)}, *larger).has_value());
}

}  // namespace
}  // namespace dtf::host
