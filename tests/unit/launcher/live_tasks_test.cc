#include "launcher/live_tasks.h"

#include <gtest/gtest.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

std::vector<std::string> namesOf(const std::vector<LiveTask>& tasks) {
  std::vector<std::string> names;
  for (const LiveTask& task : tasks) names.push_back(task.name);
  return names;
}

class LiveTasksTest : public VerbTest {
 protected:
  LiveTasksTest() {
    job_.cluster.ps.resize(1);
    job_.cluster.ps[0].address = {"localhost", 0};
    job_.cluster.worker[0].address = {"localhost", 0};
  }
};

TEST_F(LiveTasksTest, OfTheFileAndThenOfTheRecord) {
  const std::vector<LiveTask> tasks =
      askTasks(job_.cluster, {.job = "tiny", .tasks = {{"worker/3", 44}, {"ps/0", 55}}},
               net::Credentials::ownUser());
  EXPECT_EQ(namesOf(tasks), (std::vector<std::string>{"ps/0", "worker/0", "worker/3"}))
      << "another file has started worker/3";
  EXPECT_EQ(tasks[0].pid, 55);
  EXPECT_EQ(tasks[1].pid, 0) << "not known";
  EXPECT_EQ(tasks[2].pid, 44);
}

TEST_F(LiveTasksTest, WhereNothingListensThereIsNoAnswer) {
  // Words that are no task, and addresses that are invalid, are not asked.
  for (const LiveTask& task : askTasks(job_.cluster,
                                       {.tasks = {{"worker/0", 1, "127.0.0.1:1"},
                                                  {"chief", 2, "127.0.0.1:1"},
                                                  {"ps/x", 3, "nowhere"}}},
                                       net::Credentials::ownUser()))
    EXPECT_TRUE(task.answer.isNull()) << task.name;
}

TEST_F(LiveTasksTest, AnUnknownRunIsOneWhoseTasksAnswerForThisJob) {
  EXPECT_TRUE(askUnknownRun(job_, net::Credentials::ownUser()).empty());
}

TEST_F(LiveTasksTest, WithoutAnAnswerThereIsNoProgress) {
  EXPECT_TRUE(progressOf(askTasks(job_.cluster, {}, net::Credentials::ownUser())).isNull());
  EXPECT_TRUE(progressOf({}).isNull());
}

// Every shard's host answers with the field, but only the first shard's gets times.
TEST_F(LiveTasksTest, TheStragglerIsTheFirstShardsOrThatOfTheLastProgress) {
  const auto naming = [](const char* worker) {
    return Json{{"straggler", Json{{"worker", worker}, {"phase", "data"}, {"excess_ms", 5}}}};
  };
  const Json none = {{"straggler", nullptr}}, live = naming("worker/1");
  const auto named = [&](Json first, Json second) {
    const auto found = stragglerNow(
        job_.cluster, live,
        {{.name = "ps/0", .answer = std::move(first)}, {.name = "ps/1", .answer = second}});
    return found ? found->worker : "";
  };
  job_.cluster.ps.resize(2);
  EXPECT_EQ(named(naming("worker/0"), none), "worker/0");
  EXPECT_EQ(named(none, none), "");
  EXPECT_EQ(named(nullptr, none), "worker/1") << "ps/0 doesn't answer";
  EXPECT_EQ(stragglerNow(job_.cluster, live, {})->worker, "worker/1");
}

TEST_F(LiveTasksTest, WithoutPsTheLeaderKnowsTheStraggler) {
  job_.cluster.ps.clear();
  job_.cluster.worker.resize(2);
  job_.cluster.leader = 1;
  const Json of_leader = {{"straggler", {{"worker", "worker/0"}, {"phase", "send"}}}};
  const auto found = stragglerNow(job_.cluster, Json::object(),
                                  {{.name = "worker/0", .answer = {{"straggler", nullptr}}},
                                   {.name = "worker/1", .answer = of_leader}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->worker, "worker/0");
}

}  // namespace
}  // namespace dtf::launcher
