#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "common/checkpoint/verify.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"
#include "tests/unit/launcher/ssh/ssh_launch_fixture.h"

// Launches that fetch the trained model at the end.

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

// The host's run directory is another folder, with a checkpoint of 4 MB.
class SshModel : public SshLaunch {
 protected:
  void SetUp() override {
    if (std::system("unshare -rm true") != 0)
      GTEST_SKIP() << "this user can't mount a disk of its own (unshare -rm)";
    fs::create_directory(folder_ / "node");
    checkpoint::CheckpointFolder folder(realFileSystem(), folder_ / "node/checkpoints",
                                        Incarnation{1});
    folder.prepare();
    Random random{1};
    checkpoint::save(realFileSystem(), folder, 120, 1, random, {{"v", Shape{1'000'000}, {}}});
  }
  void agent(const std::string& end) {
    ssh("exec unshare -rm sh -c 'mount --bind node run && ./dtf-agent" + end + "'");
  }
  cluster::JobSpec modelJob() {
    return sshJob({"ready"}, {"ready;notify {\"event\":\"checkpoint\",\"step\":120};"
                              "notify {\"event\":\"result\",\"outcome\":\"done\"}"});
  }
};

TEST_F(SshModel, ComesToTheLaunchersHost) {
  agent("");
  EXPECT_EQ(run(modelJob()), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("copying the checkpoint of step 120, 3.8 MiB, from 127.0.0.2\n"));
  const fs::path here = folder_ / "run/checkpoints/step-120";
  EXPECT_THAT(out(), HasSubstr("model      " + here.string() + "\n"));
  EXPECT_TRUE(
      checkpoint::verifyCheckpoint(realFileSystem(), here, checkpoint::VerifyDepth::kFull).whole());
}

// The chief's host sends the rest of the model only after that.
TEST_F(SshModel, AnotherHostThatAnswersLosesItsConnection) {
  ssh(R"(agent="mount --bind node run && exec ./dtf-agent"
await() { until grep -q "$1" err; do sleep 0.05; done; }
if [ $host = 127.0.0.1 ]; then
  exec 3<&0
  unshare -rm sh -c "$agent" <&3 &
  await "copying the checkpoint"
  printf '0\000\000\000\001{"report":"fetched","found":"absent","bytes":0}'
  wait
  exit
fi
unshare -rm sh -c "$agent" | (stdbuf -o0 head -c 3000000; await "not requested"; cat))");
  EXPECT_EQ(run(modelJob()), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("127.0.0.1: a file that was not requested\n"));
  EXPECT_TRUE(checkpoint::verifyCheckpoint(realFileSystem(), folder_ / "run/checkpoints/step-120",
                                           checkpoint::VerifyDepth::kFull)
                  .whole());
}

TEST_F(SshModel, AConnectionThatEndsHalfWayLeavesNothingAndTheJobIsDone) {
  agent(" | stdbuf -o0 head -c 3000000");
  EXPECT_EQ(run(modelJob()), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("warning: the model was not copied here: the connection to "
                               "127.0.0.2 is lost\n  it is on 127.0.0.2, in "));
  EXPECT_TRUE(fs::is_empty(folder_ / "run/checkpoints"));
  EXPECT_FALSE(summary().contains("model"));
  expectNoProcess(5);
}

TEST_F(SshModel, WhoWantsToWaitNoLongerInterruptsIt) {
  agent(" | (stdbuf -o0 head -c 3000000; cat > /dev/null)");
  const pid_t launcher = start(modelJob());
  awaitError(", from 127.0.0.2");
  ::kill(launcher, SIGINT);
  EXPECT_EQ(await(launcher), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("the model was not copied here: it was interrupted\n"));
  EXPECT_TRUE(fs::is_empty(folder_ / "run/checkpoints"));
  EXPECT_EQ(summary()["outcome"], "done");
}

}  // namespace dtf::launcher
