#include "launcher/log_fanin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

using ::testing::HasSubstr;

class LogFaninTest : public ::testing::Test {
 protected:
  LogFaninTest() { logs_.add(0, 1); }
  void say(const std::string& text) { logs_.feed(0, text); }
  // Simulates a full disk: no file of this process may be longer.
  static void limitFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

  testing::TemporaryFolder folder_;
  std::string shown_;
  LogFanin logs_{folder_.path(),
                 {{JobKind::kWorker, 1}},
                 false,
                 false,
                 [this](std::string_view line, std::string_view prefix) {
                   shown_ += std::string(prefix).append(line) + "\n";
                 }};
};

TEST_F(LogFaninTest, AFileGoesOnAfterADiskThatWasFullAndSaysWhatItLacks) {
  say("before\n");
  limitFiles(10);
  say("lost for the most part\n");
  say("lost\n");
  limitFiles(RLIM_INFINITY);
  say("after\n");
  logs_.finish(0);
  EXPECT_EQ(
      folder_.read("worker-1.1.log"),
      "before\nlos\ndtf-launch: 25 bytes are missing here: they could not be written\nafter\n");
  EXPECT_THAT(shown_, HasSubstr("warning: cannot write " + folder_.path() + "/worker-1.1.log: "));
  EXPECT_THAT(shown_, HasSubstr("is written again; 25 bytes of it are lost\n"));
  EXPECT_THAT(shown_, HasSubstr("worker/1 | after\n"));
}

TEST_F(LogFaninTest, AttemptsCountOnAndAFileIsNeverOverwritten) {
  EXPECT_EQ(nextAttempt(folder_.path()), 2);
  folder_.write("ps-0.11.log", "");
  folder_.write("ps-0.x.log", "");
  folder_.write("notes.99.txt", "");
  EXPECT_EQ(nextAttempt(folder_.path()), 12);
  folder_.write("dtf-launch.12.log", "");
  EXPECT_EQ(newestAttempt(folder_.path()), 11) << "the twelfth was refused: it has no task";
  EXPECT_EQ(nextAttempt(folder_.path()), 13);
  LogFanin again(folder_.path(), {{JobKind::kWorker, 1}}, false, false, [](auto, auto) {});
  EXPECT_THROW(again.add(0, 1), Error);
}

TEST_F(LogFaninTest, TheNextProcessOfATaskRunsWithoutAFileUntilThereIsRoom) {
  say("first\n");
  logs_.finish(0);
  std::filesystem::remove_all(folder_.path());
  logs_.add(0, 2);
  say("lost\n");
  std::filesystem::create_directory(folder_.path());
  say("after\n");
  EXPECT_EQ(folder_.read("worker-1.2.log"),
            "\ndtf-launch: 5 bytes are missing here: they could not be written\nafter\n");
  EXPECT_THAT(shown_, HasSubstr("warning: cannot write " + folder_.path() + "/worker-1.2.log: "));
}

TEST_F(LogFaninTest, AFolderOfAnotherUserIsAMatterOfPermission) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0500), 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  LogFanin logs(folder_.path(), {{JobKind::kWorker, 1}}, false, false, [](auto, auto) {});
  try {
    logs.add(0, 2);
    ADD_FAILURE() << "the file was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission) << error.message();
  }
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ::chmod(folder_.path().c_str(), 0700);
}

}  // namespace dtf::launcher
