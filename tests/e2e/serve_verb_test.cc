// dtf-launch serve: tasks that wait for clients, started, watched and ended together.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ServeVerbTest : public ClusterTest {
 protected:
  ProcessResult verb(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {binary("dtf-launch"), name, file_};
    command.insert(command.end(), more.begin(), more.end());
    return runProcess(command, seconds(60), {}, folder_.path());
  }
  Process serve() const {
    return Process({binary("dtf-launch"), "serve", file_}, {}, folder_.path());
  }
  // Adds one to a variable of ps/1, and prints it.
  std::string countOnce(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--graph", graph_});
    const ProcessResult result = verb("graph", more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  // The pid of `task`, while it runs.
  pid_t pidOf(const std::string& task) const {
    const auto status = Json::parse(verb("status", {"--json"}).out);
    for (const auto& of : status["tasks"])
      if (of["name"] == task) return of["pid"].asInt();
    ADD_FAILURE() << task;
    return -1;
  }

  const std::string file_ = writeCluster({.ps = 2, .workers = 2});  // with auto ports
  const std::string graph_ = folder_.write("graph.yaml", R"(
ops:
  - Variable: {name: count, shape: [1], initializer: zeros, device: /job:ps/task:1}
  - Const: {name: one, dtype: float32, shape: [1], value: 1}
  - AssignAdd: {name: counted, inputs: [count, one]}
run: {steps: 3, fetches: [counted]}
)");
};

TEST_F(ServeVerbTest, GraphsRunOnItAndALostTaskIsReplaced) {
  Process launcher = serve();
  ASSERT_TRUE(launcher.waitForOutput("serving clients on dtf://", seconds(30))) << launcher.err();
  EXPECT_THAT(countOnce(), HasSubstr("step 3  counted 3\n"));
  EXPECT_THAT(verb("status").out, AllOf(HasSubstr("serving | ps 2/2 worker 2/2"),
                                        HasSubstr("serves 0 sessions, 1 variable (4 B)")));
  const pid_t ps = pidOf("ps/1");
  ASSERT_GT(ps, 1) << "kill(-1) is everybody's end";
  ::kill(ps, SIGKILL);
  ASSERT_TRUE(launcher.waitForOutput("ps/1 is back, without its variables", seconds(30)));
  EXPECT_THAT(countOnce(), HasSubstr("step 3  counted 3\n"));
  launcher.signal(SIGTERM);
  const ProcessResult ended = launcher.wait(seconds(30));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("job: stopped\n"));
  EXPECT_EQ(verb("status").exit_code, 3);
  EXPECT_EQ(verb("graph", {"--graph", graph_}).exit_code, 69);
  expectNobodyLeft();
}

TEST_F(ServeVerbTest, DetachedItGoesOnUntilItIsStopped) {
  const ProcessResult started = verb("serve", {"-d"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  EXPECT_THAT(started.out, HasSubstr("job: serving clients on dtf://"));
  EXPECT_THAT(countOnce(), HasSubstr("step 3  counted 3\n"));
  const ProcessResult second = verb("serve");
  EXPECT_EQ(second.exit_code, 69) << "the run directory is taken";
  const ProcessResult stopped = verb("stop");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "job: stopped\n");
  expectNobodyLeft();
}

// --run-dir and run_dir name the folder for the launcher's logs.
TEST_F(ServeVerbTest, ARunDirIsForItsLogs) {
  const std::vector<std::vector<std::string>> ways = {{"--run-dir", "one"},
                                                      {"--set", "run_dir=two"}};
  for (const std::vector<std::string>& words : ways) {
    const std::string& folder = words[1].substr(words[1].find('=') + 1);
    std::vector<std::string> detached = {"-d"};
    detached.insert(detached.end(), words.begin(), words.end());
    const ProcessResult started = verb("serve", detached);
    ASSERT_EQ(started.exit_code, 0) << started.err;
    EXPECT_THAT(countOnce(words), HasSubstr("step 3  counted 3\n"));
    EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/" + folder + "/logs")) << folder;
    const ProcessResult stopped = verb("stop", words);
    EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
    expectNobodyLeft();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs"));
}

TEST_F(ServeVerbTest, WhatTheFileSaysOfTrainingIsNotUsed) {
  const ProcessResult planned = verb("serve", {"--dry-run"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("--serve"));
  EXPECT_EQ(verb("serve", {"--fresh"}).exit_code, 2);
  EXPECT_EQ(verb("serve", {"--set", "train.steps=7"}).exit_code, 2) << "it has no job";
  const std::string file = writeCluster({.batch_size = 1'000'000}, "large");
  EXPECT_EQ(runProcess({binary("dtf-launch"), "check", file}).exit_code, 78);
  Process launcher({binary("dtf-launch"), "serve", file}, {}, folder_.path());
  const bool serves = launcher.waitForOutput("serving clients on dtf://", seconds(30));
  launcher.signal(SIGINT);
  const ProcessResult ended = launcher.wait(seconds(30));
  EXPECT_TRUE(serves) << ended.err;
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
  EXPECT_THAT(ended.out, HasSubstr("large: stopped\n"));
}

}  // namespace
}  // namespace dtf::testing
