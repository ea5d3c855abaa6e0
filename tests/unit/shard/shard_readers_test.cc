// Reads of a shard beside its training.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {
namespace {

struct Read {
  std::optional<ReadAnswer> answer;
  bool waits() const { return !answer; }
  const ReadReply& reply() const { return std::get<ReadReply>(answer.value()); }
};

// A sync shard of one worker, with a reader.
struct ReadShard : ShardDriver {
  explicit ReadShard(bool large = false) : ShardDriver(1, 1, 100, 0, 1, large) { pull(0); }

  std::shared_ptr<Read> read(std::optional<uint64_t> step = std::nullopt) {
    auto read = std::make_shared<Read>();
    shard.readers().read(reader, step, [read](const ReadAnswer& answer) {
      DTF_CHECK(!read->answer);
      read->answer = answer;
    });
    return read;
  }

  const uint32_t reader = shard.readers().open();
};

TEST(ShardReaders, TheNewestParametersComeAtOnceAndStayAsTheyAre) {
  ReadShard world;
  world.push(0, 0);
  const auto read = world.read();
  ASSERT_FALSE(read->waits());
  EXPECT_EQ(read->reply().step, 1u);
  EXPECT_EQ(read->reply().epoch, replication::kFirstEpoch);
  world.push(0, 1);
  EXPECT_EQ(read->reply().parameters->data()[0], 1);
}

TEST(ShardReaders, AStepToComeIsReadWhenItComes) {
  for (const bool large : {false, true}) {
    SCOPED_TRACE(large);
    ReadShard world(large);
    const auto read = world.read(2);
    for (uint64_t step = 0; step < 3; ++step) {
      EXPECT_EQ(read->waits(), step < 2);
      world.push(0, step);
      world.runner.finish();
    }
    EXPECT_EQ(read->reply().step, 2u);
    EXPECT_EQ(read->reply().parameters->data()[0], 2);
  }
}

TEST(ShardReaders, AStepThatHasPassedIsToldWithTheStepNow) {
  ReadShard world;
  for (uint64_t step = 0; step < 3; ++step) world.push(0, step);
  const auto read = world.read(1);
  ASSERT_FALSE(read->waits());
  EXPECT_EQ(read->reply().step, 3u);
  EXPECT_EQ(read->reply().parameters, nullptr);
}

TEST(ShardReaders, AStepThatDoesNotComeIsAwaitedForAWhile) {
  ReadShard world;
  const auto read = world.read(1);
  world.clock.advance(kReadWaitMax / 2);
  world.shard.tick();
  EXPECT_TRUE(read->waits());
  world.clock.advance(kReadWaitMax);
  world.shard.tick();
  ASSERT_FALSE(read->waits());
  EXPECT_EQ(read->reply().parameters, nullptr);
  EXPECT_EQ(read->reply().step, 0u);
  world.push(0, 0);  // its update has nobody to answer
}

TEST(ShardReaders, OtherValuesAnswerAReadThatWaits) {
  ReadShard world;
  const auto read = world.read(5);
  EXPECT_TRUE(read->waits());
  const uint64_t later = replication::kFirstEpoch + 1;
  world.shard.initialise(0, Incarnation{1}, std::vector<float>(world.elements, 7), later);
  ASSERT_FALSE(read->waits());
  EXPECT_EQ(read->reply().epoch, later);
  EXPECT_EQ(read->reply().parameters, nullptr);
  EXPECT_EQ(world.read()->reply().parameters->data()[0], 7);
  // The coordinator of the new values answers reads, too.
  const auto next = world.read(1);
  world.pull(0);
  world.push(0, 0, 1, 0, 1, later);
  ASSERT_FALSE(next->waits());
  EXPECT_EQ(next->reply().step, 1u);
}

TEST(ShardReaders, AShardWithoutValuesRefuses) {
  ShardDriver empty(1, 1, 100, 0, 1, false, false);
  const uint32_t reader = empty.shard.readers().open();
  std::optional<ReadAnswer> answer;
  empty.shard.readers().read(reader, std::nullopt, [&](const ReadAnswer& a) { answer = a; });
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Error>(*answer).code(), ErrorCode::kUnavailable);
}

TEST(ShardReaders, AreBoundedTogether) {
  ReadShard world;
  std::vector<uint32_t> open;
  for (uint32_t i = 1; i < kReadersMax; ++i) open.push_back(world.shard.readers().open());
  try {
    world.shard.readers().open();
    FAIL() << "one too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("ps/0 already has 16 readers"));
  }
  world.shard.readers().close(open.back());
  EXPECT_NO_THROW(world.shard.readers().open());
}

TEST(ShardReaders, AReaderThatGoesIsNotAnswered) {
  ReadShard world;
  const auto read = world.read(1);
  world.shard.readers().close(world.reader);
  world.push(0, 0);
  EXPECT_TRUE(read->waits());
}

}  // namespace
}  // namespace dtf::shard
