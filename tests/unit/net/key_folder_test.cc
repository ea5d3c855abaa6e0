#include "common/net/key_folder.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "common/base/error.h"
#include "common/base/file.h"
#include "tests/unit/net/key_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

mode_t modeOf(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(KeyFolder, MakesACaAndKeysThatOnlyTheirOwnerReads) {
  JobKeys job("mnist");
  const KeyInFolder key = job.folder().issue("worker/3", "10.0.0.7", {});
  EXPECT_EQ(key.name, (CertifiedName{"mnist", "worker/3"}));
  EXPECT_EQ(key.file, "worker-3.pem");
  EXPECT_FALSE(key.expired);
  EXPECT_EQ(modeOf(job.path()), 0700u);
  for (const char* file : {"ca.pem", "ca-key.pem", "worker-3.pem"})
    EXPECT_EQ(modeOf(job.path() / file), 0600u) << file;
  std::vector<std::string> files;
  for (const KeyInFolder& listed : KeyFolder(job.path()).list()) files.push_back(listed.file);
  EXPECT_EQ(files, (std::vector<std::string>{"ca.pem", "worker-3.pem"}));
}

TEST(KeyFolder, RenewsEveryKeyForTheSameNames) {
  JobKeys job;
  job.folder().issue("ps/0", "ps.example.org", {});
  job.folder().issue("client", "", {std::chrono::hours(-48), std::chrono::hours(-24)});
  const std::string before = readFile(job.path() / "ps-0.pem", 64 << 10);
  const std::vector<KeyInFolder> renewed = KeyFolder(job.path()).renew({});
  ASSERT_EQ(renewed.size(), 2u);
  EXPECT_EQ(renewed[0].name.task, "client");
  EXPECT_FALSE(renewed[0].expired);
  EXPECT_EQ(renewed[1].name.task, "ps/0");
  EXPECT_NE(readFile(job.path() / "ps-0.pem", 64 << 10), before);
}

TEST(KeyFolder, RefusesWhatItCantDoInWords) {
  JobKeys job;
  const auto messageOf = [](auto action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(messageOf([&] { KeyFolder::create(job.path(), "mnist", {}); }),
              HasSubstr("has a CA already"));
  EXPECT_THAT(messageOf([&] { KeyFolder::create(job.path() / "new", "a/b", {}); }),
              HasSubstr("'a/b' can't name a job"));
  for (const char* task : {"ps", "ps/", "ps/01", "ps/-1", "chief/0", "ca", "worker/1,DNS:x"})
    EXPECT_THAT(messageOf([&] { job.folder().issue(task, "", {}); }), HasSubstr("is not a task"))
        << task;
  EXPECT_THAT(messageOf([&] { job.folder().issue("ps/0", "a,DNS:b", {}); }),
              HasSubstr("is not a host name"));
  std::filesystem::remove(job.path() / "ca-key.pem");
  EXPECT_THAT(messageOf([&] { job.folder().issue("ps/0", "", {}); }),
              HasSubstr("ca-key.pem is missing"));
  EXPECT_THAT(messageOf([&] { KeyFolder("/nonexistent"); }), HasSubstr("dtf-launch keys init"));
}

TEST(KeyFolder, ACasKeyThatOthersCanReadSignsNothing) {
  JobKeys job;
  ::chmod((job.path() / "ca-key.pem").c_str(), 0644);
  try {
    job.folder().issue("ps/0", "", {});
    FAIL() << "it has signed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
    EXPECT_THAT(error.message(), HasSubstr("ca-key.pem can be read by others (mode 0644): chmod "
                                           "600 "));
  }
  EXPECT_FALSE(std::filesystem::exists(job.path() / "ps-0.pem"));
}

// The folder's contents belong to somebody: create() neither changes nor adds files.
TEST(KeyFolder, AFolderThatHoldsSomethingIsRefusedAndLeftAsItIs) {
  const std::filesystem::path folder = newFolder();
  ::chmod(folder.c_str(), 0755);
  std::ofstream(folder / "notes.txt") << "mine";
  try {
    KeyFolder::create(folder, "mnist", {});
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.message(), HasSubstr("is not empty"));
  }
  EXPECT_EQ(modeOf(folder), 0755u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove(folder / "notes.txt");
  KeyFolder::create(folder, "mnist", {});
  EXPECT_EQ(modeOf(folder), 0700u) << "an empty one is replaced";
  std::filesystem::remove_all(folder);
}

TEST(KeyFolder, AMakingThatIsCutOffLeavesNoFolderAndCanBeRepeated) {
  const std::filesystem::path parent = newFolder(), folder = parent / "keys";
  EXPECT_THROW(KeyFolder::create(folder, "mnist", {},
                                 [](KeyFolder& made) { made.issue("no task", "", {}); }),
               Error);
  EXPECT_TRUE(std::filesystem::is_empty(parent));
  const pid_t killed = ::fork();
  if (killed == 0) {
    KeyFolder::create(folder, "mnist", {}, [](KeyFolder& made) {
      made.issue("ps/0", "", {});
      ::kill(::getpid(), SIGKILL);
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(folder));
  KeyFolder::create(folder, "mnist", {}, [](KeyFolder& made) { made.issue("ps/0", "", {}); });
  EXPECT_EQ(KeyFolder(folder).list().size(), 2u);
  std::filesystem::remove_all(parent);
}

}  // namespace
}  // namespace dtf::net::testing
