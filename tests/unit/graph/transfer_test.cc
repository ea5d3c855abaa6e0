#include "common/graph/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;

const Transfer kTransfer = {.edge = "x:0",
                            .source_device = "/job:ps/task:1",
                            .reader_device = "/job:worker/task:0",
                            .send_name = "send_x",
                            .recv_name = "recv_x"};

TEST(Transfer, ItsKeyNamesBothDevicesAndTheEdge) {
  EXPECT_EQ(kTransfer.key(), "/job:ps/task:1;/job:worker/task:0;x:0;0:0");
}

TEST(Transfer, ASendAndItsRecvShareKeyTypeAndShape) {
  Graph source(standardOps()), reader(standardOps());
  const Output x = Builder(source).placeholder("x", DType::kInt32, {2, 3});
  const Output arrived = addTransfer(source, x, reader, kTransfer);
  const Node *send = source.find("send_x"), *recv = reader.find("recv_x");
  ASSERT_TRUE(send != nullptr && recv != nullptr);
  EXPECT_EQ(arrived, Output{recv->id});
  EXPECT_EQ(reader.spec(arrived), (TensorSpec{DType::kInt32, {2, 3}}));
  EXPECT_THAT(send->inputs, ElementsAre(x));
  for (const Node* node : {send, recv}) {
    EXPECT_EQ(node->attribute<std::string>("key"), kTransfer.key());
    EXPECT_EQ(node->attribute<DType>("dtype"), DType::kInt32);
    EXPECT_EQ(node->attribute<Shape>("shape"), Shape({2, 3}));
  }
  EXPECT_EQ(send->device, kTransfer.source_device);
  EXPECT_EQ(recv->device, kTransfer.reader_device);
}

TEST(Transfer, ADoneIsAScalarThatWaitsForItsNode) {
  Graph part(standardOps());
  const Output x = Builder(part).placeholder("x", DType::kFloat32, {2});
  const Output done = addDone(part, x.node, "x_done", "/job:ps/task:1");
  const Node& node = part.node(done.node);
  EXPECT_EQ(part.spec(done).shape, Shape());
  EXPECT_THAT(node.control_inputs, ElementsAre(x.node));
  EXPECT_TRUE(node.inputs.empty());
  EXPECT_EQ(node.device, "/job:ps/task:1");
}

TEST(TransferDeathTest, APartDoesNotSendToItself) {
  Graph part(standardOps());
  const Output x = Builder(part).placeholder("x", DType::kFloat32, {2});
  EXPECT_DEATH(addTransfer(part, x, part, kTransfer), "");
}

}  // namespace
}  // namespace dtf::graph
