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
