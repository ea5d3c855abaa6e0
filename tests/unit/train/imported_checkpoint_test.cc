#include "common/train/imported_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "common/base/error.h"
#include "common/checkpoint/restore.h"
#include "common/train/initial_values.h"
#include "common/train/saved_model.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = cluster::ReplicationSpec::Mode;

class ImportedCheckpointTest : public ::testing::Test {
 protected:
  ImportedCheckpointTest() {
    disk_.makeFolder("/run");
    disk_.syncFolder("/");
    job_.job = "digits";
    job_.run_dir = "/run";
    job_.cluster.ps.resize(2);
    job_.cluster.worker.resize(3);
    job_.train.emplace();
    job_.train->model = model::softmaxModel();
    job_.train->checkpoint.emplace();
    add("softmax.weight", Shape{784, 10});
  }

  void add(const std::string& name, const Shape& shape) {
    weights_.tensors.push_back({name, Tensor(DType::kFloat32, shape), {}});
    const std::span<float> values = weights_.tensors.back().value.as<float>();
    std::iota(values.begin(), values.end(), 1.0F);
  }

  ImportReport import() { return saveImported(disk_, clock_, job_, weights_); }

  std::string refusal(ErrorCode code) {
    try {
      import();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.message();
    }
    ADD_FAILURE() << "must throw";
    return "";
  }

  testing::SimulatedDisk disk_;
  ManualClock clock_;
  cluster::JobSpec job_;
  model_files::FoundWeights weights_;
};

TEST_F(ImportedCheckpointTest, HoldsTheWeightsAndWhatIsDrawnForTheOthers) {
  for (const Mode mode : {Mode::kAsync, Mode::kSync}) {
    job_.train->replication.mode = mode;
    job_.run_dir = mode == Mode::kSync ? "/run/sync" : "/run/async";
    disk_.makeFolder(job_.run_dir);
    const ImportReport report = import();
    EXPECT_EQ(report.checkpoint, job_.run_dir / "checkpoints/step-0");
    EXPECT_THAT(report.used, ElementsAre("softmax/weights [784, 10] from softmax.weight"));
    EXPECT_THAT(report.drawn, ElementsAre("softmax/biases [10]"));
    const SavedModel saved =
        loadSavedModel(disk_, job_.run_dir / "checkpoints", "", job_.train->model);
    EXPECT_EQ(saved.step, 0u);
    EXPECT_EQ(saved.variables[0].value.as<float>()[7839], 7840);
    EXPECT_EQ(saved.variables[1].value.as<float>()[3], 0) << "biases start as zeros";
  }
}

// Moving averages start with the values of the parameters.
TEST_F(ImportedCheckpointTest, HasTheSlotsThatTheOptimizerStartsWith) {
  job_.train->optimizer.kind = cluster::OptimizerSpec::Kind::kAdagrad;
  job_.train->optimizer.initial_accumulator_value = 0.25;
  job_.train->optimizer.moving_average_decay = 0.9;
  const ImportReport report = import();
  const checkpoint::Manifest manifest = checkpoint::readManifest(disk_, report.checkpoint);
  EXPECT_EQ(manifest.worker_batches, (std::vector<uint64_t>{0, 0, 0}));
  std::vector<float> slot(7840);
  const auto read = [&](const std::string& name) {
    checkpoint::readPart(disk_, report.checkpoint, manifest, name, 0, slot.size(), slot.data());
    return slot[5];
  };
  EXPECT_EQ(read("softmax/weights/Adagrad"), 0.25F);
  EXPECT_EQ(read("softmax/weights/ExponentialMovingAverage"), 6.0F);
}

TEST_F(ImportedCheckpointTest, RefusesWhatWouldBeNoStart) {
  weights_.tensors[0].name = "other";
  const std::string none = refusal(ErrorCode::kBadConfig);
  EXPECT_THAT(none, HasSubstr("none of the tensors is a variable of the model:"));
  EXPECT_THAT(none, HasSubstr("missing: softmax/weights [784, 10]"));
  EXPECT_THAT(none, HasSubstr("not used: other [784, 10]: the model has no such variable"));
  weights_.tensors[0].name = "softmax/weights";
  weights_.tensors[0].value.as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(ErrorCode::kBadData),
              HasSubstr("softmax/weights [784, 10]: element 4 is nan"));
  weights_.tensors[0].value.as<float>()[4] = 0;
  import();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig),
              HasSubstr("there are checkpoints in /run/checkpoints"));
  job_.train->checkpoint.reset();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig), HasSubstr("this job keeps none"));
}

}  // namespace
}  // namespace dtf::train
