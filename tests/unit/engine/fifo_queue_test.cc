#include "common/engine/fifo_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBytesOfOne = FifoQueue::kComponentBytes + sizeof(int32_t);

class FifoQueueTest : public ::testing::Test {
 protected:
  // The outcome of one call, in the order of the replies.
  struct Answer {
    int who = 0;
    std::vector<int32_t> elements;
    std::optional<Error> error;
  };

  void TearDown() override { queue_.reset(); }  // cancels the calls that still wait

  FifoQueue::Elements elements(const std::vector<int32_t>& values) {
    FifoQueue::Elements made;
    for (const int32_t value : values) {
      made.push_back(queue_.newElement());
      made.back().components.at(0).as<int32_t>()[0] = value;
    }
    return made;
  }
  FifoQueue::Done answered(int who) {
    return [this, who](FifoQueue::Outcome outcome) {
      Answer answer{who, {}, std::nullopt};
      if (const Error* const error = std::get_if<Error>(&outcome)) {
        answer.error = *error;
      } else {
        for (const FifoQueue::Element& element : std::get<FifoQueue::Elements>(outcome))
          answer.elements.push_back(element.components.at(0).as<int32_t>()[0]);
      }
      answers_.push_back(answer);
    };
  }
  FifoQueue::Wait put(int who, const std::vector<int32_t>& values) {
    return queue_.enqueue(elements(values), answered(who));
  }
  FifoQueue::Wait take(int who, size_t count = 1) { return queue_.dequeue(count, answered(who)); }

  // Returns the callers that got a reply since the last call.
  std::vector<int> who() {
    std::vector<int> all;
    for (const Answer& answer : std::exchange(answers_, {})) all.push_back(answer.who);
    return all;
  }
  // Takes elements for a caller that needn't wait; others may get replies, too.
  std::vector<int32_t> taken(int by, size_t count = 1) {
    EXPECT_EQ(take(by, count), 0u);
    for (const Answer& answer : std::exchange(answers_, {}))
      if (answer.who == by) return answer.elements;
    return {};
  }
  std::string refusal() {
    EXPECT_EQ(answers_.size(), 1u);
    const std::optional<Error> error = std::exchange(answers_, {}).at(0).error;
    if (!error) return "no error";
    return std::string(errorCodeName(error->code())) + ": " + error->message();
  }

  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(20 * kBytesOfOne, "worker/0");
  FifoQueue queue_{"jobs", {{{DType::kInt32, {}}}, 3}, budget_};
  std::vector<Answer> answers_;
};

TEST_F(FifoQueueTest, FirstInIsFirstOut) {
  EXPECT_EQ(put(1, {10}), 0u);
  EXPECT_EQ(put(2, {20, 30}), 0u);
  EXPECT_THAT(who(), ElementsAre(1, 2));
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_THAT(taken(3), ElementsAre(10));
  EXPECT_THAT(taken(4, 2), ElementsAre(20, 30));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(FifoQueueTest, WhoWaitsIsServedInHisOrder) {
  for (const int each : {1, 2, 3}) EXPECT_NE(take(each), 0u);
  EXPECT_THAT(who(), IsEmpty());
  put(4, {10, 20});
  EXPECT_THAT(who(), ElementsAre(4, 1, 2));
  put(5, {30, 40, 50, 60});
  EXPECT_THAT(who(), ElementsAre(3, 5));
  put(6, {70});
  put(7, {80});
  EXPECT_THAT(who(), IsEmpty());
  EXPECT_THAT(taken(8), ElementsAre(40)) << "6 was let in after that";
  EXPECT_EQ(queue_.size(), 3u);
}

// The calls behind it wait, however few elements they want.
TEST_F(FifoQueueTest, TheFirstHoldsUpThoseAfterHim) {
  take(1, 3);
  take(2, 1);
  put(3, {10, 20});
  EXPECT_THAT(who(), ElementsAre(3));
  put(4, {30, 40});
  EXPECT_THAT(who(), ElementsAre(1, 4, 2));
}

TEST_F(FifoQueueTest, ABatchEntersAsThereIsRoomAndLeavesAsAWhole) {
  const FifoQueue::Wait batch = put(1, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_NE(batch, 0u);
  put(2, {9});
  EXPECT_THAT(taken(3, 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_THAT(taken(4, 2), ElementsAre(4, 5));
  take(5, 3);
  EXPECT_THAT(who(), ElementsAre(5, 2)) << "he has the rest of the batch, so that 9 is in";
  EXPECT_THAT(taken(6), ElementsAre(9));
}

TEST_F(FifoQueueTest, WhoGivesUpTakesNothingAndLetsTheNextGoOn) {
  const FifoQueue::Wait first = take(1, 3);
  take(2, 1);
  put(3, {10});
  EXPECT_THAT(who(), ElementsAre(3));
  queue_.cancel(first);
  EXPECT_THAT(who(), ElementsAre(2));
  EXPECT_EQ(queue_.size(), 0u);
  queue_.cancel(first);  // no effect
  put(4, {1, 2, 3, 4});
  put(5, {5});
  const FifoQueue::Wait late = put(6, {6});
  queue_.cancel(late);
  EXPECT_THAT(taken(7, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(taken(8, 2), ElementsAre(4, 5)) << "what was given up never enters";
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(FifoQueueTest, WhatABatchHasPutInStaysWhenItGivesUp) {
  const FifoQueue::Wait batch = put(1, {1, 2, 3, 4});
  put(2, {5});
  queue_.cancel(batch);
  EXPECT_THAT(taken(3, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(taken(4), ElementsAre(5));
}

TEST_F(FifoQueueTest, AClosedQueueLetsOutWhatItHas) {
  put(1, {10});
  queue_.close(false);
  who();
  put(2, {20});
  EXPECT_EQ(refusal(), "out_of_range: the queue 'jobs' is closed: nothing enters it any more");
  take(3, 3);
  EXPECT_EQ(refusal(), "out_of_range: the queue 'jobs' is closed and has 1 of 3 elements");
  EXPECT_THAT(taken(4), ElementsAre(10));
  take(5);
  EXPECT_EQ(refusal(), "out_of_range: the queue 'jobs' is closed and has 0 of 1 elements");
  queue_.close(true);  // again
}

TEST_F(FifoQueueTest, ClosingWakesWhoWaitsForElementsInVain) {
  take(1, 2);
  take(2, 1);
  put(3, {10});
  who();
  queue_.close(false);
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_[0].error->code(), ErrorCode::kOutOfRange);
  EXPECT_THAT(answers_[1].elements, ElementsAre(10)) << "the next one can be served";
}

TEST_F(FifoQueueTest, WhatWaitsToEnterAClosedQueueStillDoesUnlessItIsCancelled) {
  put(1, {1, 2, 3, 4});
  put(2, {5});
  queue_.close(false);
  EXPECT_THAT(who(), IsEmpty());
  EXPECT_THAT(taken(3, 2), ElementsAre(1, 2));
  EXPECT_THAT(taken(4, 3), ElementsAre(3, 4, 5));

  queue_.reset();
  put(5, {1, 2, 3, 4});
  put(6, {5});
  queue_.close(true);
  ASSERT_EQ(answers_.size(), 2u);
  for (const Answer& answer : std::exchange(answers_, {})) {
    EXPECT_EQ(answer.error->code(), ErrorCode::kOutOfRange);
    EXPECT_THAT(answer.error->message(), HasSubstr("closed before there was room"));
  }
  EXPECT_THAT(taken(7, 3), ElementsAre(1, 2, 3)) << "what was in stays";
}

TEST_F(FifoQueueTest, AResetQueueIsAsNew) {
  put(1, {1, 2, 3, 4});
  queue_.close(false);
  queue_.reset();
  EXPECT_THAT(refusal(), HasSubstr("unavailable: the container of the queue 'jobs' was reset"));
  EXPECT_TRUE(queue_.isEmptyAndOpen());
  EXPECT_EQ(budget_->taken(), 0u);
  take(2);
  queue_.reset();
  EXPECT_THAT(refusal(), HasSubstr("was reset"));
  put(3, {7});
  EXPECT_THAT(who(), ElementsAre(3));
}

TEST_F(FifoQueueTest, ElementsCountTheirBytes) {
  put(1, {1, 2, 3, 4});
  EXPECT_EQ(budget_->taken(), 4 * kBytesOfOne) << "those that wait, too";
  EXPECT_EQ(queue_.bytes(), 3 * kBytesOfOne);
  const std::vector<int32_t> many(17);
  EXPECT_THAT(errorText([&] { elements(many); }), HasSubstr("an element of the queue 'jobs'"));
  EXPECT_EQ(budget_->taken(), 4 * kBytesOfOne);
  taken(2, 3);
  EXPECT_EQ(budget_->taken(), kBytesOfOne);
}

TEST_F(FifoQueueTest, ThoseWhoWaitAreBounded) {
  std::vector<FifoQueue::Wait> waits;
  for (size_t i = 0; i < FifoQueue::kWaitsMax; ++i) waits.push_back(take(1));
  EXPECT_EQ(take(2), 0u);
  EXPECT_THAT(refusal(), HasSubstr("unavailable: the queue 'jobs' is waited for by 65536"));
  EXPECT_EQ(put(3, {1}), 0u) << "he need not wait";
  EXPECT_THAT(who(), ElementsAre(3, 1));
  EXPECT_NE(take(4), 0u) << "there is a place again";
  for (const FifoQueue::Wait wait : waits) queue_.cancel(wait);
  EXPECT_THAT(answers_, IsEmpty());
  put(5, {2});
  EXPECT_THAT(who(), ElementsAre(5, 4));
}

TEST_F(FifoQueueTest, ThoseWhoWaitForRoomAreBoundedByThemselves) {
  FifoQueue full("full", {{{DType::kUInt8, {}}}, 1}, ByteBudget::create(1 << 30, "worker/0"));
  const auto put = [&](int who) {
    FifoQueue::Elements one;
    one.push_back(full.newElement());
    return full.enqueue(std::move(one), [this, who](const FifoQueue::Outcome& outcome) {
      const Error* const error = std::get_if<Error>(&outcome);
      answers_.push_back({who, {}, error == nullptr ? std::nullopt : std::optional(*error)});
    });
  };
  put(0);
  who();
  for (size_t i = 0; i < FifoQueue::kWaitsMax; ++i) ASSERT_NE(put(1), 0u);
  EXPECT_EQ(put(2), 0u);
  EXPECT_THAT(refusal(), HasSubstr("the queue 'full' is waited for by 65536"));
  full.dequeue(1, [](const FifoQueue::Outcome&) {});
  EXPECT_THAT(who(), ElementsAre(1)) << "who takes need not wait, and lets one in";
  full.reset();
  EXPECT_EQ(answers_.size(), FifoQueue::kWaitsMax - 1);
}

// A client may send any shape; no budget has room for such an element.
TEST_F(FifoQueueTest, AnElementBeyondAllBoundsIsRefused) {
  for (const int64_t wide : {int64_t{1} << 60, int64_t{1} << 61}) {
    const graph::TensorSpec component{DType::kInt64, {wide}};
    FifoQueue queue("wide", {{component, component}, 1}, budget_);
    EXPECT_THAT(errorText([&] { queue.newElement(); }), HasSubstr("an element of the queue"));
  }
}

TEST_F(FifoQueueTest, EachComponentOfAnElementIsCounted) {
  FifoQueue wide("wide", {{{DType::kUInt8, {}}, {DType::kFloat32, {2}}}, 1}, budget_);
  const FifoQueue::Element element = wide.newElement();
  EXPECT_EQ(budget_->taken(), 2 * FifoQueue::kComponentBytes + 1 + 8);
}

// A callback may call the queue again at once.
TEST_F(FifoQueueTest, IsCalledFromWithinItsCallbacks) {
  int left = 10;
  std::function<void()> again = [&] {
    if (left-- == 0) return;
    queue_.enqueue(elements({left}), [](FifoQueue::Outcome) {});
    queue_.dequeue(1, [&](FifoQueue::Outcome) { again(); });
  };
  again();
  EXPECT_EQ(left, -1);
}

TEST_F(FifoQueueTest, NoElementIsLostOrDoubledBetweenThreads) {
  constexpr int kEach = 2000;
  std::atomic<int64_t> sum{0};
  std::atomic<int> done{0}, in_flight{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        while (in_flight >= 8) std::this_thread::yield();  // the budget's room
        ++in_flight;
        queue_.enqueue(elements({t * kEach + i}), [](FifoQueue::Outcome) {});
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        queue_.dequeue(1, [&](FifoQueue::Outcome outcome) {
          sum += std::get<FifoQueue::Elements>(outcome)[0].components[0].as<int32_t>()[0];
          --in_flight;
          ++done;
        });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 2 * kEach);
  EXPECT_EQ(sum, int64_t{2} * kEach * (2 * kEach - 1) / 2);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(budget_->taken(), 0u);
}

}  // namespace
}  // namespace dtf::engine
