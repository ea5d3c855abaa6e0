#include "common/train/tower.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/error.h"
#include "common/train/initial_values.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

TEST(Tower, EachDrawsOtherMasksOfEachBatchAndTheFirstThoseOfTheBatch) {
  std::set<uint64_t> numbers;
  for (uint64_t batch = 0; batch < 50; ++batch)
    for (uint32_t tower = 0; tower < cluster::kDevicesMax; ++tower)
      numbers.insert(maskNumber(batch, tower));
  EXPECT_EQ(numbers.size(), 50u * cluster::kDevicesMax);
  EXPECT_EQ(maskNumber(1234, 0), 1234u);
}

TEST(Tower, TrainsOnAnEvenShareOfTheBatch) {
  cluster::TrainSpec train = softmaxJob(1);
  train.data.batch_size = 12;
  EXPECT_EQ(shareOf(train, 1).data.batch_size, 12);
  EXPECT_EQ(shareOf(train, 4).data.batch_size, 3);
  try {
    shareOf(train, 5);
    FAIL() << "shared out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("12 examples"), std::string::npos) << error.message();
  }
}

// Its values are never bound, so that the step rejects them.
TEST(Tower, SaysWhichOfSeveralFailedAndWhere) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device(3);
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  Tower tower(model, trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, {&device, &kernels}),
              {&device, &kernels}, 2);
  tower.throwIfFailed(true);  // nothing has
  tower.run();
  std::string alone;
  try {
    tower.throwIfFailed(false);
    FAIL() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    alone = error.message();
  }
  try {
    tower.throwIfFailed(true);
    FAIL() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(), "tower 2 on cpu:3: " + alone);
  }
}

}  // namespace
}  // namespace dtf::train
