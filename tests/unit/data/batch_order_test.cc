#include "common/data/batch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/base/error.h"
#include "common/data/digits.h"
#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

std::shared_ptr<const Dataset> digits(int64_t count) {
  return std::make_shared<const Dataset>(drawDigits(1, DigitStream::kTrain, count, 1));
}

std::vector<uint32_t> examplesOf(BatchReader& reader, uint64_t global_batch) {
  const auto examples = reader.examples(global_batch);
  return {examples.begin(), examples.end()};
}

TEST(BatchReader, AnEpochBringsNoExampleTwiceAndDropsTheIncompleteBatch) {
  BatchReader reader(digits(103), 10, 1);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<uint32_t> seen;
    for (uint64_t b = 0; b < 10; ++b)
      for (const uint32_t example : reader.examples(epoch * 10 + b)) {
        EXPECT_LT(example, 103u);
        EXPECT_TRUE(seen.insert(example).second) << "epoch " << epoch << " example " << example;
      }
    EXPECT_EQ(seen.size(), 100u);
  }
}

TEST(BatchReader, EpochsAndSeedsDiffer) {
  const auto dataset = digits(100);
  BatchReader one(dataset, 100, 1);
  BatchReader two(dataset, 100, 2);
  EXPECT_NE(examplesOf(one, 0), examplesOf(one, 1));
  EXPECT_NE(examplesOf(one, 0), examplesOf(two, 0));
  EXPECT_FALSE(std::ranges::is_sorted(examplesOf(one, 0)));
}

TEST(BatchReader, ABatchDependsOnItsNumberAlone) {
  const auto dataset = digits(57);
  BatchReader in_order(dataset, 5, 9);
  std::vector<std::vector<uint32_t>> expected;
  for (uint64_t b = 0; b < 60; ++b) expected.push_back(examplesOf(in_order, b));
  // Backwards, forwards over epochs, and resumed in the middle.
  BatchReader other(dataset, 5, 9);
  for (const uint64_t b : {59, 3, 58, 0, 30, 11, 12, 10, 22, 21, 59})
    EXPECT_EQ(examplesOf(other, b), expected[b]) << b;
  // A worker that reads every third batch shuffles as far as one that reads all.
  BatchReader third(dataset, 5, 9);
  Batch batch(dataset->parts(), 5);
  for (uint64_t b = 1; b < 60; b += 3) {
    third.read(b, batch);
    EXPECT_EQ(examplesOf(third, b), expected[b]);
  }
}

// Two sync workers with batches of 10: a step is 20 examples, the last of an epoch has 3.
TEST(BatchReader, AnEpochOfAPlanBringsEveryExampleOnce) {
  const auto dataset = digits(103);
  BatchReader reader(dataset, cluster::BatchPlan::ofEpochs(103, 10, 2), 1);
  Batch batch(dataset->parts(), 10);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> used(103);
    for (uint64_t b = 12 * epoch; b < 12 * (epoch + 1); ++b) {
      reader.read(b, batch);
      const auto examples = examplesOf(reader, b);
      ASSERT_EQ(batch.count, static_cast<int64_t>(examples.size()));
      for (size_t i = 0; i < examples.size(); ++i) {
        ++used[examples[i]];
        EXPECT_TRUE(
            std::ranges::equal(batch.parts[0].as<uint8_t>().subspan(i * kDigitPixels, kDigitPixels),
                               dataset->features().of(examples[i])));
      }
    }
    EXPECT_TRUE(std::ranges::all_of(used, [](int times) { return times == 1; }));
  }
  EXPECT_EQ(examplesOf(reader, 10).size(), 2u);
  EXPECT_EQ(examplesOf(reader, 11).size(), 1u);
}

// A golden value: a job that is repeated with another release sees the same batches.
TEST(BatchReader, TheOrderStaysAsItIs) {
  BatchReader reader(digits(60), 6, 1);
  EXPECT_EQ(examplesOf(reader, 0), (std::vector<uint32_t>{22, 0, 30, 3, 56, 19}));
  EXPECT_EQ(examplesOf(reader, 12345), (std::vector<uint32_t>{44, 9, 40, 43, 35, 59}));
}

TEST(BatchReader, CopiesTheImagesAndLabelsOfItsExamples) {
  const auto dataset = digits(64);
  BatchReader reader(dataset, 8, 4);
  Batch batch(dataset->parts(), 8);
  const std::span<const uint8_t> images = std::as_const(batch.parts[0]).as<uint8_t>();
  const std::span<const uint8_t> labels = std::as_const(batch.parts[1]).as<uint8_t>();
  for (uint64_t b = 0; b < 20; ++b) {
    reader.read(b, batch);
    const auto examples = examplesOf(reader, b);
    for (size_t i = 0; i < examples.size(); ++i) {
      EXPECT_EQ(labels[i], dataset->labels().of(examples[i])[0]);
      EXPECT_TRUE(std::ranges::equal(images.subspan(i * kDigitPixels, kDigitPixels),
                                     dataset->features().of(examples[i])));
    }
  }
}

TEST(BatchReader, CopiesPartsOfAnyTypeAndShape) {
  const auto dataset = std::make_shared<const Dataset>(
      partOf<float>(kFeatures, Shape{2}, {0, 0.5F, 1, 1.5F, 2, 2.5F, 3, 3.5F}),
      partOf<int32_t>(kLabels, Shape(), {0, 1000, 2000, 3000}));
  BatchReader reader(dataset, 3, 4);
  Batch batch(dataset->parts(), 3);
  reader.read(1, batch);
  const auto examples = examplesOf(reader, 1);
  for (size_t i = 0; i < 3; ++i) {
    const auto example = static_cast<float>(examples[i]);
    EXPECT_EQ(batch.parts[0].as<float>()[2 * i], example);
    EXPECT_EQ(batch.parts[0].as<float>()[2 * i + 1], example + 0.5F);
    EXPECT_EQ(batch.parts[1].as<int32_t>()[i], 1000 * static_cast<int32_t>(examples[i]));
  }
}

TEST(BatchReader, AugmentsTheFeaturesOfEachExampleAndLeavesTheLabels) {
  const auto dataset = digits(64);
  const cluster::AugmentSpec spec{.flip_horizontal = true, .crop_padding = 3};
  BatchReader reader(dataset, 8, 4, spec);
  const Augmenter augmenter(spec, dataset->features().spec(), 4);
  Batch batch(dataset->parts(), 8);
  std::vector<uint8_t> expected(kDigitPixels);
  for (const uint64_t b : {0, 7, 8, 30}) {
    reader.read(b, batch);
    const auto examples = examplesOf(reader, b);
    for (size_t i = 0; i < examples.size(); ++i) {
      augmenter.apply(b / 8, examples[i], dataset->features().of(examples[i]), expected);
      EXPECT_TRUE(std::ranges::equal(
          batch.parts[0].as<uint8_t>().subspan(i * kDigitPixels, kDigitPixels), expected));
      EXPECT_EQ(batch.parts[1].as<uint8_t>()[i], dataset->labels().of(examples[i])[0]);
    }
  }
}

// Fisher-Yates with unbiased draws makes every example equally likely in every place.
TEST(BatchReader, ShufflesWithoutBias) {
  constexpr int kEpochs = 4000;
  BatchReader reader(digits(8), 8, 5);
  std::array<std::array<int, 8>, 8> count{};
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = reader.examples(epoch);
    for (size_t place = 0; place < 8; ++place) ++count[place][order[place]];
  }
  for (const auto& place : count)
    for (const int n : place) EXPECT_NEAR(n, kEpochs / 8, 100);  // 4.8 standard deviations
}

TEST(BatchReader, RefusesABatchLargerThanTheDataSet) {
  try {
    BatchReader reader(digits(5), 6, 1);
    FAIL() << "a batch of 6 out of 5 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "batch_size is 6, but there are 5 examples in the embedded digits: choose a "
              "batch_size from "
              "1 to 5");
  }
}

}  // namespace
}  // namespace dtf::data
