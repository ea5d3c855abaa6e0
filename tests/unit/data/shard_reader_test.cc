#include "common/data/shard_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "common/base/error.h"
#include "common/data/digits.h"

namespace dtf::data {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::shared_ptr<const Dataset> drawn(int64_t count) {
  return std::make_shared<const Dataset>(drawDigits(1, DigitStream::kTrain, count, 1));
}

// The pixels of example `i` of a batch, which no other example has.
std::string pixels(const Batch& batch, int64_t i) {
  const size_t bytes = batch.parts[0].bytes() / static_cast<size_t>(batch.count);
  const auto* const data = reinterpret_cast<const char*>(batch.parts[0].data());
  return {data + static_cast<size_t>(i) * bytes, bytes};
}
std::string allPixels(const Batch& batch) {
  return {reinterpret_cast<const char*>(batch.parts[0].data()), batch.parts[0].bytes()};
}

template <class Call>
std::string refusalOf(const Call& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  return "";
}

TEST(ShardReader, ABatchIsTheOneOfAJobsWorker) {
  const auto dataset = drawn(103);
  BatchReader job(dataset, 10, 7);
  Batch expected(dataset->parts(), 10);
  for (const uint32_t rank : {0U, 1U, 2U}) {
    ShardReader shard(dataset, {.batch_size = 10, .seed = 7, .rank = rank, .of = 3});
    for (const uint64_t step : {0U, 9U, 4U, 30U, 4U}) {
      job.read(step * 3 + rank, expected);
      EXPECT_EQ(allPixels(shard.readBatch(step)), allPixels(expected)) << rank << " " << step;
    }
  }
}

TEST(ShardReader, StepsEndWithTheLastEpochForAllShardsAtOnce) {
  const auto dataset = drawn(50);
  for (const uint32_t rank : {0U, 1U}) {
    ShardReader shard(dataset, {.batch_size = 10, .rank = rank, .of = 2, .epochs = 3});
    EXPECT_EQ(shard.steps(), 7U) << "15 batches for two";
    shard.readBatch(6);
    EXPECT_THAT(refusalOf([&] { shard.readBatch(7); }, ErrorCode::kOutOfRange),
                HasSubstr("step 7 is beyond the 3 epochs of the embedded digits"));
  }
  EXPECT_EQ(ShardReader(dataset, {.batch_size = 10}).steps(), 0U) << "without end";
}

TEST(ShardReader, RefusesEpochsWithoutAStep) {
  const auto dataset = drawn(100);
  const auto open = [&](int64_t batch_size, uint64_t epochs) {
    return refusalOf(
        [&] { ShardReader(dataset, {.batch_size = batch_size, .of = 2, .epochs = epochs}); },
        ErrorCode::kBadConfig);
  };
  EXPECT_THAT(open(64, 1),
              HasSubstr("has 100 examples: with batches of 64, there is no step of 2 "
                        "shards in the only epoch; set batch_size to at most 50, or epochs "
                        "to at least 2"));
  EXPECT_THAT(open(101, 3), EndsWith("set batch_size to at most 100"));
  EXPECT_EQ(open(50, 1), "");
  EXPECT_EQ(open(64, 2), "");
}

TEST(ShardReader, StepsWhoseBatchesHaveNoNumberAreRefused) {
  const auto dataset = drawn(50);
  ShardReader shard(dataset, {.batch_size = 10, .rank = 1, .of = 2});
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max() / 2 - 1;
  EXPECT_EQ(shard.readBatch(kLast).count, 10);
  for (const uint64_t step : {kLast + 1, std::numeric_limits<uint64_t>::max()})
    EXPECT_THAT(refusalOf([&] { shard.readBatch(step); }, ErrorCode::kOutOfRange),
                HasSubstr("is beyond 9223372036854775806, the last of 2 shards"));
}

TEST(ShardReader, AnEpochHasEachExampleOnceOverAllShards) {
  const auto dataset = drawn(53);
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<std::string> seen;
    for (const uint32_t rank : {0U, 1U, 2U}) {
      ShardReader shard(dataset, {.rank = rank, .of = 3});
      for (uint64_t before = 0; before < epoch; ++before) shard.readNext(rank < 2 ? 18 : 17);
      const Batch batch = shard.readNext(rank < 2 ? 18 : 17);
      EXPECT_EQ(shard.epochsCompleted(), epoch + 1);
      for (int64_t i = 0; i < batch.count; ++i)
        EXPECT_TRUE(seen.insert(pixels(batch, i)).second) << rank << " " << i;
    }
    EXPECT_EQ(seen.size(), 53U);
  }
}

TEST(ShardReader, ABatchMayBeginTheNextEpoch) {
  const auto dataset = drawn(10);
  ShardReader one(dataset, {.seed = 3});
  ShardReader two(dataset, {.seed = 3});
  const Batch long_one = one.readNext(25);
  EXPECT_EQ(one.epochsCompleted(), 2U);
  std::string in_parts;
  for (const int64_t count : {7, 7, 11}) in_parts += allPixels(two.readNext(count));
  EXPECT_EQ(in_parts, allPixels(long_one));
}

TEST(ShardReader, TheLastEpochEnds) {
  ShardReader shard(drawn(10), {.epochs = 1});
  shard.readNext(7);
  EXPECT_THAT(
      refusalOf([&] { shard.readNext(4); }, ErrorCode::kOutOfRange),
      HasSubstr(
          "a batch of 4 exceeds the 3 examples left in the only epoch of the embedded digits"));
  shard.readNext(3);
  EXPECT_EQ(shard.epochsCompleted(), 1U);
}

TEST(ShardReader, ASliceIsInTheDataSetsOrderAndUnchanged) {
  const auto dataset = drawn(10);
  const ShardReader shard(dataset, {.augment = {.flip_horizontal = true}, .rank = 1, .of = 2});
  const Batch slice = shard.readSlice(4, 3);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(std::memcmp(pixels(slice, i).data(), dataset->features().of(4 + i).data(), 784), 0);
  EXPECT_THAT(refusalOf([&] { shard.readSlice(8, 3); }, ErrorCode::kOutOfRange),
              HasSubstr("has 10 examples, and none from 8 to 10"));
  EXPECT_THAT(refusalOf([&] { shard.readSlice(-3, 1); }, ErrorCode::kOutOfRange),
              HasSubstr("example -3 does not exist: the first of the embedded digits is 0"));
  EXPECT_THAT(refusalOf([&] { shard.readSlice(8, 0); }, ErrorCode::kBadConfig),
              HasSubstr("at least one example, not 0"));
}

TEST(ShardReader, NextExamplesAreAugmentedAsThoseOfBatches) {
  const auto dataset = drawn(10);
  const ShardOptions options{.batch_size = 10, .augment = {.crop_padding = 2}};
  ShardReader shard(dataset, options);
  EXPECT_EQ(allPixels(shard.readNext(10)), allPixels(shard.readBatch(0)));
  EXPECT_NE(allPixels(shard.readBatch(0)),
            allPixels(ShardReader(dataset, {.batch_size = 10}).readBatch(0)));
}

TEST(ShardReader, RefusesMoreShardsThanExamples) {
  const auto dataset = drawn(3);
  EXPECT_THAT(refusalOf([&] { ShardReader(dataset, {.of = 4}); }, ErrorCode::kBadConfig),
              HasSubstr("too few for 4 shards"));
}

}  // namespace
}  // namespace dtf::data
