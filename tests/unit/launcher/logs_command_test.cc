#include <gmock/gmock.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LogsCommand : public VerbTest {
 protected:
  void logged(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(runDir() / "logs");
    folder_.write("run/logs/" + file, text);
  }
  std::string shown() {
    return printed([this] { return logs(job_, options_); });
  }
};

TEST_F(LogsCommand, LinesOfAllTasksAreMergedByTime) {
  job_.cluster.ps.resize(1);
  logged("ps-0.0.log", "2026-01-01T00:00:01.000+00:00 a\n2026-01-01T00:00:03.000+00:00 c\n");
  logged("worker-0.0.log", "2026-01-01T00:00:02.000+00:00 b\n");
  EXPECT_EQ(shown(),
            "ps/0     | 2026-01-01T00:00:01.000+00:00 a\n"
            "worker/0 | 2026-01-01T00:00:02.000+00:00 b\n"
            "ps/0     | 2026-01-01T00:00:03.000+00:00 c\n");
}

TEST_F(LogsCommand, OnlyThoseThatAreNamed) {
  job_.cluster.ps.resize(1);
  logged("ps-0.0.log", "of the ps\n");
  logged("worker-0.0.log", "of the worker\n");
  options_.tasks = {"worker/0"};
  EXPECT_EQ(shown(), "worker/0 | of the worker\n");
  options_.tasks = {"worker/7"};
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return logs(job_, options_); }),
              AllOf(HasSubstr("the job has no task 'worker/7'"),
                    HasSubstr("dtf-launch check " + options_.cluster_file.string())));
}

TEST_F(LogsCommand, OfSeveralLaunchesTheLastWithWhatWasStartedAgain) {
  logged("worker-0.0.log", "first launch\n");
  logged("worker-0.1.log", "second launch\n");
  EXPECT_EQ(shown(), "worker/0 | second launch\n");
}

TEST_F(LogsCommand, WithoutALogItSaysHowThereWouldBeOne) {
  EXPECT_THAT(refusal(ErrorCode::kBadData, [this] { return logs(job_, options_); }),
              HasSubstr("run the job: dtf-launch "));
}

}  // namespace
}  // namespace dtf::launcher
