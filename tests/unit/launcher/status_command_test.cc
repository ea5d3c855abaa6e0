#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "common/base/run_lock.h"

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class StatusCommand : public VerbTest {
 protected:
  std::string asked() {
    return printed([this] { return status(job_, options_, net::Credentials::ownUser()); });
  }
};

TEST_F(StatusCommand, OfAJobThatNeverRan) {
  EXPECT_THAT(asked(), HasSubstr("nothing has run there, nor elsewhere from this file"));
  EXPECT_EQ(code_, kNotRunning);
}

TEST_F(StatusCommand, OfOneThatEnded) {
  std::filesystem::create_directories(runDir());
  folder_.write("run/summary.json",
                R"({"schema": 1, "outcome": "done", "global_step": 500, "exit_code": 0})");
  EXPECT_EQ(asked(), "tiny: not running in " + runDir().string() +
                         "\n  last run    done at step 500, exit code 0\n");
  EXPECT_EQ(code_, kNotRunning);
}

TEST_F(StatusCommand, OfOneWhoseLauncherWasKilled) {
  std::filesystem::create_directories(runDir());
  folder_.write("run/launch.json", "{}");
  EXPECT_THAT(asked(), HasSubstr("ended without a word: its launcher was killed"));
}

// On a file system of several hosts: its pids are no processes of this one.
TEST_F(StatusCommand, OfOneOfAnotherHostNamesTheHost) {
  std::filesystem::create_directories(runDir());
  folder_.write("run/launch.json",
                R"({"launcher_pid": 1, "host": "far", "boot_id": "x", "start_ticks": 1})");
  EXPECT_THAT(asked(), HasSubstr("last run    on the host far, pid 1: whether it still runs"));
  EXPECT_EQ(code_, kNotRunning);
}

TEST_F(StatusCommand, ATaskWhoseNumberWasGivenAgainHasEnded) {
  RunLock running(runDir(), {.job = "tiny", .launcher = ::getpid()});
  running.record({.job = "tiny", .launcher = ::getpid(), .tasks = {{"worker/0", ::getpid()}}});
  const std::string own = "pid " + std::to_string(::getpid()) + "  ";
  EXPECT_THAT(asked(), HasSubstr("worker/0    " + own + "running"));
  std::string record = folder_.read("run/launch.json");
  const size_t ticks = record.rfind("\"start_ticks\": ") + 15;
  record.insert(ticks, "9");
  std::ofstream(runDir() / "launch.json", std::ios::in) << record;  // in place: the lock is on it
  EXPECT_THAT(asked(), HasSubstr("worker/0    " + own + "ended"));
}

TEST_F(StatusCommand, OfOneThatRunsNamesItsLauncherAndTasksThatDoNotAnswer) {
  const RunLock running(runDir(), {.job = "tiny", .launcher = ::getpid()});
  const std::string text = asked();
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(text, StartsWith("tiny: running, dtf-launch has pid " + std::to_string(::getpid())));
  EXPECT_THAT(text, HasSubstr("worker/0    doesn't answer"));
}

}  // namespace
}  // namespace dtf::launcher
