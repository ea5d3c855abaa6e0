#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "common/base/run_lock.h"
#include "launcher/find_run.h"

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StatusCommand : public VerbTest {
 protected:
  std::string asked() {
    return printed([this] { return status(job_, options_, net::Credentials::ownUser()); });
  }
};

TEST_F(StatusCommand, OfAJobThatNeverRan) {
  EXPECT_THAT(asked(), HasSubstr("no job has run there, nor elsewhere from this file"));
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
  EXPECT_THAT(asked(), HasSubstr("ended without a summary: its launcher was killed"));
}

// The folder is shared by several hosts: its pids are not processes of this one.
TEST_F(StatusCommand, OfOneOfAnotherHostNamesTheHost) {
  std::filesystem::create_directories(runDir());
  folder_.write("run/launch.json",
                R"({"launcher_pid": 1, "host": "far", "boot_id": "x", "start_ticks": 1})");
  EXPECT_THAT(asked(),
              HasSubstr("last run    on the host far, pid 1: run 'dtf-launch status' there"));
  EXPECT_EQ(code_, kNotRunning);
}

TEST_F(StatusCommand, AStartThatFoundTheJobDoneWasNotRefused) {
  std::filesystem::create_directories(runDir());
  folder_.write("run/summary.json", R"({"outcome": "done", "global_step": 5, "attempt": 1})");
  LaunchRecord second = {.job = "tiny", .launcher = ::getpid(), .attempt = 2};
  RunLock(runDir(), second);
  EXPECT_THAT(asked(), HasSubstr("since then  a start that was refused: dtf-launch logs "));
  second.already_done = true;
  RunLock(runDir(), second);
  EXPECT_THAT(asked(), HasSubstr("last run    done at step 5\n"
                                 "  since then  a start that found it done already\n"));
}

TEST_F(StatusCommand, NamesTheFileWhoseRunTheLastOneWas) {
  RunLock(runDir(), {.job = "tiny", .launcher = ::getpid()});
  EXPECT_EQ(rememberRun(job_, options_.cluster_file), "");
  EXPECT_THAT(asked(), Not(HasSubstr("not this one")));
  const auto past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/dtf"))
    std::filesystem::last_write_time(entry.path(), past);
  const std::string copy = folder_.write("copy.yaml", "");
  EXPECT_EQ(rememberRun(job_, copy), "");
  EXPECT_THAT(asked(), HasSubstr("last run    ended without a summary: its launcher was killed\n"
                                 "  file        " +
                                 copy + ", not this one\n"));
  const RunLock running(runDir(), {.job = "tiny", .launcher = ::getpid()});
  EXPECT_THAT(asked(), HasSubstr("  file        " + copy + ", not this one\n"));
  options_.json = true;
  EXPECT_THAT(asked(), HasSubstr("\"other_file\":\"" + copy + "\""));
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
