#include "common/graph/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::errorText;
using ::testing::HasSubstr;

class QueueTest : public ::testing::Test {
 protected:
  Output queue(const std::string& types, const std::string& shapes, int64_t capacity = 4) {
    return {b_.node("FIFOQueue", {},
                    {{"component_types", types}, {"shapes", shapes}, {"capacity", capacity}})};
  }
  std::string refusal(const std::string& types, const std::string& shapes, int64_t capacity = 4) {
    return errorText([&] { queue(types, shapes, capacity); });
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
};

TEST_F(QueueTest, ItsElementsAreWhatItsTextSays) {
  const Output pairs = queue("float32,  int32", " [28, 28] ,[]", 7);
  const QueueSpec expected{{{DType::kFloat32, {28, 28}}, {DType::kInt32, {}}}, 7};
  EXPECT_EQ(queueSpec(graph_.node(pairs.node)), expected);
  EXPECT_EQ(queueSpec(graph_.node(queue("uint8", "[0]").node)).components[0].shape, Shape{0});
  EXPECT_EQ(graph_.spec(pairs).shape.elements(), 0) << "it stands for the queue";
}

TEST_F(QueueTest, MistakesInItsTextAreNamed) {
  EXPECT_THAT(refusal("float", "[2]"), AllOf(HasSubstr("(FIFOQueue)"), HasSubstr("'float'")));
  EXPECT_THAT(refusal("bfloat16", "[2]"), HasSubstr("'bfloat16'"));
  EXPECT_THAT(refusal("", ""), HasSubstr("component_types has ''"));
  EXPECT_THAT(refusal("float32", "[2], []"), HasSubstr("1 component_types and 2 shapes"));
  EXPECT_THAT(refusal("float32", "[2"), HasSubstr("shapes is '[2'"));
  EXPECT_THAT(refusal("float32", "2]"), HasSubstr("shapes is '2]'"));
  EXPECT_THAT(refusal("float32", "[2] []"), HasSubstr("no ','"));
  EXPECT_THAT(refusal("float32", "[2],"), HasSubstr("ends with a ','"));
  EXPECT_THAT(refusal("float32", "[2,]"), HasSubstr("the dimension ''"));
  EXPECT_THAT(refusal("float32", "[2x]"), HasSubstr("the dimension '2x'"));
  EXPECT_THAT(refusal("float32", "[99999999999999999999]"), HasSubstr("the dimension"));
  EXPECT_THAT(refusal("float32", "[-1]"), HasSubstr("negative"));
  for (const int64_t capacity : {0, -1})
    EXPECT_THAT(refusal("float32", "[2]", capacity), HasSubstr("the least is 1"));
}

TEST_F(QueueTest, WhatActsOnOneIsToldWhatItsElementsAre) {
  const Output pairs = queue("float32,int32", "[2],[]");
  const Node& put = graph_.node(
      b_.node("QueueEnqueue", {pairs, b_.constant({2}, 1), b_.constant({}, 1, DType::kInt32)}));
  EXPECT_TRUE(put.outputs.empty());
  EXPECT_EQ(put.attribute<std::string>("shapes"), "[2],[]");
  b_.node("QueueEnqueueMany", {pairs, b_.constant({9, 2}, 1), b_.constant({9}, 1, DType::kInt32)});
  const NodeId take = b_.node("QueueDequeue", {pairs});
  EXPECT_EQ(graph_.spec({take, 0}), (TensorSpec{DType::kFloat32, {2}}));
  EXPECT_EQ(graph_.spec({take, 1}), (TensorSpec{DType::kInt32, {}}));
  const NodeId batch = b_.node("QueueDequeueMany", {pairs}, {{"n", int64_t{4}}});
  EXPECT_EQ(graph_.spec({batch, 0}), (TensorSpec{DType::kFloat32, {4, 2}}));
  EXPECT_EQ(graph_.spec({batch, 1}), (TensorSpec{DType::kInt32, {4}}));
  EXPECT_EQ(graph_.spec({b_.node("QueueSize", {pairs})}), (TensorSpec{DType::kInt32, {}}));
  EXPECT_TRUE(graph_.node(b_.node("QueueClose", {pairs})).outputs.empty());
  // As a copy of the node has them.
  b_.node("QueueDequeue", {pairs},
          {{"component_types", std::string("float32,int32")}, {"shapes", std::string("[2],[]")}});
  EXPECT_THAT(errorText([&] {
                b_.node("QueueDequeue", {pairs}, {{"shapes", std::string("[3],[]")}});
              }),
              AllOf(HasSubstr("'[3],[]'"), HasSubstr("'[2],[]'")));
}

TEST_F(QueueTest, ComponentsAreBounded) {
  std::string types = "float32", shapes = "[]";
  for (size_t i = 1; i < kQueueComponentsMax; ++i) {
    types += ",float32";
    shapes += ",[]";
  }
  const Output widest = queue(types, shapes);
  EXPECT_EQ(graph_.node(b_.node("QueueDequeue", {widest})).outputs.size(), kQueueComponentsMax);
  EXPECT_THAT(refusal(types + ",float32", shapes), HasSubstr("more than 64 components"));
  EXPECT_THAT(refusal(types, shapes + ",[]"), HasSubstr("more than 64 components"));
}

// As tensors: an element of two counts twice.
TEST_F(QueueTest, BatchesAreBounded) {
  const int64_t most = kQueueBatchMax / 2;
  const Output pairs = queue("uint8,uint8", "[],[]", kQueueBatchMax);
  const auto take = [&](int64_t n) { b_.node("QueueDequeueMany", {pairs}, {{"n", n}}); };
  const auto put = [&](int64_t n) {
    const Output all = b_.constant({n}, 1, DType::kUInt8);
    b_.node("QueueEnqueueMany", {pairs, all, all});
  };
  take(most);
  put(most);
  const std::string why =
      "its batch has 524289 elements of 2 components; the least is 1, the most ";
  EXPECT_THAT(errorText([&] { take(most + 1); }), HasSubstr(why + "524288"));
  EXPECT_THAT(errorText([&] { put(most + 1); }), HasSubstr(why + "524288"));
}

TEST_F(QueueTest, WhatDoesNotFitIsRefused) {
  const Output numbers = queue("float32", "[]");
  const Output one = b_.constant({}, 1), ones = b_.constant({3}, 1);
  EXPECT_THAT(errorText([&] { b_.node("QueueEnqueue", {numbers}); }), HasSubstr("0 values"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueEnqueue", {numbers, one, one});
              }),
              HasSubstr("2 values for an element of 1"));
  EXPECT_THAT(errorText([&] { b_.node("QueueEnqueue", {numbers, ones}); }), HasSubstr("value 0"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueEnqueueMany", {numbers, one});
              }),
              HasSubstr("[n, ..]"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueEnqueueMany", {numbers, b_.constant({0}, 1)});
              }),
              HasSubstr("its batch has 0 elements of 1 components; the least is 1"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueEnqueueMany", {numbers, b_.constant({kQueueBatchMax + 1}, 1)});
              }),
              HasSubstr("the most 1048576"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueDequeueMany", {numbers}, {{"n", int64_t{0}}});
              }),
              HasSubstr("the least is 1"));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueDequeueMany", {numbers}, {{"n", int64_t{5}}});
              }),
              HasSubstr("never has more than 4"));
}

TEST_F(QueueTest, OnlyWhatActsOnOneReadsIt) {
  const Output numbers = queue("uint8", "[0]");
  EXPECT_THAT(errorText([&] { b_.node("QueueSize", {b_.constant({}, 1)}); }),
              HasSubstr("it must be a FIFOQueue"));
  EXPECT_THAT(errorText([&] { b_.node("QueueEnqueue", {}); }), HasSubstr("must be a FIFOQueue"));
  EXPECT_THAT(errorText([&] { b_.node("Identity", {numbers}); }),
              AllOf(HasSubstr("is the queue 'FIFOQueue'"), HasSubstr("has no value")));
  EXPECT_THAT(errorText([&] {
                b_.node("QueueEnqueue", {numbers, numbers});
              }),
              HasSubstr("its input 1"));
}

TEST_F(QueueTest, ActsAreKnown) {
  const Output numbers = queue("float32", "[]");
  EXPECT_TRUE(isQueue(graph_.node(numbers.node)));
  EXPECT_FALSE(actsOnQueue(graph_.node(numbers.node)));
  for (const auto& [op, waits] : {std::pair{"QueueDequeue", true}, {"QueueSize", false}}) {
    const Node& node = graph_.node(b_.node(op, {numbers}));
    EXPECT_TRUE(actsOnQueue(node)) << op;
    EXPECT_EQ(mayAwaitQueue(node), waits) << op;
  }
}

}  // namespace
}  // namespace dtf::graph
