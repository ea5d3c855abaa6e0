#include "launcher/last_words.h"
#include "common/base/json.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {

using ::testing::HasSubstr;

class LastWords : public ::testing::Test {
 protected:
  LastWords() : logs_("logs", tasks_, false, false, [](auto, auto) {}) {}

  // Prints with files in place of stdout and stderr; returns the exit code.
  int say(const char* stdout_file, const TaskMonitor& monitor) {
    const Fd old_out(::dup(STDOUT_FILENO)), old_err(::dup(STDERR_FILENO));
    const Fd out(::open(stdout_file, O_WRONLY | O_CREAT, 0600));
    const Fd err(::open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    const Json summary = {{"job", "x"}, {"outcome", "done"}, {"exit_code", monitor.jobExitCode()}};
    const int code = sayLastWords({job_, monitor, logs_, run_dir_}, nullptr, summary);
    ::dup2(old_out.get(), STDOUT_FILENO);
    ::dup2(old_err.get(), STDERR_FILENO);
    return code;
  }

  const testing::TemporaryFiles files_;
  const std::vector<TaskId> tasks_ = {{JobKind::kWorker, 0}};
  const std::filesystem::path run_dir_ = "runs/x";
  const SystemClock clock_;
  cluster::JobSpec job_;
  LogFanin logs_;
};

TEST_F(LastWords, TheResultGoesToStdoutAndWhatFailedBeforeIt) {
  TaskMonitor failed(tasks_, clock_, {});
  failed.onError(std::nullopt, Error(ErrorCode::kBadConfig, "no such thing"));
  EXPECT_EQ(say("out", failed), 78);
  EXPECT_THAT(readFile("out", 1000), HasSubstr("x: done\n"));
  EXPECT_THAT(readFile("err", 1000), HasSubstr("no such thing"));
}

TEST_F(LastWords, AResultThatStdoutDoesNotTakeIsNoSuccess) {
  TaskMonitor done(tasks_, clock_, {});
  EXPECT_EQ(say("/dev/full", done), 73);
  EXPECT_THAT(readFile("err", 1000),
              HasSubstr("cannot write the result to stdout; it is in runs/x/summary.json"));
}

}  // namespace dtf::launcher
