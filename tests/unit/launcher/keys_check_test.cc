#include "launcher/keys_check.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "common/net/key_folder.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class KeysCheck : public ::testing::Test {
 protected:
  std::string keys() const { return folder_.path() + "/keys"; }
  // Makes a CA, and keys for `tasks`.
  void makeKeys(const std::vector<std::string>& tasks, const std::string& job = "job") const {
    net::KeyFolder::create(keys(), job, {}, [&](net::KeyFolder& made) {
      for (const std::string& task : tasks) made.issue(task, "localhost", {});
    });
  }
  // Returns the mistakes in the order of the file; empty: none. Tasks on "there" don't run here.
  std::string mistakes(const std::string& more = "", ErrorCode code = ErrorCode::kBadData) const {
    const std::string file = folder_.write(
        "c.yaml",
        "cluster: {ps: [localhost:1], worker: [localhost:2, there:3]}\nkeys: keys\n" + more);
    yaml::Report report;
    cluster::JobMarks marks;
    const cluster::JobSpec job = cluster::loadCluster(file, {}, report, &marks);
    checkKeys(
        job, marks.keys, [](const auto& address) { return address.host == "localhost"; }, report);
    try {
      report.throwIfAny();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      return error.message();
    }
  }
  std::string place() const { return folder_.path() + "/c.yaml:2:7: error: "; }

  testing::TemporaryFolder folder_;
};

TEST_F(KeysCheck, KeysOfThisHostsTasksAreEnough) {
  makeKeys({"ps/0", "worker/0"});
  EXPECT_EQ(mistakes(), "");
}

TEST_F(KeysCheck, ToOtherHostsAllAreSentFromHere) {
  makeKeys({"ps/0", "worker/0"});
  for (const char* launch : {"launch: {via: ssh}\n", "launch: {via: slurm}\n"})
    EXPECT_THAT(mistakes(launch),
                AllOf(StartsWith(place() + keys() + " has no key for worker/1: "),
                      HasSubstr("dtf-launch keys issue " + keys() + " worker/1\n")))
        << launch;
}

TEST_F(KeysCheck, AMissingFolderAndMissingKeysAreNamed) {
  EXPECT_THAT(mistakes(),
              StartsWith(place() + keys() +
                         " is not a folder of keys: make one with dtf-launch keys init " + keys() +
                         " --cluster " + folder_.path() + "/c.yaml"));
  makeKeys({"client"});
  EXPECT_THAT(mistakes(), AllOf(StartsWith(place() + keys() + " has no key for ps/0, worker/0: "),
                                HasSubstr("make them on"), HasSubstr(" ps/0 worker/0")));
}

TEST_F(KeysCheck, AMissingCaIsToldOnce) {
  makeKeys({"ps/0", "worker/0"});
  std::filesystem::remove(keys() + "/ca.pem");
  const std::string told = mistakes();
  EXPECT_THAT(told, StartsWith(place() + keys() + "/ca.pem is missing"));
  EXPECT_EQ(told.find("is missing"), told.rfind("is missing")) << told;
}

TEST_F(KeysCheck, KeysOfAnotherJobAreRefused) {
  makeKeys({"ps/0", "worker/0"}, "other");
  EXPECT_THAT(mistakes("", ErrorCode::kBadConfig),
              StartsWith(place() + "the keys in " + keys() +
                         " are of job 'other', but this is job "
                         "'job'"));
}

TEST_F(KeysCheck, AKeyThatOthersMayReadIsRefused) {
  makeKeys({"ps/0", "worker/0"});
  ASSERT_EQ(::chmod((keys() + "/worker-0.pem").c_str(), 0644), 0);
  EXPECT_THAT(mistakes("", ErrorCode::kPermission),
              StartsWith(place() + keys() + "/worker-0.pem can be read by others (mode 0644)"));
}

}  // namespace

}  // namespace dtf::launcher
