// Shapes and errors of ops on queues. queue_test.cc tests the queues' own attributes.

#include "common/graph/queue.h"
#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::errorText;
using ::testing::HasSubstr;

class StandardQueueOps : public testing::OpTest {
 protected:
  Output queue(const std::string& types, const std::string& shapes, int64_t capacity = 4) {
    return {b_.node("FIFOQueue", {},
                    {{"component_types", types}, {"shapes", shapes}, {"capacity", capacity}})};
  }
};

TEST_F(StandardQueueOps, WhatActsOnOneIsToldWhatItsElementsAre) {
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
  // A copied node has these attributes.
  b_.node("QueueDequeue", {pairs},
          {{"component_types", std::string("float32,int32")}, {"shapes", std::string("[2],[]")}});
  EXPECT_THAT(errorText([&] {
                b_.node("QueueDequeue", {pairs}, {{"shapes", std::string("[3],[]")}});
              }),
              AllOf(HasSubstr("'[3],[]'"), HasSubstr("'[2],[]'")));
}

// Like tensors: an element of two components counts twice.
TEST_F(StandardQueueOps, BatchesAreBounded) {
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

TEST_F(StandardQueueOps, WhatDoesNotFitIsRefused) {
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

TEST_F(StandardQueueOps, OnlyWhatActsOnOneReadsIt) {
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

}  // namespace
}  // namespace dtf::graph
