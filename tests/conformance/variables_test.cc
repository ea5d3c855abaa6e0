// Ops that read and assign variables, over tasks of this process and over tasks that serve on real
// sockets: the values that a step sees, sharing between sessions, concurrent assignments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/engine/session.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::NodeId;
using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::filled;
using testing::floats;
using ::testing::HasSubstr;
using testing::kPs0;
using testing::kWorker0;
using testing::kWorker1;
using testing::nameOf;
using testing::SessionHarness;

// True: over sockets. ps/0 has the variables unless a test places them elsewhere.
class VariablesSuite : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Session> open(const graph::Graph& graph) {
    return std::make_unique<Session>(graph, harness_.connect());
  }
  std::unique_ptr<Session> open() { return open(graph_); }
  static std::vector<float> run(Session& session, const std::vector<Feed>& feeds,
                                const std::vector<std::string>& fetches,
                                const std::vector<std::string>& targets = {}) {
    std::vector<float> firsts;
    for (const Tensor& value : session.run(feeds, fetches, targets))
      firsts.push_back(value.as<float>()[0]);
    return firsts;
  }
  auto on(const char* device) { return b_.deviceScope(device); }
  static Output addVariable(graph::Builder& b, const std::string& name, Shape shape,
                            const std::string& container = "",
                            const char* device = "/job:ps/task:0") {
    const auto there = b.deviceScope(device);
    return {b.node("Variable", {},
                   {{"shape", std::move(shape)},
                    {"initializer", std::string("zeros")},
                    {"container", container}},
                   name)};
  }
  Output variable(const std::string& name, Shape shape) {
    return addVariable(b_, name, std::move(shape));
  }
  // A node that runs after `before`.
  Output act(const char* op, std::vector<Output> inputs, const std::string& name,
             std::vector<NodeId> before = {}) {
    return {b_.node(op, std::move(inputs), {}, name, std::move(before))};
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  SessionHarness harness_{GetParam(),
                          {graph::fullDevice(kWorker0), graph::fullDevice(kWorker0, "CPU", 1),
                           graph::fullDevice(kWorker1), graph::fullDevice(kPs0)}};
};

INSTANTIATE_TEST_SUITE_P(Tasks, VariablesSuite, ::testing::Bool(), nameOf);

TEST_P(VariablesSuite, AStepSeesWhatControlEdgesOrder) {
  const Output w = variable("w", {1});
  const Output add = act("AssignAdd", {w, b_.constant({1}, 3)}, "add");
  const Output between = act("ReadVariable", {w}, "between", {add.node});
  const Output sub = act("AssignSub", {w, b_.constant({1}, 1)}, "sub", {between.node});
  act("ReadVariable", {w}, "end", {sub.node});
  const std::vector<std::string> fetches = {"w", "add", "between", "sub", "end"};
  const auto session = open();
  session->setVariable("w", filled({1}, 2));
  EXPECT_THAT(run(*session, {}, fetches), ElementsAre(2, 5, 5, 4, 4));
  EXPECT_THAT(run(*session, {}, fetches), ElementsAre(4, 7, 7, 6, 6));
  EXPECT_THAT(run(*session, {}, {"w"}), ElementsAre(6));
  EXPECT_THAT(run(*session, {}, {"add", "between"}), ElementsAre(9, 9)) << "sub isn't needed";
  EXPECT_THAT(run(*session, {}, {"w"}, {"sub"}), ElementsAre(9)) << "as the step began";
  EXPECT_THAT(run(*session, {}, {"w"}), ElementsAre(11));
}

// A value leaves the ps, is computed with on a worker, and comes back.
TEST_P(VariablesSuite, DataOrdersAcrossTasks) {
  const Output w = variable("w", {1});
  const Output add = act("AssignAdd", {w, b_.placeholder("x", DType::kFloat32, {1})}, "add");
  Output ten;
  {
    const auto there = on("/job:worker/task:1");
    ten = b_.scale(add, 10);
  }
  const Output set = act("Assign", {w, ten}, "set");
  act("ReadVariable", {w}, "end", {set.node});
  const auto session = open();
  session->setVariable("w", filled({1}, 1));
  const Tensor two = filled({1}, 2);
  EXPECT_THAT(run(*session, {{"x", &two}}, {"end", "w", "add"}), ElementsAre(30, 1, 3));
  EXPECT_THAT(run(*session, {{"x", &two}}, {"end", "w", "add"}), ElementsAre(320, 30, 32));
}

TEST_P(VariablesSuite, AnAssignmentIsWhatGivesAVariableItsFirstValue) {
  const Output w = variable("w", {2});
  act("Assign", {w, b_.constant({2}, 4)}, "init");
  act("AssignAdd", {w, b_.constant({2}, 1)}, "add");
  const auto session = open();
  for (const char* const fetch : {"add", "w"})
    EXPECT_THAT(errorText([&] { run(*session, {}, {fetch}); }),
                HasSubstr("the variable 'w' has no value yet"));
  EXPECT_THAT(run(*session, {}, {}, {"init"}), ElementsAre());
  EXPECT_THAT(run(*session, {}, {"add"}), ElementsAre(5));
  EXPECT_THAT(run(*session, {}, {"w"}), ElementsAre(5));
}

TEST_P(VariablesSuite, RowsAreAddedOneAfterTheOtherAndTheLastUpdateStays) {
  const Output table = variable("table", {3, 2});
  const Output indices = b_.placeholder("indices", DType::kInt32, {3});
  const Output updates = b_.placeholder("updates", DType::kFloat32, {3, 2});
  act("ScatterAdd", {table, indices, updates}, "add");
  act("ScatterUpdate", {table, indices, updates}, "update");
  const auto session = open();
  session->setVariable("table", filled({3, 2}, 1));
  Tensor rows(DType::kInt32, {3});
  const auto feed = [&](int32_t a, int32_t b, int32_t c) {
    const std::array<int32_t, 3> all = {a, b, c};
    std::copy(all.begin(), all.end(), rows.as<int32_t>().begin());
  };
  const Tensor values = floats({3, 2}, {1, 2, 10, 20, 100, 200});
  const std::vector<Feed> feeds = {{"indices", &rows}, {"updates", &values}};
  const auto result = [&](const char* fetch) {
    const auto got = session->run(feeds, std::vector<std::string>{fetch});
    return std::vector<float>(got[0].as<float>().begin(), got[0].as<float>().end());
  };
  feed(2, 0, 2);
  EXPECT_THAT(result("add"), ElementsAre(11, 21, 1, 1, 102, 203));
  EXPECT_THAT(result("update"), ElementsAre(10, 20, 1, 1, 100, 200));
  feed(1, 2, 3);
  EXPECT_THAT(errorText([&] { result("add"); }), AllOf(HasSubstr("add"), HasSubstr("3")));
  EXPECT_THAT(errorText([&] { result("update"); }), HasSubstr("update"));
  EXPECT_THAT(result("table"), ElementsAre(10, 20, 1, 1, 100, 200)) << "no row has changed";
}

// A chain of actions over variables on all devices; each takes the result of another one.
TEST_P(VariablesSuite, RandomChainsOfActionsAreWhatTheyAreOneByOne) {
  const std::vector<const char*> devices = {"/job:worker/task:0/cpu:0", "/job:worker/task:0/cpu:1",
                                            "/job:worker/task:1", "/job:ps/task:0"};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    graph::Graph graph(graph::standardOps());
    graph::Builder b(graph);
    std::vector<Output> variables;
    std::vector<float> values;
    for (size_t i = 0; i < devices.size(); ++i) {
      variables.push_back(addVariable(b, "v" + std::to_string(i), {1},
                                      "chain " + std::to_string(seed), devices[i]));
      values.push_back(static_cast<float>(i));
    }
    const std::vector<float> first = values;
    std::vector<std::string> fetches;
    std::vector<float> expected;
    std::vector<NodeId> before;
    Output given = variables[0];
    float given_value = values[0];
    for (int i = 0; i < 12; ++i) {
      const size_t at = random.below(variables.size());
      const Output one = random.below(2) == 0 ? b.constant({1}, 1) : given;
      const float delta = one == given ? given_value : 1;
      const char* const ops[] = {"AssignAdd", "AssignSub", "Assign", "ReadVariable"};
      const size_t op = random.below(4);
      values[at] = op == 0   ? values[at] + delta
                   : op == 1 ? values[at] - delta
                   : op == 2 ? delta
                             : values[at];
      given = {b.node(ops[op],
                      op == 3 ? std::vector{variables[at]} : std::vector{variables[at], one}, {},
                      {}, before)};
      given_value = values[at];
      before = {given.node};
      fetches.push_back(graph.node(given.node).name);
      expected.push_back(given_value);
    }
    const auto session = open(graph);
    for (size_t i = 0; i < first.size(); ++i)
      session->setVariable("v" + std::to_string(i), filled({1}, first[i]));
    EXPECT_THAT(run(*session, {}, fetches), ::testing::ElementsAreArray(expected));
  }
}

TEST_P(VariablesSuite, SessionsShareVariablesOfOneName) {
  variable("w", {1});
  addVariable(b_, "mine", {1}, "a container of its own");
  graph::Graph other_graph(graph::standardOps());
  graph::Builder b(other_graph);
  {
    const auto there = b.deviceScope("/job:ps/task:0");
    b.node("Variable", {},
           {{"shape", Shape{1}},
            {"initializer", std::string("zeros")},
            {"shared_name", std::string("w")}},
           "its_w");
  }
  b.node("AssignAdd", {{other_graph.find("its_w")->id}, b.constant({1}, 1)}, {}, "add");
  addVariable(b, "mine", {1}, "another container");
  const auto one = open(), other = open(other_graph);
  one->setVariable("w", filled({1}, 2));
  EXPECT_THAT(run(*other, {}, {"add"}), ElementsAre(3));
  EXPECT_THAT(run(*one, {}, {"w"}), ElementsAre(3));
  one->setVariable("mine", filled({1}, 10));
  other->setVariable("mine", filled({1}, 20));
  EXPECT_THAT(run(*one, {}, {"mine"}), ElementsAre(10));
  EXPECT_THAT(run(*other, {}, {"mine"}), ElementsAre(20));
}

TEST_P(VariablesSuite, AnotherShapeOfASharedVariableIsRefusedInWords) {
  variable("w", {1});
  graph::Graph other_graph(graph::standardOps());
  graph::Builder b(other_graph);
  addVariable(b, "w", {2});
  const auto one = open(), other = open(other_graph);
  one->setVariable("w", filled({1}, 2));
  const auto words = AllOf(HasSubstr("'w'"), HasSubstr("float32[2]"), HasSubstr("float32[1]"));
  EXPECT_THAT(errorText([&] { run(*other, {}, {"w"}); }), words);
  EXPECT_THAT(errorText([&] { other->setVariable("w", filled({2}, 1)); }), words);
  EXPECT_THAT(run(*one, {}, {"w"}), ElementsAre(2));
}

TEST_P(VariablesSuite, AContainerIsResetForAllSessions) {
  variable("w", {1});
  addVariable(b_, "mine", {1}, "mine");
  const auto one = open();
  for (const char* const name : {"w", "mine"}) one->setVariable(name, filled({1}, 2));
  EXPECT_THAT(run(*one, {}, {"w", "mine"}), ElementsAre(2, 2));
  open()->reset("");
  EXPECT_THAT(errorText([&] { run(*one, {}, {"w"}); }), HasSubstr("'w' has no value yet"));
  EXPECT_THAT(run(*one, {}, {"mine"}), ElementsAre(2));
  one->setVariable("w", filled({1}, 3));
  EXPECT_THAT(run(*one, {}, {"w"}), ElementsAre(3));
}

TEST_P(VariablesSuite, AVariableOutlivesTheSessionThatMadeIt) {
  const Output w = variable("w", {1});
  act("AssignAdd", {w, b_.constant({1}, 1)}, "add");
  {
    const auto session = open();
    session->setVariable("w", filled({1}, 2));
    run(*session, {}, {}, {"add"});
  }
  EXPECT_THAT(run(*open(), {}, {"w"}), ElementsAre(3));
}

// Two clients add, a third reads: no addition is lost, and no value is torn.
TEST_P(VariablesSuite, AssignmentsOfSessionsSideBySideAreWhole) {
  constexpr int kAdditions = 150;
  constexpr int64_t kElements = 1000;
  const Output w = variable("w", {kElements});
  act("AssignAdd", {w, b_.constant({kElements}, 1)}, "add");
  act("ReadVariable", {w}, "read");
  const auto reader = open();
  reader->setVariable("w", filled({kElements}, 0));
  std::atomic<int> wrong{0}, adding{2};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto session = open();
      for (int i = 0; i < kAdditions; ++i) {
        // Adds with and without a fetch that holds the new value.
        if (i % 2 == t) {
          run(*session, {}, {"add"});
        } else {
          run(*session, {}, {}, {"add"});
        }
      }
      --adding;
    });
  }
  while (adding > 0) {
    for (const char* const fetch : {"w", "read"}) {
      const auto got = reader->run({}, std::vector<std::string>{fetch});
      const auto values = got[0].as<float>();
      wrong += static_cast<int>(std::count_if(values.begin(), values.end(),
                                              [&](float value) { return value != values[0]; }));
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(run(*reader, {}, {"w"}), ElementsAre(2 * kAdditions));
}

TEST_P(VariablesSuite, AStepThatFailsLeavesWhatItHasAssigned) {
  const Output w = variable("w", {1}), v = variable("v", {1});
  const Output add = act("AssignAdd", {w, b_.constant({1}, 1)}, "add");
  Output failing;
  {
    const auto there = on("/job:worker/task:1");
    failing = {b_.node("Tanh", {add}, {}, "fails")};
  }
  act("AssignAdd", {v, failing}, "later");
  harness_.act("fails", [] { throw Error(ErrorCode::kBadData, "fantasia!"); });
  const auto session = open();
  for (const char* const name : {"w", "v"}) session->setVariable(name, filled({1}, 5));
  EXPECT_EQ(errorText([&] { run(*session, {}, {"later"}); }), "fantasia!");
  EXPECT_THAT(run(*session, {}, {"w", "v"}), ElementsAre(6, 5));
}

TEST_P(VariablesSuite, MistakesNameTheNode) {
  const Output w = variable("w", {1});
  act("AssignAdd", {w, b_.constant({1}, 1)}, "add");
  const auto session = open();
  const Tensor two = filled({1}, 2);
  EXPECT_THAT(errorText([&] {
                run(*session, {{"w", &two}}, {"add"});
              }),
              AllOf(HasSubstr("'add' (AssignAdd)"), HasSubstr("fed")));
  EXPECT_THAT(errorText([&] {
                act("Assign", {w, b_.constant({2}, 1)}, "set");
              }),
              AllOf(HasSubstr("'set' (Assign)"), HasSubstr("[2]")));
  act("AssignAdd", {b_.constant({1}, 1), w}, "to_a_constant");
  EXPECT_THAT(errorText([&] { open(); }),
              AllOf(HasSubstr("'to_a_constant' (AssignAdd)"), HasSubstr("must be a Variable")));
}

}  // namespace
}  // namespace dtf::engine
