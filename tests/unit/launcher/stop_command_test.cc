#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/run_lock.h"
#include "tests/unit/launcher/loop_fixture.h"
#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

class StopCommand : public VerbTest {
 protected:
  std::string stopped() {
    return printed([this] { return stop(job_, options_, net::Credentials::ownUser()); });
  }
  void summarised(const std::string& text) {
    std::filesystem::create_directories(runDir());
    folder_.write("run/summary.json", text);
  }
};

// A process that holds the run directory as a launcher does, until a signal ends it.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& folder) {
    const Pipe ready;
    pid_ = ::fork();
    if (pid_ == 0) {
      const RunLock lock(folder, {.job = "tiny", .launcher = ::getpid()});
      ready.send("x");
      for (;;) ::pause();
    }
    char byte;
    EXPECT_EQ(::read(ready.read.get(), &byte, 1), 1);
  }
  ~Holder() {
    ::kill(pid_, SIGKILL);
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  // Returns the signal that ended it.
  int signal() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    reaped_ = true;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
};

TEST_F(StopCommand, WhereNothingRunsItSaysHowTheLastRunEnded) {
  EXPECT_EQ(stopped(), "tiny: not running in " + runDir().string() + ", nor elsewhere from " +
                           options_.cluster_file.string() + "\n");
  EXPECT_EQ(code_, kNotRunning);
  summarised(R"({"schema": 1, "outcome": "done", "global_step": 7, "exit_code": 0})");
  EXPECT_THAT(stopped(), HasSubstr("; its last run: done at step 7"));
  EXPECT_EQ(code_, kNotRunning);
}

TEST_F(StopCommand, WhoRunsTheJobIsAskedAndAwaited) {
  Holder holder(runDir());
  EXPECT_EQ(stopped(), "tiny: ended without a summary, not saved\n");
  EXPECT_EQ(code_, exitCode(ErrorCode::kUnavailable));
  EXPECT_EQ(holder.signal(), SIGTERM);
}

// A folder that others may write to can name any process.
TEST_F(StopCommand, AProcessThatIsNoneOfDtfIsNotSignalled) {
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  const auto isSleep = [stranger] {
    std::error_code unknown;
    return std::filesystem::read_symlink("/proc/" + std::to_string(stranger) + "/exe", unknown)
               .filename() == "sleep";
  };
  while (!isSleep()) ::poll(nullptr, 0, 1);
  std::filesystem::create_directories(runDir());
  const RunLock lock(runDir(), {.job = "tiny", .launcher = stranger});
  try {
    stopped();
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(),
                HasSubstr("/sleep, not a program of dtf: no process was signalled"));
  }
  EXPECT_EQ(::waitpid(stranger, nullptr, WNOHANG), 0) << "it lives";
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

// The pid was reused, or the folder is shared by several hosts.
TEST_F(StopCommand, AnotherProcessOfThatNumberIsNotSignalled) {
  Holder holder(runDir());
  const std::string record = folder_.read("run/launch.json");
  const auto refused = [&](const std::string& key, const std::string& value) {
    std::string changed = record;
    const size_t at = changed.find("\"" + key + "\": ");
    EXPECT_NE(at, std::string::npos) << record;
    const size_t begin = at + key.size() + 4;
    changed.replace(begin, changed.find(',', begin) - begin, value);
    folder_.write("run/launch.json", changed);  // in place: the lock stays
    try {
      stopped();
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(refused("start_ticks", "1"), HasSubstr("another process has that pid now"));
  EXPECT_THAT(refused("boot_id", "\"x\""), HasSubstr("this host was rebooted since then"));
}

TEST_F(StopCommand, TheAnswerIsThatOfTheRunThatEnded) {
  Holder holder(runDir());
  summarised(R"({"schema": 1, "outcome": "stopped", "global_step": 42, "exit_code": 0})");
  EXPECT_EQ(stopped(), "tiny: stopped at step 42, saved\n");
  EXPECT_EQ(code_, 0);
}

TEST_F(StopCommand, AJobThatFailedWasNotSavedButHasACheckpoint) {
  Holder holder(runDir());
  summarised(R"({"schema": 1, "outcome": "failed", "global_step": 42, "exit_code": 69,)"
             R"( "checkpoint": {"last_step": 40}})");
  EXPECT_EQ(stopped(), "tiny: failed at step 42, not saved; the newest checkpoint is of step 40\n");
  EXPECT_EQ(code_, 69);
}

}  // namespace
}  // namespace dtf::launcher
