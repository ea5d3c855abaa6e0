#include "common/engine/queue_act.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::engine {
namespace {

using graph::NodeId;
using graph::Output;
using ::testing::ElementsAre;

// A queue of pairs: two floats and a number.
class QueueActTest : public ::testing::Test {
 protected:
  QueueAct act(const char* op, std::vector<Output> inputs = {}, graph::Attributes attributes = {}) {
    inputs.insert(inputs.begin(), pairs_);
    return {graph_, graph_.node(b_.node(op, inputs, std::move(attributes), op))};
  }
  FifoQueue::Done keep() {
    return [this](FifoQueue::Outcome outcome) { outcome_ = std::move(outcome); };
  }
  // Returns the result of an action that needn't wait.
  QueueAct::Result result(const QueueAct& act,
                          std::span<const std::span<const std::byte>> inputs = {}) {
    EXPECT_EQ(act.start(queue_, inputs, keep()), 0u);
    return act.finish(std::get<FifoQueue::Elements>(std::exchange(outcome_, std::nullopt).value()));
  }
  std::array<std::span<const std::byte>, 2> bytes(size_t elements) const {
    return {std::as_bytes(std::span(floats_).first(2 * elements)),
            std::as_bytes(std::span(numbers_).first(elements))};
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  const Output pairs_{b_.node("FIFOQueue", {},
                              {{"component_types", std::string("float32,int32")},
                               {"shapes", std::string("[2],[]")},
                               {"capacity", int64_t{3}}},
                              "pairs")};
  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(1 << 20, "worker/0");
  FifoQueue queue_{"pairs", graph::queueSpec(graph_.node(pairs_.node)), budget_};
  std::array<float, 6> floats_{1, 2, 3, 4, 5, 6};
  std::array<int32_t, 3> numbers_{10, 20, 30};
  std::optional<FifoQueue::Outcome> outcome_;
};

TEST_F(QueueActTest, RowsOfABatchAreElementsAndElementsRows) {
  const QueueAct put_all =
      act("QueueEnqueueMany", {b_.constant({3, 2}, 0), b_.constant({3}, 0, DType::kInt32)});
  EXPECT_TRUE(result(put_all, bytes(3)).outputs.empty());
  floats_.fill(0);  // the queue has copied them
  const QueueAct::Result first = result(act("QueueDequeue"));
  ASSERT_EQ(first.outputs.size(), 2u);
  EXPECT_THAT(first.outputs[0].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(first.outputs[1].as<int32_t>(), ElementsAre(10));
  const uint64_t before = budget_->taken();
  {
    const QueueAct::Result rest = result(act("QueueDequeueMany", {}, {{"n", int64_t{2}}}));
    EXPECT_EQ(rest.outputs[0].shape(), (Shape{2, 2}));
    EXPECT_THAT(rest.outputs[0].as<float>(), ElementsAre(3, 4, 5, 6));
    EXPECT_THAT(rest.outputs[1].as<int32_t>(), ElementsAre(20, 30));
    EXPECT_EQ(budget_->taken(), before) << "counted as long as it is held";
  }
  EXPECT_LT(budget_->taken(), before);
}

TEST_F(QueueActTest, TheSizeIsThatOfNow) {
  const QueueAct put =
      act("QueueEnqueue", {b_.constant({2}, 0), b_.constant({}, 0, DType::kInt32)});
  const QueueAct size = act("QueueSize");
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result(size).outputs.at(0).as<int32_t>()[0], i);
    result(put, bytes(1));
  }
}

TEST_F(QueueActTest, CloseCancelsWhatWaitsIfItIsTold) {
  const QueueAct put =
      act("QueueEnqueue", {b_.constant({2}, 0), b_.constant({}, 0, DType::kInt32)});
  for (int i = 0; i < 3; ++i) result(put, bytes(1));
  EXPECT_NE(put.start(queue_, bytes(1), keep()), 0u);
  EXPECT_EQ(put.awaited(queue_),
            "node 'QueueEnqueue' (QueueEnqueue) waits for room for 1 elements in the queue "
            "'pairs', which has 3 of at most 3");
  bool closed = false;
  act("QueueClose", {}, {{"cancel_pending_enqueues", true}})
      .start(queue_, {}, [&](FifoQueue::Outcome) { closed = true; });
  EXPECT_TRUE(closed);
  ASSERT_TRUE(outcome_.has_value());
  EXPECT_EQ(std::get<Error>(*outcome_).code(), ErrorCode::kOutOfRange);
}

TEST_F(QueueActTest, SaysWhatItWaitsFor) {
  const QueueAct take = act("QueueDequeueMany", {}, {{"n", int64_t{2}}});
  EXPECT_EQ(take.op(), "QueueDequeueMany");
  const FifoQueue::Wait wait = take.start(queue_, {}, keep());
  EXPECT_NE(wait, 0u);
  EXPECT_EQ(take.awaited(queue_),
            "node 'QueueDequeueMany' (QueueDequeueMany) waits for 2 elements of the queue 'pairs', "
            "which has 0 of at most 3");
  queue_.cancel(wait);
  EXPECT_FALSE(outcome_.has_value());
}

TEST_F(QueueActTest, ClipsLongNames) {
  const QueueAct take(graph_,
                      graph_.node(b_.node("QueueDequeue", {pairs_}, {}, std::string(4000, 'n'))));
  const FifoQueue queue(std::string(4000, 'q'), queue_.spec(), budget_);
  EXPECT_EQ(take.awaited(queue), "node '" + std::string(64, 'n') +
                                     "..' (QueueDequeue) waits for 1 elements of the queue '" +
                                     std::string(64, 'q') + "..', which has 0 of at most 3");
}

}  // namespace
}  // namespace dtf::engine
