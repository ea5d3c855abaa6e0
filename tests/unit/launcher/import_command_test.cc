#include <gmock/gmock.h>
#include <unistd.h>

#include "common/base/run_lock.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

class ImportCommand : public TrainedTest {};

TEST_F(ImportCommand, TheWeightsAreTheCheckpointOfStepZero) {
  EXPECT_THAT(imported(), HasSubstr("tiny: 2 of 2 variables of " + weights()));
  EXPECT_EQ(code_, 0);
  EXPECT_TRUE(std::filesystem::exists(runDir() / "checkpoints/step-0/manifest.json"));
}

TEST_F(ImportCommand, AFileThatHoldsNoWeightsLeavesNoFolder) {
  options_.from = folder_.write("weights.bin", "x");
  refusal(ErrorCode::kUsage, [this] { return importModel(job_, options_); });
  options_.from = folder_.write("empty.safetensors", "x");
  refusal(ErrorCode::kBadData, [this] { return importModel(job_, options_); });
  EXPECT_FALSE(std::filesystem::exists(runDir()));
}

TEST_F(ImportCommand, AJobThatRunsIsLeftAlone) {
  const RunLock running(runDir(), {.job = "tiny", .launcher = ::getpid()});
  options_.from = weights();
  EXPECT_THAT(refusal(ErrorCode::kUnavailable, [this] { return importModel(job_, options_); }),
              HasSubstr("import weights before the job starts"));
}

TEST_F(ImportCommand, ItNeedsAFileAndAModel) {
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return importModel(job_, options_); }),
              HasSubstr("--from is missing: "));
  options_.from = weights();
  job_.train.reset();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig, [this] { return importModel(job_, options_); }),
              HasSubstr("missing key 'train'"));
}

}  // namespace
}  // namespace dtf::launcher
