#include <dtf/session.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>
#include <future>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// y = 2 x + w, on the CPU of this process; "count" adds x to w.
class ApiSession : public ::testing::Test {
 protected:
  ApiSession() {
    const Output x = graph_.placeholder("x", DTF_FLOAT32, {2});
    const Output w = graph_.variable("w", {2});
    graph_.op("Add", {graph_.scale(x, 2), w}, {}, "y");
    graph_.op("AssignAdd", {w, x}, {}, "count");
  }
  static Tensor pair(float a, float b) {
    const std::vector<float> values = {a, b};
    return Tensor::of<float>({2}, values);
  }

  Graph graph_;
  const Tensor x_ = pair(1, 10);
};

TEST_F(ApiSession, GivesWhatIsFetchedOfWhatIsFed) {
  Session session(graph_);
  session.setVariable("w", pair(5, 6));
  const auto values = session.run({{"x", x_}}, {"y", "w"});
  EXPECT_THAT(values.at(0).as<float>(), ElementsAre(7, 26));
  EXPECT_THAT(values.at(1).as<float>(), ElementsAre(5, 6));
  const Tensor doubled = pair(0, 1);
  EXPECT_THAT(session.run({{"Scale:0", doubled}}, {"y"}).at(0).as<float>(), ElementsAre(5, 7))
      << "any tensor can be fed";
}

TEST_F(ApiSession, TargetsRunAndTheirVariablesKeepWhatTheyWereGiven) {
  Session session(graph_);
  session.setVariable("w", pair(0, 0));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(session.run({{"x", x_}}, {}, {"count"}).empty());
  EXPECT_THAT(session.run({}, {"w"}).at(0).as<float>(), ElementsAre(3, 30));
}

TEST_F(ApiSession, TheGraphMayGoAndGrowBehindItsBack) {
  auto graph = std::make_unique<Graph>();
  graph->relu(graph->placeholder("x", DTF_FLOAT32, {2}));
  Session session(*graph);
  graph->op("Relu", {{0, 0}}, {}, "later");
  EXPECT_THAT(refusal([&] { session.run({{"x", x_}}, {"later"}); }), StartsWith("78: "));
  graph.reset();
  EXPECT_THAT(session.run({{"x", x_}}, {"Relu"}).at(0).as<float>(), ElementsAre(1, 10));
}

TEST_F(ApiSession, SaysWhatIsWrong) {
  Session session(graph_);
  EXPECT_THAT(refusal([&] { session.run({}, {"y"}); }), AllOf(StartsWith("78: "), HasSubstr("x")));
  EXPECT_THAT(refusal([&] {
                session.run({{"x", x_}}, {"z"});
              }),
              AllOf(StartsWith("78: "), HasSubstr("z")));
  EXPECT_THAT(refusal([&] {
                session.run({{"x", Tensor(DTF_INT32, {2})}}, {"y"});
              }),
              HasSubstr("'x' is float32[2], but was given int32[2]"));
  EXPECT_THAT(refusal([&] { session.setVariable("x", x_); }), HasSubstr("not a Variable"));
  EXPECT_THAT(refusal([&] {
                session.run({{"x", x_}}, {"y"});
              }),
              HasSubstr("w"))
      << "it has no value yet";
}

TEST_F(ApiSession, ANodeWithoutOutputsIsATargetAsAnyOther) {
  const Output all = graph_.op("NoOp", {}, {}, "all", {graph_.op("Identity", {{1, 0}})});
  Session session(graph_);
  session.setVariable("w", pair(1, 2));
  EXPECT_TRUE(session.run({}, {}, {graph_.name(all)}).empty());
}

TEST_F(ApiSession, AVariableThatWasResetHasNoValue) {
  Session session(graph_);
  session.setVariable("w", pair(1, 2));
  session.reset();
  EXPECT_THAT(refusal([&] { session.run({}, {"w"}); }), StartsWith("78: "));
}

// tests/conformance has steps on other tasks.
TEST_F(ApiSession, AnAbortIsNoConcernOfStepsThatBeginLater) {
  Session session(graph_);
  session.setVariable("w", pair(5, 6));
  session.abort("nobody wants it");
  EXPECT_THAT(session.run({{"x", x_}}, {"y"}).at(0).as<float>(), ElementsAre(7, 26));
}

// Queues of pairs and numbers, of at most four elements, in this process.
class ApiQueues : public ::testing::Test {
 protected:
  ApiQueues() {
    const Output queue = graph_.fifoQueue("jobs", {{DTF_FLOAT32, {2}}, {DTF_INT32, {}}}, 4);
    put_ = graph_.name(
        graph_.enqueue(queue, {graph_.constant({2}, 1.5), graph_.constant({}, 7, DTF_INT32)}));
    put_three_ = graph_.name(graph_.enqueueMany(
        queue, {graph_.constant({3, 2}, 2.5), graph_.constant({3}, 8, DTF_INT32)}));
    one_ = graph_.dequeue(queue);
    three_ = graph_.dequeueMany(queue, 3);
    size_ = graph_.name(graph_.queueSize(queue));
    close_ = graph_.name(graph_.closeQueue(queue, true));
  }
  static dtf_session_options hasty() {
    dtf_session_options options = Session::defaults();
    options.step_seconds = 0.01;
    return options;
  }
  int32_t size(Session& session) { return session.run({}, {size_}).at(0).as<int32_t>()[0]; }

  Graph graph_;
  std::vector<Output> one_, three_;
  std::string put_, put_three_, size_, close_;
};

TEST_F(ApiQueues, ElementsComeOutAsTheyWentIn) {
  ASSERT_EQ(one_.size(), 2u);
  EXPECT_EQ(graph_.dims(three_.at(0)), (Dims{3, 2}));
  EXPECT_EQ(graph_.dims(three_.at(1)), (Dims{3}));
  Session session(graph_);
  session.run({}, {}, {put_});
  session.run({}, {}, {put_three_});
  EXPECT_EQ(size(session), 4);
  const auto one = session.run({}, {graph_.name(one_[0]), graph_.name(one_[1])});
  EXPECT_THAT(one.at(0).as<float>(), ElementsAre(1.5F, 1.5F));
  EXPECT_THAT(one.at(1).as<int32_t>(), ElementsAre(7));
  EXPECT_THAT(session.run({}, {graph_.name(three_[1])}).at(0).as<int32_t>(), ElementsAre(8, 8, 8));
  session.run({}, {}, {close_});
  EXPECT_THAT(refusal([&] { session.run({}, {}, {put_}); }),
              AllOf(StartsWith("66: "), HasSubstr("the queue 'jobs' is closed")));
  session.reset();
  session.run({}, {}, {put_});
}

TEST_F(ApiQueues, AStepOfThisProcessEndsAtItsDeadline) {
  Session session(graph_, {}, hasty());
  EXPECT_THAT(refusal([&] { session.run({}, {graph_.name(one_[0])}); }),
              AllOf(StartsWith("124: "), HasSubstr("within 0.01 s"),
                    HasSubstr("waits for 1 elements of the queue 'jobs'")));
}

TEST_F(ApiQueues, AStepOfThisProcessIsAborted) {
  Session session(graph_);
  auto told = std::async(std::launch::async,
                         [&] { return refusal([&] { session.run({}, {graph_.name(one_[0])}); }); });
  while (told.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    session.abort("nobody wants it");
  EXPECT_THAT(told.get(), AllOf(StartsWith("69: "), HasSubstr("nobody wants it")));
  session.run({}, {}, {put_});
  EXPECT_EQ(size(session), 1);
}

TEST_F(ApiSession, AStepOfNothingIsRefused) {
  Session session(graph_);
  EXPECT_EQ(refusal([&] {
              session.run({{"x", pair(3, 4)}}, {});
            }),
            "2: nothing to run: name a fetch or a target");
}

TEST_F(ApiSession, FeedsMayOutliveWhatTheyWereMadeOf) {
  const std::vector<Feed> feeds = {{"x", pair(3, 4)}};
  Session session(graph_);
  EXPECT_THAT(session.run(feeds, {"Scale"}).at(0).as<float>(), ElementsAre(6, 8));
}

TEST_F(ApiSession, OptionsOfAnUnknownSizeAreRefused) {
  dtf_session_options options = Session::defaults();
  options.size += 8;
  EXPECT_THAT(refusal([&] { Session(graph_, {}, options); }), StartsWith("2: "));
}

// A program that was compiled before a field existed passes a smaller size.
TEST_F(ApiSession, OptionsOfAnEarlierVersionAreTaken) {
  dtf_session_options options = Session::defaults();
  options.size = offsetof(dtf_session_options, insecure);
  options.insecure = 1;  // beyond that size, so it is ignored
  EXPECT_THAT(Session(graph_, {}, options).run({{"x", pair(3, 4)}}, {"Scale"}).at(0).as<float>(),
              ElementsAre(6, 8));
}

TEST_F(ApiSession, KeysThatAreMissingAreNamedBeforeAnybodyIsAsked) {
  dtf_session_options options = Session::defaults();
  options.keys = "/no/such/keys";
  EXPECT_THAT(refusal([&] { Session(graph_, {"dtf://localhost:1"}, options); }),
              AllOf(StartsWith("65: "), HasSubstr("/no/such/keys/client.pem is missing")));
}

TEST_F(ApiSession, TargetsThatAreNoneAreRefusedByName) {
  EXPECT_THAT(refusal([&] { Session(graph_, {"localhost"}); }),
              AllOf(StartsWith("2: "), HasSubstr("dtf://")));
  dtf_session_options options = Session::defaults();
  options.connect_seconds = 0.2;
  const std::vector<std::string> nobody = {"dtf://127.0.0.1:1"};  // tcpmux: no test listens there
  EXPECT_THAT(refusal([&] { Session(graph_, nobody, options); }),
              AllOf(StartsWith("69: "), HasSubstr("127.0.0.1:1")));
  {
    const auto elsewhere = graph_.device("/job:ps/task:3");
    graph_.constant({}, 1);
  }
  EXPECT_THAT(refusal([&] { Session session(graph_); }),
              AllOf(StartsWith("78: "), HasSubstr("/job:ps/task:3"), HasSubstr("Const")));
}

}  // namespace
}  // namespace dtf::testing
