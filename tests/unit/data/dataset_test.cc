#include "common/data/dataset.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/error.h"
#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

TEST(Dataset, HoldsPartsOfAnyTypeAndShape) {
  const Dataset dataset(partOf<float>(kFeatures, Shape{2}, {1, 2, 3, 4, 5, 6}),
                        partOf<int32_t>(kLabels, Shape(), {7, 8, 90'000}));
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.features().as<float>()[5], 6);
  EXPECT_EQ(dataset.features().of(1).size(), 8u);
  EXPECT_EQ(dataset.labels().as<int32_t>()[2], 90'000);
  EXPECT_TRUE(areClasses(dataset.labels().spec()));
  EXPECT_FALSE(areClasses(dataset.features().spec()));
}

TEST(Batch, HasATensorForEachPart) {
  const Dataset dataset(partOf<float>(kFeatures, Shape{2, 3}, std::vector<float>(12)),
                        partOf<uint8_t>(kLabels, Shape(), {1, 2}));
  const Batch batch(dataset.parts(), 5);
  ASSERT_EQ(batch.parts.size(), 2u);
  EXPECT_EQ(batch.parts[0].dtype(), DType::kFloat32);
  EXPECT_EQ(batch.parts[0].shape(), (Shape{5, 2, 3}));
  EXPECT_EQ(batch.parts[1].dtype(), DType::kUInt8);
  EXPECT_EQ(batch.parts[1].shape(), (Shape{5}));
}

using DatasetDeathTest = ::testing::Test;

TEST(DatasetDeathTest, PartsThatDoNotBelongTogetherAreAMistakeOfTheProgram) {
  EXPECT_DEATH(Dataset(partOf<float>(kFeatures, Shape{2}, {1, 2, 3, 4}),
                       partOf<uint8_t>(kLabels, Shape(), {1})),
               "count");
  EXPECT_DEATH(partOf<float>(kFeatures, Shape{2}, {1, 2, 3}), "features");
}

TEST(CheckBatchSize, ABatchIsOfExamplesThatThereAre) {
  checkBatchSize(5, 5, "x");
  for (const int64_t size : {int64_t{0}, int64_t{6}})
    EXPECT_THROW(checkBatchSize(size, 5, "x"), Error);
  EXPECT_THROW(checkBatchSize(1, int64_t{std::numeric_limits<uint32_t>::max()} + 1, "x"), Error);
}

}  // namespace
}  // namespace dtf::data
