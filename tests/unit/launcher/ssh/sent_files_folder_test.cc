#include "launcher/ssh/sent_files_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "common/base/error.h"
#include "common/yaml/sent_files.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;

TEST(SentFilesFolder, HasEachFileAtItsPathForThisUserAlone) {
  const testing::TemporaryFolder folder;
  const fs::path run_dir = fs::path(folder.path()) / "new" / "run";
  fs::path place;
  {
    const SentFilesFolder files(run_dir, {{"/home/me/c.yaml", "a"}, {"/home/me/jobs/t.yaml", "b"}});
    place = files.path();
    EXPECT_EQ(place.parent_path(), run_dir);
    EXPECT_EQ(fs::status(place).permissions(), fs::perms::owner_all);
    ::setenv("DTF_SENT_FILES", place.c_str(), 1);
    EXPECT_EQ(readFile(yaml::placeOfFile("/home/me/c.yaml"), 10), "a");
    EXPECT_EQ(readFile(yaml::placeOfFile("/home/me/x/../jobs/t.yaml"), 10), "b");
    ::unsetenv("DTF_SENT_FILES");
    EXPECT_EQ(yaml::placeOfFile("c.yaml"), "c.yaml");
  }
  EXPECT_FALSE(fs::exists(place));
  EXPECT_TRUE(fs::exists(run_dir));
}

TEST(PlaceOfData, IsAmongTheCopiesWhereThereAreSome) {
  EXPECT_EQ(yaml::placeOfData("data/t.csv"), "data/t.csv");
  ::setenv("DTF_SENT_DATA", "/copies/.use-x/data", 1);
  ::setenv("DTF_STARTED_IN", "/home/me/project", 1);
  EXPECT_EQ(yaml::placeOfData("/d/../t.csv"), "/copies/.use-x/data/t.csv");
  EXPECT_EQ(yaml::placeOfData("data/t.csv"), "/copies/.use-x/data/home/me/project/data/t.csv");
  ::unsetenv("DTF_SENT_DATA");
  ::unsetenv("DTF_STARTED_IN");
}

// The lock of a killed agent is free; a live agent keeps its own.
TEST(SentFilesFolder, RemovesWhatNobodyHoldsAnyMore) {
  const testing::TemporaryFolder folder;
  utsname names{};
  ASSERT_EQ(::uname(&names), 0);
  const fs::path abandoned =
      fs::path(folder.path()) / (".sent-files-" + std::string(names.nodename) + "-abc");
  fs::create_directories(abandoned / "home");
  const SentFilesFolder first(folder.path(), {{"/c.yaml", "a"}});
  const SentFilesFolder second(folder.path(), {{"/c.yaml", "a"}});
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(first.path() / "c.yaml"));
  EXPECT_NE(first.path(), second.path());
}

// Agents of one job that share a run directory start together.
TEST(SentFilesFolder, ThoseThatAreMadeAtOnceLeaveEachOtherAlone) {
  constexpr int kAgents = 8;
  constexpr int kRounds = 100;
  const testing::TemporaryFolder folder;
  const auto agent = [&folder] {
    for (int round = 0; round < kRounds; ++round) {
      const SentFilesFolder files(folder.path(), {{"/c.yaml", "a"}, {"/d/t.yaml", "b"}});
      if (!fs::exists(files.path() / "c.yaml") || !fs::exists(files.path() / "d/t.yaml")) return 1;
    }
    return 0;
  };
  std::vector<pid_t> agents;
  for (int i = 0; i < kAgents; ++i) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      try {
        ::_exit(agent());
      } catch (const Error&) {
        ::_exit(2);
      }
    }
    agents.push_back(pid);
  }
  for (const pid_t pid : agents) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << "its files were gone, or could not be made";
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Keys are renewed: a task that reads meanwhile gets the old file or the new one, whole.
TEST(SentFilesFolder, AFileIsReplacedAtOnceAndOnlyOneThatWasSent) {
  const testing::TemporaryFolder folder;
  SentFilesFolder files(folder.path(), {{"/k/ps-0.pem", "old"}});
  const fs::path place = files.path() / "k/ps-0.pem";
  const fs::path old = folder.path() + "/old";
  fs::create_hard_link(place, old);
  files.replace("/k/ps-0.pem", "new");
  EXPECT_EQ(readFile(place, 10), "new");
  EXPECT_EQ(readFile(old, 10), "old") << "it was written over";
  EXPECT_EQ(fs::status(place).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  for (const char* other : {"/k/ps-1.pem", "/k/../k/ps-0.pem", "/k", "/../../old"})
    EXPECT_THROW(files.replace(other, "new"), Error) << other;
  EXPECT_EQ(std::distance(fs::directory_iterator(place.parent_path()), {}), 1);
}

TEST(SentFilesFolder, AFolderThatCantBeMadeIsNamed) {
  try {
    const SentFilesFolder files("/proc/no-such-folder/run", {});
    ADD_FAILURE() << "it was made";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("/proc/no-such-folder"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::launcher
