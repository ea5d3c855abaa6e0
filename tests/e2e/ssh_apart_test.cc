#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/apart_fixture.h"

// Jobs over a real sshd. The hosts share no disk with each other or with the launcher: each mounts
// its own run directory.

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kApartSteps = 8000;

TEST_F(SshApartTest, ALostPsComesBackFromTheChiefsHostAndEventsComeToTheLaunchers) {
  const std::string file = job(
      kApartSteps, "checkpoint: {every_steps: 500, gather: true}\nsummaries: {every_steps: 500}\n");
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("event=checkpoint step=", kPatienceApart)) << launcher.err();
  kill9(awaitPid("/psd", "--task 1"));
  const ProcessResult result = launcher.wait(kPatienceApart);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ps/1 lost its values: all go back"));
  EXPECT_EQ(summary()["global_step"], kApartSteps);
  const std::string digest = summary().stringAt("parameters_digest");
  EXPECT_TRUE(fs::exists(disk(1) / "checkpoints" / ("step-" + std::to_string(kApartSteps)) /
                         "shard-1-of-2.safetensors"));
  EXPECT_FALSE(fs::exists(disk(2) / "checkpoints"));
  EXPECT_GT(filesIn(disk(1) / "events"), 0u);
  const fs::path here = folder_.path() + "/runs/job";
  for (const auto& entry : fs::directory_iterator(disk(1) / "events")) {
    const fs::path copy = here / "events" / entry.path().filename();
    ASSERT_TRUE(fs::exists(copy)) << copy;
    EXPECT_EQ(fs::file_size(copy), entry.file_size()) << copy;
  }
  expectNoTask();

  // The same, undisturbed, on a disk that all share.
  const std::string text = folder_.read("job.yaml");
  folder_.write("job.yaml", text.substr(0, text.find("launch:")) + "train: train.yaml\n");
  fs::remove_all(here);
  ASSERT_EQ(launch(file, {"--set", "train.checkpoint.gather=false"}, kPatienceApart).exit_code, 0);
  EXPECT_EQ(summary()["parameters_digest"], digest);
}

TEST_F(SshApartTest, WithoutGatherItIsRefusedBeforeAnybodyTrains) {
  const ProcessResult result =
      launch(job(kApartSteps, "checkpoint: {every_steps: 100}\n"), {}, kPatienceApart);
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_THAT(result.err, HasSubstr("train.yaml:"));
  EXPECT_THAT(result.err, HasSubstr("error: ps/1 does not see the chief's files in"));
  EXPECT_THAT(result.err, HasSubstr("set `gather: true` here"));
  EXPECT_THAT(result.err, Not(HasSubstr("event=progress")));
  expectNoTask();
}

// worker/1's host has checkpoints of an earlier run with its chief there. The chief of the fresh
// job can't set them aside.
TEST_F(SshApartTest, AKilledWorkerOfAFreshJobReadsNoOldCheckpointOnItsHost) {
  const std::string file = sshJob(2, 20, 1);
  const auto writeTable = [this](double scale) {
    std::string table = "a,y\n";
    for (int i = 0; i < 40; ++i) table += fmt::format("{},{}\n", scale * i, i % 2);
    folder_.write("table.csv", table);
  };
  folder_.write("train.yaml",
                "model: {input: {shape: [1]}, layers: [dense: {units: 2}], "
                "loss: sparse_categorical_crossentropy}\n"
                "data:\n  train: {format: csv, files: [" +
                    folder_.path() +
                    "/table.csv], label_column: y, numeric_columns: {a: {standardize: true}}}\n"
                    "  batch_size: 10\nreplication: {mode: sync}\nsteps: 20\n"
                    "checkpoint: {every_steps: 100000000, gather: true}\n");
  writeTable(1);
  ASSERT_EQ(launch(file, {}, kPatienceApart).exit_code, 0);
  fs::copy(disk(1) / "checkpoints", disk(2) / "checkpoints", fs::copy_options::recursive);

  writeTable(10);
  Process launcher(
      launchCommand(file, {"--fresh", "--set", fmt::format("train.steps={}", kEndless)}), {},
      folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", kPatienceApart)) << launcher.err();
  kill9(awaitPid("/workerd", "--task 1"));
  EXPECT_TRUE(launcher.waitForOutput("worker/1 is back", kPatienceApart)) << launcher.err();
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(kPatienceApart);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(disk(1) / "checkpoints.old-1"));
  expectNoTask();
}

TEST_F(SshApartTest, AHostThatLacksTheDataIsNamed) {
  const std::string file = sshJob(2, 100);
  const std::string table = "runs/job/data/table.csv";
  folder_.write("train.yaml",
                "model: {input: {shape: [2]}, layers: [dense: {units: 2}], "
                "loss: sparse_categorical_crossentropy}\n"
                "data:\n  train: {format: csv, files: [" +
                    table + "], label_column: y}\n  batch_size: 2\nsteps: 100\n");
  for (const fs::path& folder : {fs::path(folder_.path()) / "runs/job", disk(1)}) {
    fs::create_directories(folder / "data");
    std::ofstream(folder / "data/table.csv") << "a,b,y\n1,2,0\n2,1,1\n1,3,0\n3,1,1\n";
  }
  const ProcessResult result = launch(file, {}, kPatienceApart);
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_THAT(result.err, HasSubstr(table + ": cannot open it: No such file or directory"))
      << result.err;
  EXPECT_THAT(result.err, HasSubstr("worker/1 exited with code 65"));
  EXPECT_THAT(result.err, HasSubstr("\n  host       127.0.0.2\n"));
  expectNoTask();
}

}  // namespace dtf::testing
