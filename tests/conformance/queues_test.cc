// Queues, over tasks of this process and over tasks that serve on real sockets: sessions that share
// a queue, steps that wait for it, and events that wake them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "common/base/error.h"
#include "common/engine/session.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::filled;
using testing::floats;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPs0;
using testing::kWorker0;
using testing::kWorker1;
using testing::nameOf;
using testing::SessionHarness;

// True: over sockets. ps/0 has the queue "jobs", of at most four numbers.
class QueuesSuite : public ::testing::TestWithParam<bool> {
 protected:
  QueuesSuite() {
    const Output jobs = queue(b_, "jobs", 4);
    const Output x = b_.placeholder("x", DType::kFloat32, {});
    {
      const auto there = b_.deviceScope("/job:worker/task:1");
      b_.node("QueueEnqueue", {jobs, b_.scale(x, 10)}, {}, "put");  // runs on the queue's device
    }
    b_.node("QueueEnqueueMany", {jobs, b_.placeholder("xs", DType::kFloat32, {6})}, {}, "put_six");
    b_.scale({b_.node("QueueDequeue", {jobs}, {}, "one")}, 2);
    b_.node("QueueDequeueMany", {jobs}, {{"n", int64_t{3}}}, "three");
    b_.node("QueueSize", {jobs}, {}, "size");
    b_.node("QueueClose", {jobs}, {}, "close");
    b_.node("QueueClose", {jobs}, {{"cancel_pending_enqueues", true}}, "cancel");
  }

  static Output queue(graph::Builder& b, const std::string& name, int64_t capacity) {
    const auto there = b.deviceScope("/job:ps/task:0");
    return {b.node("FIFOQueue", {},
                   {{"component_types", std::string("float32")},
                    {"shapes", std::string("[]")},
                    {"capacity", capacity}},
                   name)};
  }
  std::unique_ptr<Session> open(Duration step_max = std::chrono::seconds(600)) {
    return std::make_unique<Session>(graph_, harness_.connect(step_max));
  }
  static void put(Session& session, float value) {
    const Tensor x = floats({}, {value});
    session.run(std::vector<Feed>{{"x", &x}}, {}, std::vector<std::string>{"put"});
  }
  static void does(Session& session, const std::string& target) {
    session.run({}, {}, std::vector<std::string>{target});
  }
  static std::vector<float> take(Session& session, const std::string& fetch = "one") {
    const auto got = session.run({}, std::vector{fetch});
    return {got[0].as<float>().begin(), got[0].as<float>().end()};
  }
  static int32_t size(Session& session) {
    return session.run({}, std::vector<std::string>{"size"})[0].as<int32_t>()[0];
  }
  // Takes an element in another thread; returns the error of that step.
  static std::future<std::string> taking(Session& session, const std::string& fetch = "one") {
    return std::async(std::launch::async,
                      [&session, fetch] { return errorText([&] { take(session, fetch); }); });
  }
  // Aborts until a step that has begun to wait ends.
  static std::string abortUntilItEnds(Session& session, std::future<std::string>& told) {
    while (told.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
      session.abort(Error(ErrorCode::kUnavailable, "enough"));
    return told.get();
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  SessionHarness harness_{
      GetParam(),
      {graph::fullDevice(kWorker0), graph::fullDevice(kWorker1), graph::fullDevice(kPs0)}};
};

INSTANTIATE_TEST_SUITE_P(Tasks, QueuesSuite, ::testing::Bool(), nameOf);

TEST_P(QueuesSuite, AQueueIsSharedAndOutlivesItsSessions) {
  {
    const auto producer = open();
    for (const float value : {1, 2, 3}) put(*producer, value);
  }
  const auto consumer = open(), other = open();
  EXPECT_EQ(size(*other), 3);
  EXPECT_THAT(take(*consumer), ElementsAre(10));
  EXPECT_THAT(take(*other, "Scale_1"), ElementsAre(40)) << "what is computed of it, elsewhere";
  put(*other, 4);
  put(*other, 5);
  EXPECT_THAT(take(*consumer, "three"), ElementsAre(30, 40, 50));
  EXPECT_EQ(size(*other), 0);
}

TEST_P(QueuesSuite, AStepThatWaitsHoldsUpNoOtherOfItsTasks) {
  const auto session = open(), other = open();
  auto first = std::async(std::launch::async, [&] { return take(*session); });
  auto second = std::async(std::launch::async, [&] { return take(*session, "Scale_1"); });
  EXPECT_EQ(size(*session), 0);  // of the same session, on the same device
  put(*other, 1);
  put(*other, 1);
  EXPECT_THAT(first.get(), ElementsAre(10));
  EXPECT_THAT(second.get(), ElementsAre(20));
}

TEST_P(QueuesSuite, ABatchEntersAsThereIsRoomForIt) {
  const auto producer = open(), consumer = open();
  const Tensor six = floats({6}, {1, 2, 3, 4, 5, 6});
  auto put_six = std::async(std::launch::async, [&] {
    producer->run(std::vector<Feed>{{"xs", &six}}, {}, std::vector<std::string>{"put_six"});
  });
  EXPECT_THAT(take(*consumer, "three"), ElementsAre(1, 2, 3));
  EXPECT_THAT(take(*consumer, "three"), ElementsAre(4, 5, 6));
  put_six.get();
}

TEST_P(QueuesSuite, AStepThatWaitsTooLongSaysForWhat) {
  // Long enough for a step to arrive at the task in which it waits.
  const auto hasty = open(std::chrono::seconds(1)), patient = open();
  const std::string late = errorText([&] { take(*hasty); });
  EXPECT_THAT(late, HasSubstr("has not ended within 1 s"));
  EXPECT_THAT(late, HasSubstr("; node 'one' (QueueDequeue) waits for 1 elements of the queue "
                              "'jobs', which has 0 of at most 4"));
  for (const float value : {1, 2, 3, 4}) put(*patient, value);
  EXPECT_THAT(errorText([&] { put(*hasty, 5); }), HasSubstr("(QueueEnqueue) waits for room"));
  EXPECT_THAT(take(*patient), ElementsAre(10)) << "nothing was taken";
  EXPECT_EQ(size(*patient), 3) << "nothing was let in later";
}

TEST_P(QueuesSuite, AnAbortEndsWhatWaitsAndItTakesNothing) {
  const auto session = open(), other = open();
  auto told = taking(*session);
  EXPECT_EQ(abortUntilItEnds(*session, told), "enough");
  put(*other, 1);
  EXPECT_EQ(size(*other), 1);
  EXPECT_THAT(take(*session), ElementsAre(10)) << "the next step is another";
  auto batch = taking(*session, "three");
  put(*other, 1);
  put(*other, 2);
  EXPECT_EQ(abortUntilItEnds(*session, batch), "enough");
  EXPECT_EQ(size(*other), 2);
  for (const Session* each : {session.get(), other.get()}) {
    const RendezvousLoad load = each->load();
    EXPECT_EQ(load.steps + load.parked + load.waiting, 0u);
  }
}

TEST_P(QueuesSuite, ClosingEndsWhoWaitsForElements) {
  const auto session = open(), other = open();
  put(*other, 1);
  auto told = taking(*session, "three");
  does(*other, "close");
  EXPECT_EQ(told.get(), "the queue 'jobs' is closed and has 1 of 3 elements");
  EXPECT_THAT(take(*session), ElementsAre(10)) << "what it has can be taken";
  try {
    take(*session);
    ADD_FAILURE() << "it is closed and empty";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(error.message(), "the queue 'jobs' is closed and has 0 of 1 elements");
  }
  EXPECT_THAT(errorText([&] { put(*session, 2); }), HasSubstr("nothing enters it any more"));
}

TEST_P(QueuesSuite, ClosingLetsInWhatWaitsUnlessItIsCancelled) {
  const auto session = open(), other = open();
  for (const bool cancels : {false, true}) {
    for (const float value : {1, 2, 3, 4}) put(*other, value);
    auto fifth =
        std::async(std::launch::async, [&] { return errorText([&] { put(*session, 5); }); });
    if (cancels) {
      does(*other, "cancel");
      EXPECT_THAT(fifth.get(), HasSubstr("the queue 'jobs'"));
      EXPECT_THAT(take(*other, "three"), ElementsAre(10, 20, 30));
    } else {
      EXPECT_THAT(take(*other, "three"), ElementsAre(10, 20, 30));
      EXPECT_EQ(fifth.get(), "");
      does(*other, "close");
      EXPECT_THAT(take(*other), ElementsAre(40));
    }
    other->reset("");
    EXPECT_EQ(size(*other), 0);
  }
  put(*other, 1);  // the queue is open
  EXPECT_EQ(size(*session), 1);
}

TEST_P(QueuesSuite, AResetEndsWhoWaits) {
  const auto session = open(), other = open();
  auto told = taking(*session);
  while (told.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) other->reset("");
  EXPECT_THAT(told.get(), HasSubstr("the container of the queue 'jobs' was reset"));
}

// Producers and consumers, each a session of its own: every element comes out once.
TEST_P(QueuesSuite, EveryElementOfManyClientsComesOutOnce) {
  constexpr int kEach = 60;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto session = open();
      for (int i = 0; i < kEach; ++i) put(*session, static_cast<float>(t * kEach + i));
    });
  }
  std::mutex mutex;
  std::multiset<float> taken;
  for (const char* const fetch : {"one", "three"}) {
    threads.emplace_back([&, fetch] {
      const auto session = open();
      const int steps = fetch == std::string("one") ? kEach : kEach / 3;
      for (int i = 0; i < steps; ++i) {
        const std::vector<float> some = take(*session, fetch);
        const std::lock_guard lock(mutex);
        taken.insert(some.begin(), some.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<float> expected;
  for (int i = 0; i < 2 * kEach; ++i) expected.insert(static_cast<float>(10 * i));
  EXPECT_EQ(taken, expected);
}

TEST_P(QueuesSuite, WhatAStepThatFailsHasPutInStays) {
  const Output jobs{graph_.find("jobs")->id};
  const Output one = b_.constant({}, 1);
  const auto put = b_.node("QueueEnqueue", {jobs, one}, {}, "put_one");
  const auto there = b_.deviceScope("/job:worker/task:1");
  b_.node("Tanh", {one}, {}, "fails", {put});
  harness_.act("fails", [] { throw Error(ErrorCode::kBadData, "fantasia!"); });
  const auto session = open();
  EXPECT_EQ(errorText([&] { take(*session, "fails"); }), "fantasia!");
  EXPECT_EQ(size(*session), 1);
}

TEST_P(QueuesSuite, MistakesNameTheNode) {
  const auto session = open();
  EXPECT_THAT(errorText([&] { take(*session, "jobs"); }), HasSubstr("'jobs' is a queue"));
  const Tensor none(DType::kUInt8, {0});
  EXPECT_THAT(
      errorText([&] {
        session->run(std::vector<Feed>{{"jobs", &none}}, {}, std::vector<std::string>{"close"});
      }),
      HasSubstr("'jobs' is a queue"));
  put(*session, 1);
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  b.node("QueueSize", {queue(b, "jobs", 5)}, {}, "size");
  Session other(graph, harness_.connect());
  EXPECT_THAT(errorText([&] { size(other); }),
              AllOf(HasSubstr("node 'jobs' (FIFOQueue) is of 5 elements (float32[])"),
                    HasSubstr("is of 4 elements")));
}

}  // namespace
}  // namespace dtf::engine
