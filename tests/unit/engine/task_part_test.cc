#include "common/engine/task_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TaskId kPartsTask{JobKind::kWorker, 1}, kOther{JobKind::kPs, 0};

// x, and a value c, are added and sent.
TaskPart makePart() {
  TaskPart part{.task = kPartsTask,
                .graph = graph::Graph(graph::standardOps()),
                .fetches = {},
                .feeds = {"x"},
                .folded = {},
                .edges = {},
                .edges_total = 3};
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kPartsTask).str());
  const Output x = b.placeholder("x", DType::kFloat32, {2});
  const Output c = b.placeholder("c", DType::kFloat32, {2});
  const Output sum = b.add(x, c);
  const graph::NodeId sent =
      b.node("_Send", {sum},
             {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}}, "sent");
  part.fetches = {sum};
  part.folded.emplace("c", Tensor(DType::kFloat32, {2}));
  part.edges = {{sent, 2, kOther}};
  return part;
}

std::string refusal(const std::function<void(TaskPart&)>& change) {
  TaskPart part = makePart();
  change(part);
  return errorText([&] { checkTaskPart(part, kPartsTask, {graph::fullDevice(kPartsTask)}); });
}

TEST(TaskPart, APartThatIsCompleteIsAccepted) {
  EXPECT_EQ(refusal([](TaskPart&) {}), "");
}

// No client of dtf sends such parts.
TEST(TaskPart, AQueueIsOfTheDeviceOfItsActsAndIsNoValue) {
  const auto queued = [](TaskPart& part, const std::string& device) {
    graph::Builder b(part.graph);
    const auto there = b.deviceScope(device);
    return Output{b.node("FIFOQueue", {},
                         {{"component_types", std::string("float32")},
                          {"shapes", std::string("[]")},
                          {"capacity", int64_t{1}}},
                         "jobs")};
  };
  const std::string here = graph::fullDevice(kPartsTask).str();
  const graph::DeviceName other = graph::fullDevice(kPartsTask, "CPU", 1);
  EXPECT_THAT(refusal([&](TaskPart& part) { part.fetches.push_back(queued(part, here)); }),
              AllOf(HasSubstr("'jobs' (FIFOQueue)"), HasSubstr("has no value")));
  TaskPart apart = makePart();
  const Output jobs = queued(apart, other.str());
  graph::Builder b(apart.graph);
  const auto device = b.deviceScope(here);
  b.node("QueueSize", {jobs}, {}, "size");
  EXPECT_THAT(errorText([&] {
                checkTaskPart(apart, kPartsTask, {graph::fullDevice(kPartsTask), other});
              }),
              AllOf(HasSubstr("'size' (QueueSize)"), HasSubstr("no FIFOQueue of its device")));
}

TEST(TaskPart, WhatIsMissingOrToldTwiceIsRefusedByName) {
  EXPECT_THAT(refusal([](TaskPart& part) { part.task = kOther; }),
              AllOf(HasSubstr("for ps/0"), HasSubstr("this is worker/1")));
  EXPECT_THAT(refusal([](TaskPart& part) { part.feeds.clear(); }),
              AllOf(HasSubstr("'x'"), HasSubstr("nothing feeds it")));
  EXPECT_THAT(refusal([](TaskPart& part) { part.feeds.push_back("c"); }),
              AllOf(HasSubstr("'c'"), HasSubstr("a value of its own")));
  EXPECT_THAT(refusal([](TaskPart& part) { part.feeds.push_back("x"); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.feeds.push_back("Add"); }),
              HasSubstr("no placeholder"));
  EXPECT_THAT(refusal([](TaskPart& part) {
                part.folded.insert_or_assign("c", Tensor(DType::kFloat32, {3}));
              }),
              AllOf(HasSubstr("'c'"), HasSubstr("another type or shape")));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges.clear(); }),
              AllOf(HasSubstr("'sent'"), HasSubstr("no edge")));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges.push_back(part.edges[0]); }),
              HasSubstr("more edges"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges[0].number = 3; }), HasSubstr("'sent'"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges[0].peer = kPartsTask; }),
              HasSubstr("where it begins"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.fetches[0].index = 1; }), HasSubstr("fetch"));
  EXPECT_THAT(refusal([](TaskPart& part) {
                part.fetches.push_back({{99}, 0});
              }),
              HasSubstr("fetch"));
  EXPECT_THAT(refusal([](TaskPart& part) { graph::Builder(part.graph).constant({1}, 1); }),
              AllOf(HasSubstr("'Const'"), HasSubstr("doesn't have")));
}

TEST(TaskPart, WhatActsOnSomethingElseThanAVariableOfItsDeviceIsRefused) {
  const auto act = [](bool variable) {
    return refusal([variable](TaskPart& part) {
      graph::Builder b(part.graph);
      const auto device = b.deviceScope(graph::fullDevice(kPartsTask).str());
      const Output on = variable ? b.variable("w", {2}) : Output{part.graph.find("x")->id};
      b.node("AssignAdd", {on, {part.graph.find("x")->id}}, {}, "add");
    });
  };
  EXPECT_EQ(act(true), "");
  EXPECT_THAT(act(false), AllOf(HasSubstr("'add' (AssignAdd)"), HasSubstr("'x' is no Variable")));
}

TEST(TaskPart, EverythingThatItSaysIsInItsDigest) {
  const uint64_t whole = digestOf(makePart());
  EXPECT_EQ(digestOf(makePart()), whole);
  std::set<uint64_t> digests = {whole};
  const std::vector<std::function<void(TaskPart&)>> changes = {
      [](TaskPart& part) { part.task = kOther; },
      [](TaskPart& part) { part.fetches.clear(); },
      [](TaskPart& part) { part.feeds = {"y"}; },
      [](TaskPart& part) { part.folded.at("c").as<float>()[1] = 1; },
      [](TaskPart& part) { part.folded.insert_or_assign("c", Tensor(DType::kInt32, {2})); },
      [](TaskPart& part) { part.edges[0].number = 1; },
      [](TaskPart& part) {
        part.edges[0].peer = {JobKind::kPs, 1};
      },
      [](TaskPart& part) { part.edges_total = 4; },
      [](TaskPart& part) { graph::Builder(part.graph).constant({1}, 1); },
      [](TaskPart& part) { graph::Builder(part.graph).constant({1}, 2); },
      [](TaskPart& part) { graph::Builder(part.graph).constant({2}, 1); },
  };
  for (const auto& change : changes) {
    TaskPart part = makePart();
    change(part);
    EXPECT_TRUE(digests.insert(digestOf(part)).second) << digests.size();
  }
}

}  // namespace
}  // namespace dtf::engine
