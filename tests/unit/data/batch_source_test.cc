#include "common/data/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

std::shared_ptr<const Dataset> numbers(int count) {
  std::vector<float> features;
  std::vector<int32_t> labels;
  for (int i = 0; i < count; ++i) {
    features.push_back(static_cast<float>(i));
    labels.push_back(i);
  }
  return std::make_shared<const Dataset>(partOf<float>(kFeatures, Shape{1}, features),
                                         partOf<int32_t>(kLabels, Shape(), labels));
}

std::vector<int32_t> labelsOf(const Batch& batch) {
  const std::span<const int32_t> labels = batch.parts[1].as<int32_t>();
  return {labels.begin(), labels.end()};
}

class BatchSources : public ::testing::TestWithParam<ReadAhead> {};

TEST_P(BatchSources, GiveTheBatchThatIsWantedWhateverWasGuessed) {
  const auto dataset = numbers(100);
  BatchReader plain(dataset, 7, 3);
  BatchReader reader(dataset, 7, 3);
  BatchSource source(reader, 7, GetParam());
  Batch expected(dataset->parts(), 7);
  uint64_t guess = 0;
  for (const uint64_t wanted : {0, 1, 2, 3, 9, 10, 4, 5, 40, 41, 0, 0, 1}) {
    guess = wanted + 1;
    const Batch& batch = source.read(wanted, guess);
    plain.read(wanted, expected);
    EXPECT_EQ(labelsOf(batch), labelsOf(expected)) << wanted;
    EXPECT_TRUE(std::ranges::equal(batch.parts[0].as<float>(), expected.parts[0].as<float>()));
  }
}

// The source makes the next batch without writing to the one that the step reads.
TEST_P(BatchSources, ABatchStaysUntilTheNextCall) {
  const auto dataset = numbers(4096);
  BatchReader reader(dataset, 1024, 3);
  BatchSource source(reader, 1024, GetParam());
  for (uint64_t i = 0; i < 50; ++i) {
    const Batch& batch = source.read(i, i + 1);
    const std::vector<int32_t> first = labelsOf(batch);
    for (int look = 0; look < 20; ++look) ASSERT_EQ(labelsOf(batch), first);
  }
}

// A caller that looks ahead gets that batch, beside the last one.
TEST_P(BatchSources, AGlanceAtAnotherBatchChangesNothing) {
  const auto dataset = numbers(100);
  BatchReader plain(dataset, 7, 3);
  BatchReader reader(dataset, 7, 3);
  BatchSource source(reader, 7, GetParam());
  Batch expected(dataset->parts(), 7);
  for (const auto& [wanted, glanced] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 1}, {1, 2}, {2, 9}, {3, 4}, {7, 0}, {0, 0}}) {
    const Batch& batch = source.read(wanted, wanted + 1);
    const std::vector<int32_t> before = labelsOf(batch);
    const Batch& other = source.peek(glanced);
    EXPECT_EQ(&source.peek(glanced), &other);
    plain.read(glanced, expected);
    EXPECT_EQ(labelsOf(other), labelsOf(expected)) << glanced;
    plain.read(wanted, expected);
    EXPECT_EQ(labelsOf(batch), labelsOf(expected)) << wanted;
    EXPECT_EQ(labelsOf(batch), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, BatchSources, ::testing::Values(ReadAhead::kNo, ReadAhead::kYes),
                         [](const auto& each) {
                           return each.param == ReadAhead::kYes ? "Ahead" : "InPlace";
                         });

TEST(BatchSource, EndsWithABatchThatNobodyTakes) {
  const auto dataset = numbers(100);
  for (int i = 0; i < 100; ++i) {
    BatchReader reader(dataset, 10, 3);
    BatchSource source(reader, 10, ReadAhead::kYes);
    if (i % 2 == 0) source.read(0, 1);
  }
}

}  // namespace
}  // namespace dtf::data
