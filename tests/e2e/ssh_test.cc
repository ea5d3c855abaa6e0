#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/e2e/ssh_fixture.h"

// Jobs over a real sshd and the system's ssh client, for behaviour that no fake has. The launcher's
// decisions are tested with a fake client in tests/unit/launcher/ssh/ssh_launch_test.cc.

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr int kForEver = 100'000'000;

TEST_F(SshTest, AJobOnTwoHostsTrainsToItsEnd) {
  const std::string file = sshJob(2, 400);
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], 400);
  EXPECT_GT(summary()["eval"]["accuracy"].asDouble(), 0.3);
  for (const char* log : {"ps-0.1.log", "ps-1.1.log", "worker-0.1.log", "worker-1.1.log"})
    EXPECT_GT(fs::file_size(folder_.path() + "/runs/job/logs/" + log), 0u) << log;
  expectNoTask();
  for (const auto& entry : fs::directory_iterator(folder_.path() + "/runs/job"))
    EXPECT_EQ(entry.path().filename().string().find(".sent-files"), std::string::npos);
}

TEST_F(SshTest, AJobWithoutPsTrainsToItsEnd) {
  const std::string file = sshJob(3, 200, kNoPs);
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("3 workers, which host the parameters"));
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], 200);
  for (const char* log : {"worker-0.1.log", "worker-1.1.log", "worker-2.1.log"})
    EXPECT_GT(fs::file_size(folder_.path() + "/runs/job/logs/" + log), 0u) << log;
  expectNoTask();
}

// Its share of the parameters is with another worker, too, and the step goes on.
TEST_F(SshTest, AKilledWorkerOfAJobWithoutPsIsStartedAgain) {
  Process launcher = start(sshJob(3, kForEver, kNoPs));
  ASSERT_TRUE(launcher.waitForOutput("all 3 tasks are ready", kPatience)) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("step ", kPatience)) << launcher.err();
  kill9(awaitPid("/workerd", "--task 1"));
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kPatience)) << launcher.err();
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("all go back")));
  expectNoTask();
}

// And neither the CA's nor another host's.
TEST_F(SshTest, EachHostIsSentTheKeysOfItsOwnTasks) {
  const std::string file = sshJob(2, kForEver, 0, "keys: keys\n");
  const std::string keys = folder_.path() + "/keys";
  const ProcessResult made =
      runProcess({binary("dtf-launch"), "keys", "init", keys, "--cluster", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  Process launcher = start(file);
  ASSERT_TRUE(launcher.waitForOutput("all 4 tasks are ready", kPatience)) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("step ", kPatience)) << launcher.err();
  std::vector<std::string> sent;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() + "/runs/job")) {
    if (entry.path().extension() != ".pem") continue;
    sent.push_back(entry.path().filename());
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_THAT(sent, ::testing::UnorderedElementsAre("ca.pem", "ca.pem", "ps-0.pem", "ps-1.pem",
                                                    "worker-0.pem", "worker-1.pem"));
  EXPECT_THAT(folder_.read("runs/job/logs/ps-0.1.log"), HasSubstr("certificate=worker/1"));
  // Renewed here, they are renewed there.
  ASSERT_EQ(runProcess({binary("dtf-launch"), "keys", "renew", keys}).exit_code, 0);
  for (const std::string host : {"127.0.0.1", "127.0.0.2"})
    ASSERT_TRUE(
        launcher.waitForOutput("the renewed keys of its tasks were sent to " + host, kPatience))
        << launcher.err();
  // The order has been sent; the far end carries it out a little later.
  const std::string renewed = folder_.read("keys/ps-0.pem");
  const auto is_there = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() + "/runs/job")) {
      if (entry.path().filename() != "ps-0.pem") continue;
      std::ifstream file_there(entry.path());
      if (std::string(std::istreambuf_iterator<char>(file_there), {}) == renewed) return true;
    }
    return false;
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_there() && std::chrono::steady_clock::now() < end) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(is_there());
  launcher.signal(SIGTERM);
  launcher.wait(kPatience);
  expectNoTask();
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() + "/runs/job"))
    EXPECT_NE(entry.path().extension(), ".pem") << entry.path();
}

// The launcher resolves `~` and relative paths here, and sends the files.
TEST_F(SshTest, ATrainFileIsFoundByWhatItsNameMeansHere) {
  const std::string file = sshJob(1, 20);
  fs::create_directories(folder_.path() + "/my home");
  fs::rename(folder_.path() + "/train.yaml", folder_.path() + "/my home/it's.yaml");
  std::ifstream written(file);
  const std::string text{std::istreambuf_iterator<char>(written), std::istreambuf_iterator<char>()};
  const std::string old = "train: train.yaml";
  folder_.write("job.yaml",
                std::string(text).replace(text.find(old), old.size(), "train: \"~/it's.yaml\""));
  Process at_home(launchCommand(file), {{"HOME", folder_.path() + "/my home"}}, folder_.path());
  const ProcessResult found = at_home.wait(kPatience);
  EXPECT_EQ(found.exit_code, 0) << found.err;
  folder_.write("job.yaml", text);
  Process here(launchCommand(file, {"--set", "train=./it's.yaml", "--set", "train.steps=30"}), {},
               folder_.path() + "/my home");
  const ProcessResult result = here.wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 30);
}

TEST_F(SshTest, AKilledTaskIsStartedAgain) {
  Process launcher = start(sshJob(2, kForEver));
  ASSERT_TRUE(launcher.waitForOutput("all 4 tasks are ready", kPatience)) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("step ", kPatience)) << launcher.err();
  // It may be any worker: a chief is started again, too.
  kill9(awaitPid("/workerd"));
  ASSERT_TRUE(launcher.waitForOutput(" is back", kPatience)) << launcher.err();
  EXPECT_THAT(launcher.err(), HasSubstr("was killed by SIGKILL (signal 9)"));
  launcher.signal(SIGTERM);
  launcher.wait(kPatience);
  expectNoTask();
}

// The ps is on the other host, and goes on.
TEST_F(SshTest, AHostWhoseSshClientOrAgentIsKilledComesBack) {
  Process launcher = start(sshJob(2, kForEver, 1));
  ASSERT_TRUE(launcher.waitForOutput("all 3 tasks are ready", kPatience)) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("step ", kPatience)) << launcher.err();
  kill9(awaitPid("ssh", "-- 127.0.0.2"));
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kPatience)) << launcher.err();
  EXPECT_THAT(launcher.err(), HasSubstr("worker/1 was lost with its host, 127.0.0.2"));
  const pid_t agent = parentOf(awaitPid("/workerd", "--task 1"));
  EXPECT_THAT(pidsOf("/dtf-agent"), ::testing::Contains(agent));
  kill9(agent);
  ASSERT_TRUE(launcher.waitForOutput("(2 of 10)", kPatience)) << launcher.err();
  launcher.signal(SIGTERM);
  launcher.wait(kPatience);
  expectNoTask();
}

// As with a cut cable, neither end gets a message: each ends by its own clock.
TEST_F(SshTest, AHostThatIsSilentForTheLeaseIsLostAtBothEnds) {
  Process launcher = start(sshJob(2, kForEver, 1, "timeouts: {lease_seconds: 3}\n"));
  ASSERT_TRUE(launcher.waitForOutput("all 3 tasks are ready", kPatience)) << launcher.err();
  const pid_t worker = awaitPid("/workerd", "--task 1");
  const pid_t client = awaitPid("ssh", "-- 127.0.0.2");
  ASSERT_GT(client, 1);
  ASSERT_EQ(::kill(client, SIGSTOP), 0);
  ASSERT_TRUE(launcher.waitForOutput("its agent has not answered for longer", kPatience))
      << launcher.err();
  EXPECT_THAT(pidsOf("/workerd"), ::testing::Not(::testing::Contains(worker)))
      << "the agent has ended it before its launcher gave it up";
  launcher.signal(SIGTERM);
  launcher.wait(kPatience);
  expectNoTask();
}

TEST_F(SshTest, NobodyOutlivesAKilledLauncher) {
  Process launcher = start(sshJob(2, kForEver));
  ASSERT_TRUE(launcher.waitForOutput("all 4 tasks are ready", kPatience)) << launcher.err();
  EXPECT_EQ(pidsOf("/workerd").size(), 2u);
  kill9(launcher.pid());
  launcher.wait(kPatience);
  expectNoTask();
}

TEST_F(SshTest, AStopSavesAndEndsAsOnOneHost) {
  const std::string file = sshJob(2, kForEver);
  std::ofstream(folder_.path() + "/train.yaml", std::ios::app)
      << "checkpoint: {every_steps: 500}\n";
  Process launcher = start(file);
  ASSERT_TRUE(launcher.waitForOutput("step ", kPatience)) << launcher.err();
  const ProcessResult stopped =
      runProcess({binary("dtf-launch"), "stop", file}, kPatience, {}, folder_.path());
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(launcher.wait(kPatience).exit_code, 0);
  EXPECT_EQ(summary()["outcome"], "stopped");
  expectNoTask();
}

TEST_F(SshTest, AWrongKeyIsSaidSo) {
  folder_.write("authorized", "");
  const ProcessResult result = launch(sshJob(2, 10));
  EXPECT_EQ(result.exit_code, 77) << result.err;
  EXPECT_THAT(result.err, HasSubstr("does not let this user in without a password"));
  EXPECT_THAT(result.err, HasSubstr("job.yaml:4:"));
}

TEST_F(SshTest, AChangedHostKeyIsSaidSo) {
  ASSERT_EQ(launch(sshJob(1, 10)).exit_code, 0);
  sshd_.reset();
  fs::remove(folder_.path() + "/host_key");
  keygen("host_key");
  const int before = port_;
  startSshd();
  if (port_ != before) GTEST_SKIP() << "the port was taken meanwhile: another host to ssh";
  const ProcessResult result = launch(sshJob(1, 10), {"--fresh"});
  EXPECT_EQ(result.exit_code, 77) << result.err;
  EXPECT_THAT(result.err, HasSubstr("its host key has changed"));
}

TEST_F(SshTest, AnAgentThatIsMissingOrNobodyMayRunIsSaidSo) {
  fs::permissions(agent_folder_ + "/dtf-agent", fs::perms::owner_read);
  ProcessResult result = launch(sshJob(1, 10));
  EXPECT_EQ(result.exit_code, 77) << result.err;
  EXPECT_THAT(result.err, HasSubstr("can't be run"));
  fs::remove(agent_folder_ + "/dtf-agent");
  result = launch(sshJob(1, 10));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_THAT(result.err, HasSubstr("there is no dtf-agent in launch.binary_dir"));
}

TEST_F(SshTest, AHostWithoutSshIsSaidSo) {
  sshd_.reset();
  const ProcessResult result = launch(sshJob(2, 10));
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1: nothing listens at its ssh port"));
  EXPECT_THAT(result.err, HasSubstr("127.0.0.2: nothing listens at its ssh port"));
}

TEST_F(SshTest, TheAgentIsNothingToBeRunByHand) {
  const std::string agent = agent_folder_ + "/dtf-agent";
  EXPECT_THAT(runProcess({agent, "--version"}).out, HasSubstr("dtf-agent "));
  EXPECT_EQ(runProcess({agent, "--help"}).exit_code, 0);
  EXPECT_EQ(runProcess({agent, "x"}).exit_code, 2);
  EXPECT_EQ(runProcess({agent}).exit_code, 2) << "its stdin is no pipe";
}

}  // namespace dtf::testing
