#include "common/wire/session/part_codec.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/graph/builder.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"
#include "common/net/reactor.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::wire {
namespace {

using engine::TaskPart;
using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TaskId kSelf{JobKind::kWorker, 1}, kOther{JobKind::kPs, 0};

// A part and its message.
struct Coded {
  explicit Coded(TaskPart of)
      : part(std::make_shared<TaskPart>(std::move(of))),
        pipe(kj::newTwoWayPipe()),
        stream(net::wrapStream(kj::mv(pipe.ends[0]))),
        root(message.initRoot<schema::Part>()) {
    encodePart(part, {{kOther, {9}}}, *stream, root);
  }
  net::Reactor reactor;
  std::shared_ptr<TaskPart> part;
  kj::TwoWayPipe pipe;
  kj::Own<net::MessageStream> stream;
  capnp::MallocMessageBuilder message;
  schema::Part::Builder root;
};

TaskPart empty(graph::Graph graph) {
  return {.task = kSelf,
          .graph = std::move(graph),
          .fetches = {},
          .feeds = {},
          .folded = {},
          .edges = {},
          .edges_total = 0};
}

// A part with all kinds of attributes, a control edge, a value and an edge.
TaskPart makePart() {
  TaskPart part = empty(graph::Graph(graph::standardOps()));
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
  const Output x = b.placeholder("x", DType::kFloat32, {4, 3});
  const Output c = b.placeholder("c", DType::kInt32, {2});
  const Output y = b.scale(b.slice(x, {1, 0}, {2, 3}), 0.25);
  const graph::NodeId sent = b.node(
      "_Send", {y}, {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{2, 3}}},
      "sent", {c.node});
  part.fetches = {y, c};
  part.feeds = {"x"};
  part.folded.emplace("c", Tensor(DType::kInt32, {2}));
  part.folded.at("c").as<int32_t>()[1] = -7;
  part.edges = {{sent, 2, kOther}};
  part.edges_total = 3;
  return part;
}

TEST(PartCodec, APartComesBackAsItWas) {
  const Coded coded(makePart());
  const DecodedPart decoded = decodePart(coded.root.asReader());
  EXPECT_EQ(engine::digestOf(decoded.part), engine::digestOf(*coded.part));
  EXPECT_EQ(decoded.peers, std::vector<Incarnation>{{9}});
  EXPECT_EQ(decoded.part.folded.at("c").as<int32_t>()[1], -7);
  EXPECT_EQ(decoded.bytes, 4 * (12 + 2 + 6 + 6u));
}

TEST(PartCodec, SoDoRandomGraphs) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    auto drawn = graph::testing::makeRandomGraph(random, 40, {"/cpu:0", "/cpu:1", "/task:1"});
    const Coded coded(empty(std::move(drawn.graph)));
    EXPECT_EQ(engine::digestOf(decodePart(coded.root.asReader()).part),
              engine::digestOf(*coded.part));
  }
}

TEST(PartCodec, WhatIsOutOfBoundsIsRefusedByNode) {
  const auto refusal = [](const std::function<void(schema::Part::Builder)>& change) {
    Coded coded(makePart());
    change(coded.root);
    return errorText([&] { decodePart(coded.root.asReader()); });
  };
  const uint32_t scale = 3;
  EXPECT_EQ(refusal([](auto) {}), "");
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].setOp("Mystery"); }),
              AllOf(HasSubstr("'Scale'"), HasSubstr("Mystery")));
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].setName("x"); }), HasSubstr("'x'"));
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].setDevice(1); }),
              AllOf(HasSubstr("'Scale'"), HasSubstr("device")));
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].getInputs()[0].setNode(scale); }),
              AllOf(HasSubstr("'Scale'"), HasSubstr("does not exist")));
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].getInputs()[0].setNode(1U << 31); }),
              HasSubstr("2147483648"));
  EXPECT_THAT(refusal([](auto part) { part.getNodes()[scale].getInputs()[0].setIndex(1); }),
              HasSubstr("does not exist"));
  EXPECT_THAT(refusal([](auto part) {
                part.getNodes()[0].getAttributes()[1].getValue().initShape(1).set(0,
                                                                                  int64_t{1} << 50);
              }),
              AllOf(HasSubstr("'x'"), HasSubstr("most of one tensor")));
  EXPECT_THAT(
      refusal([](auto part) { part.getNodes()[0].getAttributes()[0].getValue().setDtype(9); }),
      AllOf(HasSubstr("'x'"), HasSubstr("element type 9")));
  EXPECT_THAT(refusal([](auto part) {
                part.getNodes()[scale].setName(std::string(kNameBytesMax + 1, 'n'));
              }),
              HasSubstr("4097"));
  EXPECT_THAT(refusal([](auto part) {
                const char name[] = {'c', '\0', 'x'};  // beside 'c'
                std::copy_n(name, 3, part.getNodes()[scale].initName(3).begin());
              }),
              HasSubstr("zero byte"));
  EXPECT_THAT(refusal([](auto part) { part.getFeeds().set(0, 99); }), HasSubstr("no node 99"));
  EXPECT_THAT(refusal([](auto part) { part.getFolded()[0].getValue().getShape().set(0, 3); }),
              AllOf(HasSubstr("'c'"), HasSubstr("8 bytes instead of 12")));
  EXPECT_THAT(refusal([](auto part) { part.getEdges()[0].setNode(99); }), HasSubstr("no node 99"));
  EXPECT_THAT(refusal([](auto part) { part.setEdgesTotal(kEdgesMax + 1); }), HasSubstr("edges"));
  EXPECT_THAT(refusal([](auto part) { part.initNodes(kNodesMax + 1); }), HasSubstr("100001"));
}

// Functions within functions, `depth` deep, with a While around them.
TaskPart withFunctions(int depth) {
  const graph::TensorSpec spec{DType::kFloat32, {2}};
  graph::FunctionRef function = graph::Function::build(
      graph::standardOps(), std::array{spec},
      [](graph::Builder& b, std::span<const Output> p) { return std::vector{b.tanh(p[0])}; });
  const auto looped = [&](graph::Builder& b, Output x) {
    return b
        .whileLoop({.carried = {x},
                    .sequences = {},
                    .captured = {},
                    .body = function,
                    .cond = nullptr,
                    .max_iterations = 2,
                    .keep_carried = true})
        .carried;
  };
  for (int level = 1; level < depth; ++level)
    function = graph::Function::build(
        graph::standardOps(), std::array{spec},
        [&](graph::Builder& b, std::span<const Output> p) { return looped(b, p[0]); });
  TaskPart part = empty(graph::Graph(graph::standardOps()));
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
  part.fetches = looped(b, b.constant({2}, 1));
  return part;
}

TEST(PartCodec, FunctionsComeBackAsTheyWere) {
  std::set<uint64_t> digests;
  uint64_t bytes = 0;
  for (int depth = 1; depth <= graph::Function::kDepthMax; ++depth) {
    const Coded coded(withFunctions(depth));
    const DecodedPart decoded = decodePart(coded.root.asReader());
    EXPECT_EQ(engine::digestOf(decoded.part), engine::digestOf(*coded.part));
    digests.insert(engine::digestOf(decoded.part));
    EXPECT_GT(decoded.bytes, bytes) << "what a body's tensors take counts";
    EXPECT_EQ(decoded.nodes, 2u * static_cast<uint64_t>(depth) + 2) << "and each of its nodes";
    bytes = decoded.bytes;
  }
  EXPECT_EQ(digests.size(), static_cast<size_t>(graph::Function::kDepthMax));
}

TEST(PartCodec, MistakesInAFunctionNameItsNodeAndTheOneThatCallsIt) {
  const auto refusal = [](const std::function<void(schema::Part::Function::Builder)>& change) {
    Coded coded(withFunctions(1));
    for (auto attribute : coded.root.getNodes()[1].getAttributes())
      if (attribute.getName() == "body") change(attribute.getValue().getFunction());
    return errorText([&] { decodePart(coded.root.asReader()); });
  };
  EXPECT_EQ(refusal([](auto) {}), "");
  EXPECT_THAT(
      refusal([](auto body) { body.getNodes()[1].setOp("Mystery"); }),
      AllOf(HasSubstr("node 'While', its attribute 'body': node 'Tanh'"), HasSubstr("Mystery")));
  EXPECT_THAT(refusal([](auto body) { body.getResults()[0].setNode(2); }),
              HasSubstr("node 'While', its attribute 'body': a function has a result that no node "
                        "of it makes"));
  EXPECT_THAT(refusal([](auto body) { body.getParameters().set(0, 1); }),
              HasSubstr("'body': a function has a parameter that is no Placeholder"));
  EXPECT_THAT(refusal([](auto body) { body.initResults(kInputsMax + 1); }),
              HasSubstr("node 'While', its attribute 'body', its results"));
}

// No client of dtf sends such functions.
TEST(PartCodec, FunctionsThatNestTooDeepAreRefused) {
  Coded outer(withFunctions(1));
  capnp::MallocMessageBuilder message;
  const auto inner = message.initRoot<schema::Part>();
  encodePart(std::make_shared<TaskPart>(withFunctions(graph::Function::kDepthMax)), {},
             *outer.stream, inner);
  for (auto attribute : outer.root.getNodes()[1].getAttributes())
    if (attribute.getName() == "body")
      attribute.getValue().getFunction().setNodes(inner.asReader().getNodes());
  EXPECT_THAT(errorText([&] { decodePart(outer.root.asReader()); }),
              HasSubstr("calls functions more than 8 deep"));
}

// Each Gather adds the dimensions of its table to its indices': no attribute shows the rank.
TEST(PartCodec, RanksAreBounded) {
  TaskPart part = empty(graph::Graph(graph::standardOps()));
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
  const Output table = b.constant(Shape(std::vector<int64_t>(9, 1)), 0);
  Output indices = table;
  for (int i = 0; i < 3; ++i) indices = {b.node("Gather", {table, indices})};
  const Coded coded(std::move(part));
  EXPECT_THAT(errorText([&] { decodePart(coded.root.asReader()); }),
              AllOf(HasSubstr("'Gather'"), HasSubstr("of rank 17; the bound is 16")));
}

}  // namespace
}  // namespace dtf::wire
