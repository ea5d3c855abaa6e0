// A host with too few threads, too little address space or no room on the disk. The task that fails
// ends with a code of the contract and names the limit.

#include <unistd.h>

#include <filesystem>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class LimitsTest : public ClusterTest {
 protected:
  LimitsTest() : file_(writeCluster({.ps = 1, .workers = 1, .steps = 20})) {}

  ProcessResult run(std::vector<std::string> argv) {
    argv.insert(argv.end(), {binary("dtf-launch"), file_});
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }
  static void expectRefusal(const ProcessResult& result, const std::string& limit) {
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find(limit), std::string::npos) << limit << "\n" << result.err;
    EXPECT_EQ(result.err.find("internal"), std::string::npos) << result.err;
  }

  const std::string file_;
};

// From too little for one thread to enough with a warning that it is slow.
TEST_F(LimitsTest, TooLittleAddressSpaceIsNamed) {
  int refused = 0;
  for (const int mib : {40, 50, 60, 70, 100, 150}) {
    SCOPED_TRACE(std::to_string(mib) + " MiB");
    const ProcessResult result = run({"prlimit", "--core=0", "--as=" + std::to_string(mib << 20)});
    if (result.exit_code == 0) {
      EXPECT_NE(result.err.find("event=address_space_small"), std::string::npos) << result.err;
      continue;
    }
    ++refused;
    expectRefusal(result, "of address space");
  }
  EXPECT_GT(refused, 0);
  expectNothingLeft();
}

// Root may start as many as it likes, so another user does. It may not write the log of calls that
// the gate's tests share.
TEST_F(LimitsTest, TooFewThreadsAreNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user without other processes";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  const auto as_nobody = [this](int threads) {
    return run({"env", "-u", "DTF_CALL_LOG", "setpriv", "--reuid=65534", "--regid=65534",
                "--clear-groups", "prlimit", "--nproc=" + std::to_string(threads)});
  };
  const ProcessResult enough = as_nobody(1000);
  if (enough.err.find("Permission denied") != std::string::npos)
    GTEST_SKIP() << "user 65534 can't run these programs: " << enough.err;
  ASSERT_EQ(enough.exit_code, 0) << enough.err;
  int refused = 0;
  for (const int threads : {1, 2, 3, 4, 6, 8}) {
    SCOPED_TRACE(threads);
    const ProcessResult result = as_nobody(threads);
    if (result.exit_code == 0) continue;
    ++refused;
    expectRefusal(result, "this user may have " + std::to_string(threads) + " threads");
  }
  EXPECT_GT(refused, 3);
}

// The job keeps each checkpoint until the disk is full. Its summary is written all the same.
TEST_F(LimitsTest, AJobThatFillsItsDiskStillHasASummary) {
  const std::string file =
      writeCluster({.ps = 1,
                    .workers = 1,
                    .steps = 20000,
                    .train_more = "  checkpoint: {every_steps: 1, keep: 0}\n"});
  const std::string runs = folder_.path() + "/runs";
  std::filesystem::create_directories(runs);
  // A fast job makes few checkpoints, of 32 KiB: a file leaves room for about ten.
  const std::string script =
      "mount -t tmpfs -o size=1m none " + runs + " || exit 99; " + "head -c 600000 /dev/zero >" +
      runs + "/other; " + binary("dtf-launch") + " " + file + "; code=$?; cat " + runs +
      "/job/summary.json; ls -A " + runs + "/job; df " + runs + "; exit $code";
  const ProcessResult result =
      runProcess({"unshare", "-m", "/bin/sh", "-c", script}, seconds(60), {}, folder_.path());
  if (result.exit_code == 99 || result.err.find("unshare:") != std::string::npos)
    GTEST_SKIP() << "this user may not mount: " << result.err;
  EXPECT_NE(result.err.find("No space left on device"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("\"outcome\":"), std::string::npos) << result.out << result.err;
  EXPECT_EQ(result.out.find(".summary.room"), std::string::npos) << result.out;
  EXPECT_NE(result.exit_code, 70) << result.err;
}

}  // namespace dtf::testing
