// transport: rdma. Real processes, real kill -9, and UCX over transports that need no card.

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/recovery_fixture.h"
#include "tests/support/shared_memory_space.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RemoteMemoryTest : public RecoveryTest {
 protected:
  void SetUp() override {
    if (std::getenv("DTF_UCX") == nullptr) GTEST_SKIP() << "this build has no UCX (-Ducx)";
    if (::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL) == nullptr)
      GTEST_SKIP() << "no UCX on this host: " << ::dlerror();
    ::setenv("UCX_TLS", "tcp", 1);
  }
  void TearDown() override {
    ::unsetenv("UCX_TLS");
    RecoveryTest::TearDown();
  }

  static ClusterOptions wide(const std::string& mode) {
    ClusterOptions options;
    options.mode = mode;
    options.layers =
        "[flatten: , dense: {units: 512, activation: relu}, dense: {units: 256, activation: relu}, "
        "dense: {units: 10}]";
    options.optimizer = "{adam: {learning_rate: 0.001}}";
    return options;
  }
  static ClusterOptions remote(ClusterOptions options) {
    options.top_more += "transport: rdma\n";
    return options;
  }
  void launchAs(const ClusterOptions& options, const std::string& name) {
    const ProcessResult result = launch(writeCluster(options, name));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    ASSERT_NE(digestOf(name), "");
  }
  std::string logOf(const std::string& name) {
    return folder_.read("runs/" + name + "/logs/worker-0.1.log");
  }
};

TEST_F(RemoteMemoryTest, AJobHasTheBitsOfOneOverTcp) {
  launchAs(wide("sync"), "words");
  EXPECT_THAT(logOf("words"), Not(HasSubstr("event=memory_remote")));
  for (const std::string transports : {"tcp", "posix"}) {
    if (const std::string lack = lackOfSharedMemory(transports); !lack.empty())
      GTEST_SKIP() << lack;
    ::setenv("UCX_TLS", transports.c_str(), 1);
    const std::string name = "remote" + std::to_string(transports.size());
    launchAs(remote(wide("sync")), name);
    EXPECT_EQ(digestOf(name), digestOf("words")) << transports;
    EXPECT_THAT(logOf(name), HasSubstr("event=memory_remote"));
    EXPECT_THAT(logOf(name), HasSubstr("UCX_TLS=" + transports));
    EXPECT_THAT(logOf(name), Not(HasSubstr("event=memory_shared")));
  }
  expectNothingLeft();
}

TEST_F(RemoteMemoryTest, AJobWithoutPsHasTheBitsOfOneOverTcp) {
  ClusterOptions options = wide("sync");
  options.ps = 0;
  launchAs(options, "words");
  launchAs(remote(options), "remote");
  EXPECT_EQ(digestOf("remote"), digestOf("words"));
  EXPECT_THAT(logOf("remote"), HasSubstr("event=memory_remote"));
  expectNothingLeft();
}

TEST_F(RemoteMemoryTest, AsyncTrainingOverlapsItsExchanges) {
  ClusterOptions options = wide("async");
  options.replication_more = ", overlap: true";
  launchAs(remote(options), "remote");
  EXPECT_THAT(logOf("remote"), HasSubstr("event=memory_remote"));
  expectNothingLeft();
}

TEST_F(RemoteMemoryTest, LostTasksAreReplacedAndNoBitIsLost) {
  ClusterOptions options = wide("sync");
  options.steps = 250;
  options.train_more = "  report: {every_steps: 5}\n";
  options.top_more = "durability: replica\n";
  ASSERT_EQ(launch(writeCluster(options, "calm"), {}, kEnd).exit_code, 0);
  start(remote(options), "disturbed");
  killAndStartAgain(1, 20);
  loseAndStartAgain({1}, 60);
  killAndStartAgain(0, 110);
  loseAndStartAgain({0}, 160);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], options.steps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

// TCP never takes its place in silence.
TEST_F(RemoteMemoryTest, AHostWithoutACardIsAnErrorThatSaysHowToGoOn) {
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "this host has a card";
  ::unsetenv("UCX_TLS");
  const ProcessResult result = launch(writeCluster(remote(wide("sync"))));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("a network card with RDMA is needed"));
  EXPECT_THAT(result.err, HasSubstr("remove 'transport' from the cluster file"));
}

TEST_F(RemoteMemoryTest, TasksWhoseFilesDifferAreRefused) {
  ClusterOptions options = wide("sync");
  options.ps = options.workers = 1;
  options.ports = freePorts(2);
  const std::string words = writeCluster(options, "job");
  Process ps = startTask(words, "ps", 0);
  Process worker = startTask(words, "worker", 0, {"--set", "transport=rdma"});
  const ProcessResult result = worker.wait(kEnd);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("'transport: rdma', and the other's doesn't"));
  ps.signal(SIGKILL);
  ps.wait(kEnd);
}

TEST_F(RemoteMemoryTest, AJobThatItCantServeIsRefusedBeforeItStarts) {
  ClusterOptions options = wide("sync");
  options.replication_more = ", transfer_dtype: bfloat16";
  const ProcessResult result = launch(writeCluster(remote(options)));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("'transport: rdma' moves float32 alone"));
}

}  // namespace
}  // namespace dtf::testing
