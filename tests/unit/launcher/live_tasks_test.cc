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

}  // namespace
}  // namespace dtf::launcher
