// Workers and ps of one host read each other's arenas in memory. Real processes, real kill -9.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kShared = "event=memory_shared";

class MemoryTest : public RecoveryTest {
 protected:
  // A job whose arenas take many pages.
  static ClusterOptions wide(const std::string& mode) {
    ClusterOptions options;
    options.mode = mode;
    options.layers =
        "[flatten: , dense: {units: 256, activation: relu}, dense: {units: 128, activation: relu}, "
        "dense: {units: 10}]";
    options.optimizer = "{adam: {learning_rate: 0.001}}";
    return options;
  }
  std::string logOf(const std::string& name, const std::string& task) const {
    return folder_.read(fmt::format("runs/{}/logs/{}.1.log", name, task));
  }
};

TEST_F(MemoryTest, AJobHasTheBitsOfOneWhoseArenasTravel) {
  for (const std::string& durability : {"checkpoint", "replica"}) {
    ClusterOptions options = wide("sync");
    options.top_more = "durability: " + durability + "\n";
    ASSERT_EQ(launch(writeCluster(options, "shared")).exit_code, 0);
    options.top_more += "shared_memory: false\n";
    ASSERT_EQ(launch(writeCluster(options, "travels")).exit_code, 0);
    for (const std::string task : {"worker-0", "worker-1"}) {
      EXPECT_THAT(logOf("shared", task), HasSubstr(kShared));
      EXPECT_THAT(logOf("travels", task), Not(HasSubstr(kShared)));
    }
    EXPECT_EQ(digestOf("shared"), digestOf("travels"));
    std::filesystem::remove_all(folder_.path() + "/runs");
  }
  expectNothingLeft();
}

// One task has another file, as on a host that disables shared memory.
TEST_F(MemoryTest, ArenasTravelWhereOneSideDoesNotShare) {
  ClusterOptions options = wide("async");
  options.train_more = "  placement: {strategy: greedy}\n";  // weights on both
  options.ports = freePorts(4);
  file_ = writeCluster(options, "job");
  ps_.push_back(
      std::make_unique<Process>(startTask(file_, "ps", 0, {"--set", "shared_memory=false"})));
  ps_.push_back(task("ps", 1));
  workers_.push_back(task("worker", 0));
  workers_.push_back(
      std::make_unique<Process>(startTask(file_, "worker", 1, {"--set", "shared_memory=false"})));
  const ProcessResult chief = workers_[0]->wait(kEnd);
  EXPECT_THAT(chief.err, HasSubstr("event=memory_not_shared peer=\"ps/0"));
  EXPECT_THAT(chief.err, HasSubstr("shared_memory: false"));
  EXPECT_THAT(chief.err, HasSubstr("event=memory_shared peer=\"ps/1"));
  EXPECT_THAT(workers_[1]->wait(kEnd).err, Not(HasSubstr("memory_")));
  EXPECT_EQ(chief.exit_code, 0) << chief.err;
  awaitEnd();
  EXPECT_EQ(summary()["global_step"], 40);
}

// The ps keep the arena of a lost worker while they still read it; the workers keep a lost ps's.
// Each successor shares memory anew.
TEST_F(MemoryTest, LostTasksAreReplacedAndNoBitIsLost) {
  ClusterOptions options = wide("sync");
  options.steps = 900;
  options.train_more = "  report: {every_steps: 10}\n";
  options.top_more = "durability: replica\n";
  ASSERT_EQ(launch(writeCluster(options, "calm"), {}, kEnd).exit_code, 0);
  start(options, "disturbed");
  killAndStartAgain(1, 100);
  loseAndStartAgain({1}, 400);
  killAndStartAgain(0, 700);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], options.steps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

}  // namespace
}  // namespace dtf::testing
