#include "common/train/saved_preparation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/data/read_signature.h"
#include "common/train/checkpointer.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/train/fake_ps.h"

namespace dtf::train {
namespace {

class SavedPreparation : public ::testing::Test {
 protected:
  SavedPreparation() {
    disk_.makeFolder(kRunDir);
    disk_.syncFolder("/");
    job_.job = "test";
    job_.run_dir = kRunDir;
    job_.cluster.worker.resize(1);
    job_.train.emplace().checkpoint.emplace();
    cluster::DatasetSpec& table = job_.train->data.train;
    table.format = cluster::DatasetSpec::Format::kCsv;
    table.files = {folder_.path() / "t.csv"};
    table.files_marks = {{"job.yaml", 5, 9}};
    table.csv.targets = {"y"};
    table.csv.numeric = {{"x"}};
    table.csv.numeric[0].standardize = true;
    writeTable("x,y\n1,0\n3,0\n");
  }

  void writeTable(const std::string& text) { folder_.write("t.csv", text); }

  void save(uint64_t step = 20) {
    CheckpointerOptions options;
    options.job = "test";
    options.run_dir = kRunDir;
    options.incarnation = Incarnation{1};
    options.spec.emplace();
    options.signature = data::readSignature(job_.train->data.train);
    Checkpointer checkpointer(disk_, clock_, ps_,
                              oneVariable(cluster::ReplicationSpec::Mode::kSync, 40), options);
    ps_.setPosition({step});
    checkpointer.save(Motion::kAtRest);
  }

  double mean(bool fresh) {
    return preparedTraining(disk_, job_, fresh).data.csv.learned.value().features.at(0).mean;
  }

  static std::filesystem::path fileOf(uint64_t step, const std::string& name) {
    return kRunDir / "checkpoints" / ("step-" + std::to_string(step)) / name;
  }

  ManualClock clock_;
  data::TemporaryFolder folder_;
  testing::SimulatedDisk disk_;
  FakePs ps_{disk_, clock_};
  cluster::JobSpec job_;
};

TEST_F(SavedPreparation, TheNumbersOfTheCheckpointAreNotLearnedAgain) {
  EXPECT_EQ(mean(false), 2) << "there is no checkpoint";
  save();
  writeTable("x,y\n1,0\n3,0\n5,0\n");
  EXPECT_EQ(mean(false), 2);
  EXPECT_EQ(mean(true), 3) << "the job begins anew";
  job_.train->checkpoint.reset();
  EXPECT_EQ(mean(false), 3) << "the job reads no checkpoint";
}

TEST_F(SavedPreparation, TheStepOfTheCheckpointIsReturnedWithItsNumbers) {
  EXPECT_EQ(preparedTraining(disk_, job_, false).saved_step, std::nullopt);
  save(20);
  EXPECT_EQ(preparedTraining(disk_, job_, false).saved_step, 20u);
  EXPECT_EQ(preparedTraining(disk_, job_, true).saved_step, std::nullopt);
  job_.train->data.train.csv.numeric[0].log1p = true;
  EXPECT_EQ(preparedTraining(disk_, job_, false).saved_step, std::nullopt)
      << "the checkpoint has another preparation";
}

TEST_F(SavedPreparation, TheManifestIsEnough) {
  save();
  disk_.removeFile(fileOf(20, "shard-0-of-1.safetensors"));
  writeTable("x,y\n1,0\n3,0\n5,0\n");
  EXPECT_EQ(mean(false), 2) << "the shards may be on other hosts";
}

TEST_F(SavedPreparation, ADamagedManifestLeavesTheOneBeforeIt) {
  save(10);
  writeTable("x,y\n1,0\n3,0\n5,0\n");
  save(20);
  EXPECT_EQ(mean(false), 3);
  disk_.setContents(fileOf(20, "manifest.json"), "{");
  EXPECT_EQ(mean(false), 2);
  disk_.setContents(fileOf(20, "manifest.json"), disk_.contents(fileOf(10, "manifest.json")));
  disk_.setContents(fileOf(10, "manifest.json"), "{");
  EXPECT_EQ(mean(false), 3) << "a manifest of another step is damage, too";
}

TEST_F(SavedPreparation, AnotherPreparationOfTheFileLearnsItsOwnNumbers) {
  save();
  writeTable("x,y\n1,0\n3,0\n5,0\n");
  job_.train->data.train.csv.numeric[0].log1p = true;
  EXPECT_NEAR(mean(false), (std::log(2) + std::log(4) + std::log(6)) / 3, 1e-6)
      << "the checkpoint will be refused";
}

}  // namespace
}  // namespace dtf::train
