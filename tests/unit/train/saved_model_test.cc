#include "common/train/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "common/base/error.h"
#include "common/model/model_text.h"
#include "common/train/checkpointer.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

using checkpoint::CheckpointFolder;
using checkpoint::kFolder;
using checkpoint::VariableInfo;
using ::testing::HasSubstr;

std::vector<VariableInfo> softmaxVariables(const std::vector<std::string>& slots) {
  return {{"softmax/weights", Shape{784, 10}, slots}, {"softmax/biases", Shape{10}, slots}};
}

class SavedModelTest : public ::testing::Test {
 protected:
  SavedModelTest() {
    disk_.makeFolder(kFolder.parent_path());
    disk_.syncFolder("/");
    folder_.prepare();
  }

  void save(uint64_t step, const std::vector<std::string>& slots = {}, uint32_t ps_tasks = 3) {
    checkpoint::save(disk_, folder_, step, ps_tasks, random_, softmaxVariables(slots));
  }

  SavedModel load(const std::string& which = "") {
    return loadSavedModel(disk_, kFolder, which, model_);
  }

  Error refusal(const std::string& which = "") {
    try {
      load(which);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "must throw";
    return {ErrorCode::kInternal, ""};
  }

  testing::SimulatedDisk disk_;
  CheckpointFolder folder_{disk_, kFolder, Incarnation{9}};
  Random random_{testing::testSeed(), 0};
  model::ModelSpec model_ = model::softmaxModel();
};

void expectValues(const SavedModel& saved, const std::string& slot, uint64_t step) {
  for (const model_files::NamedTensor& variable : saved.variables) {
    const std::span<const float> values = variable.value.as<float>();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]),
                std::bit_cast<uint32_t>(checkpoint::valueAt(variable.name + slot, i, step)))
          << variable.name << " " << i;
  }
}

TEST_F(SavedModelTest, IsTheNewestCheckpointWithItsPartsJoined) {
  save(3);
  save(7);
  const SavedModel saved = load();
  EXPECT_EQ(saved.step, 7u);
  EXPECT_EQ(saved.checkpoint, kFolder / "step-7");
  EXPECT_FALSE(saved.moving_averages);
  ASSERT_EQ(saved.variables.size(), 2u);
  EXPECT_EQ(saved.variables[0].name, "softmax/weights") << "the order of the model";
  EXPECT_EQ(saved.variables[0].value.shape(), (Shape{784, 10}));
  EXPECT_EQ(saved.values()[1], saved.variables[1].value.as<float>().data());
  expectValues(saved, "", 7);
}

TEST_F(SavedModelTest, HoldsTheMovingAveragesWhereTheOptimizerKeptThem) {
  save(7, {"Adam", "Adam_1", "ExponentialMovingAverage"});
  const SavedModel saved = load();
  EXPECT_TRUE(saved.moving_averages);
  expectValues(saved, "/ExponentialMovingAverage", 7);
}

TEST_F(SavedModelTest, IsTheOneThatIsNamedByItsStepOrItsFolder) {
  save(3);
  save(7);
  for (const std::string which : {"3", "/run/checkpoints/step-3"}) {
    EXPECT_EQ(load(which).step, 3u) << which;
    expectValues(load(which), "", 3);
  }
  const Error missing = refusal("5");
  EXPECT_EQ(missing.code(), ErrorCode::kBadData);
  EXPECT_THAT(missing.message(),
              HasSubstr("/run/checkpoints/step-5; there are checkpoints of the steps 3, 7"));
  EXPECT_THAT(refusal("/elsewhere").message(), HasSubstr("there is no checkpoint /elsewhere"));
}

TEST_F(SavedModelTest, SaysThatThereIsNone) {
  const Error none = refusal();
  EXPECT_EQ(none.code(), ErrorCode::kBadData);
  EXPECT_THAT(none.message(), HasSubstr("there is no checkpoint in /run/checkpoints: train first"));
}

TEST_F(SavedModelTest, PassesADamagedOneOverAndNamesIt) {
  save(3);
  save(7);
  const std::filesystem::path shard = kFolder / "step-7" / "shard-1-of-3.safetensors";
  std::string bytes = disk_.contents(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  disk_.setContents(shard, bytes);
  const SavedModel saved = load();
  EXPECT_EQ(saved.step, 3u);
  ASSERT_EQ(saved.rejected.size(), 1u);
  EXPECT_EQ(saved.rejected[0].step, 7u);
  const Error named = refusal("7");
  EXPECT_EQ(named.code(), ErrorCode::kBadData);
  EXPECT_THAT(named.message(), HasSubstr("step-7 can't be used:\n  "));
  EXPECT_THAT(named.message(), HasSubstr(shard.string()));
  disk_.setContents(kFolder / "step-3" / "manifest.json", "{}");
  EXPECT_THAT(refusal().message(), HasSubstr("none of the checkpoints in /run/checkpoints can be"));
}

TEST_F(SavedModelTest, RefusesAnotherModel) {
  save(7);
  model_.layers[1] = model::dense("softmax", 11);
  const Error shape = refusal();
  EXPECT_EQ(shape.code(), ErrorCode::kBadConfig);
  EXPECT_THAT(shape.message(), HasSubstr("step-7 is a checkpoint of another model:\n"));
  EXPECT_THAT(shape.message(), HasSubstr("softmax/biases has shape [10] in the checkpoint, [11]"));
}

// Equal variables don't distinguish a relu from a tanh.
TEST_F(SavedModelTest, RefusesAModelThatComputesOtherwise) {
  const auto values = checkpoint::cutModel(softmaxVariables({}), 1, 7, random_);
  const std::filesystem::path attempt = kFolder / folder_.beginAttempt(7);
  checkpoint::Manifest manifest = checkpoint::manifestFor(
      softmaxVariables({}), 7, {checkpoint::writeShard(disk_, attempt, 0, 1, values[0].parts)});
  manifest.extra[kModelKey] = model::modelText(model_);
  folder_.commit(manifest);
  EXPECT_EQ(load().step, 7u);
  model_.layers[1] = model::dense("softmax", 10, model::Activation::kTanh);
  EXPECT_THAT(refusal().message(), HasSubstr("activation=tanh"));
}

// A disk that calls a test's function when a file is opened.
class EventfulDisk final : public FileSystem {
 public:
  EventfulDisk(FileSystem& disk, std::function<void(const Path&)> on_open)
      : disk_(disk), on_open_(std::move(on_open)) {}
  std::unique_ptr<ReadableFile> open(const Path& file) override {
    on_open_(file);
    return disk_.open(file);
  }
  std::vector<FolderEntry> list(const Path& folder) override { return disk_.list(folder); }
  bool exists(const Path& path) override { return disk_.exists(path); }
  std::unique_ptr<WritableFile> create(const Path& file) override { return disk_.create(file); }
  void makeFolder(const Path& folder) override { disk_.makeFolder(folder); }
  void rename(const Path& from, const Path& to) override { disk_.rename(from, to); }
  void removeFile(const Path& file) override { disk_.removeFile(file); }
  void removeFolder(const Path& folder) override { disk_.removeFolder(folder); }
  void syncFolder(const Path& folder) override { disk_.syncFolder(folder); }

 private:
  FileSystem& disk_;
  const std::function<void(const Path&)> on_open_;
};

TEST_F(SavedModelTest, GoesOnWithTheNextOneWhenAJobRemovesWhatIsBeingRead) {
  save(3);
  bool removed = false;
  EventfulDisk disk(disk_, [&](const std::filesystem::path& file) {
    if (removed || file.filename() != "shard-2-of-3.safetensors") return;
    removed = true;
    save(4);
    folder_.prune({.keep = 1});
  });
  const SavedModel saved = loadSavedModel(disk, kFolder, "", model_);
  EXPECT_TRUE(removed);
  EXPECT_EQ(saved.step, 4u);
  expectValues(saved, "", 4);
}

}  // namespace
}  // namespace dtf::train
