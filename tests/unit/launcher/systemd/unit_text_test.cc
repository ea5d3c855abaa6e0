#include "launcher/systemd/unit_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

cluster::JobSpec mnist() {
  cluster::JobSpec job;
  job.job = "mnist";
  return job;
}

TaskCommand command(std::vector<std::string> argv) {
  return {{JobKind::kPs, 1}, "localhost", std::move(argv), {{"A", "b c"}}, "/home/me"};
}

}  // namespace

TEST(UnitText, AUnitIsAnInstanceOfItsJob) {
  EXPECT_EQ(unitName("mnist", {JobKind::kPs, 0}), "dtf-mnist@ps-0.service");
  EXPECT_EQ(unitName("a-b", {JobKind::kWorker, 12}), "dtf-a-b@worker-12.service");
}

TEST(UnitText, NothingInAWordIsASpecifierAnEscapeOrAVariable) {
  EXPECT_EQ(unitWord("plain"), "\"plain\"");
  EXPECT_EQ(unitWord("a \"b\" 50% \\n"), R"("a \"b\" 50%% \\n")");
  EXPECT_EQ(unitWord("a\nExecStart=b"), R"("a\x0aExecStart=b")");
  const std::string text = unitText(mnist(), command({"/bin/psd", "$HOME", "%n"}), {{}, "/r/l"});
  EXPECT_THAT(text, HasSubstr("\nExecStart=\"/bin/psd\" \"$$HOME\" \"%%n\"\n"));
}

TEST(UnitText, HasTheCommandItsFolderItsLogAndItsEnvironment) {
  const std::string text = unitText(mnist(), command({"/bin/psd", "--task", "1"}),
                                    {{{"A", "a"}, {"HOME", "/h"}}, "/r 1/ps-1.3.log"});
  EXPECT_THAT(text, HasSubstr("Description=dtf: ps/1 of the job mnist\n"));
  EXPECT_THAT(text, HasSubstr("WorkingDirectory=/home/me\n"));
  EXPECT_THAT(text, HasSubstr("StandardOutput=append:/r 1/ps-1.3.log\n"));
  EXPECT_THAT(text,
              HasSubstr("Environment=\"A=b c\"\nEnvironment=\"HOME=/h\"\n"));  // the task's wins
}

TEST(UnitText, TheBudgetOfRestartsIsTheFiles) {
  cluster::JobSpec job = mnist();
  job.launch.restarts = {3, 0.5};
  const std::string some = unitText(job, command({"/bin/psd"}), {{}, "/l"});
  EXPECT_THAT(some, HasSubstr("StartLimitIntervalSec=30s\nStartLimitBurst=4\n"));
  EXPECT_THAT(some, HasSubstr("Restart=on-failure\n"));
  job.launch.restarts.max = 0;
  const std::string none = unitText(job, command({"/bin/psd"}), {{}, "/l"});
  EXPECT_THAT(none, HasSubstr("Restart=no\n"));
  EXPECT_THAT(none, Not(HasSubstr("StartLimit")));
}

TEST(UnitText, ATaskOfAPausedJobIsStartedAgainAndHasNotFailed) {
  cluster::JobSpec job = mnist();
  const std::string text = unitText(job, command({"/bin/psd"}), {{}, "/l"});
  EXPECT_THAT(text, HasSubstr("\nRestartForceExitStatus=75\n"));
  EXPECT_THAT(text, HasSubstr("\nSuccessExitStatus=75\n"));
  job.launch.restarts.max = 0;
  EXPECT_THAT(unitText(job, command({"/bin/psd"}), {{}, "/l"}),
              Not(HasSubstr("RestartForceExitStatus")));
}

TEST(UnitText, AFolderThatWouldBeMoreThanItsLineIsRefused) {
  TaskCommand odd = command({"/bin/psd"});
  for (const char* folder : {"/a\nExecStart=/b", "/a\\", "/a "}) {
    odd.folder = folder;
    EXPECT_THROW(unitText(mnist(), odd, {{}, "/l"}), Error) << folder;
  }
  odd.folder = "/50%";
  EXPECT_THAT(unitText(mnist(), odd, {{}, "/l"}), HasSubstr("WorkingDirectory=/50%%\n"));
}

}  // namespace dtf::launcher
