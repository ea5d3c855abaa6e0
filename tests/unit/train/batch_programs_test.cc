#include "common/train/batch_programs.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/train/worker_devices.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

class BatchProgramsTest : public ::testing::Test {
 protected:
  BatchPrograms programs(const std::vector<int64_t>& counts) {
    cluster::TrainSpec train = softmaxJob(1);
    train.data.batch_size = 6;
    return {train, WorkerPlace{}, devices_.towers(), nullptr, counts};
  }
  WorkerDevices devices_{{"cpu:0", "cpu:1", "cpu:2"}, 1, runtime::tableRule()};
};

TEST_F(BatchProgramsTest, AreOfEachNumberOfExamples) {
  BatchPrograms three = programs({6, 2, 1});
  for (const int64_t count : {6, 2, 1}) EXPECT_EQ(three.of(count).examples(), count);
  EXPECT_EQ(&three.plan(), &three.of(6).plan()) << "what workers compare";
}

TEST_F(BatchProgramsTest, AShortBatchNeedsNoEqualShares) {
  EXPECT_EQ(programs({5}).of(5).examples(), 5);
}

TEST_F(BatchProgramsTest, AWholeBatchThatCannotBeSharedOutIsRefused) {
  cluster::TrainSpec train = softmaxJob(1);
  train.data.batch_size = 7;
  const std::vector<int64_t> counts = {7};
  EXPECT_THROW(BatchPrograms(train, WorkerPlace{}, devices_.towers(), nullptr, counts), Error);
}

}  // namespace
}  // namespace dtf::train
