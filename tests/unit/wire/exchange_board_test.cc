#include "common/wire/exchange_board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/error.h"
#include "tests/support/mapped_page.h"

namespace dtf::wire {
namespace {

using dtf::testing::mapped;

class ExchangeBoardTest : public ::testing::Test {
 protected:
  ExchangeBoardTest() { worker_.setReplies(mapped(host_.memory())); }

  RequestBoard worker_;
  ReplyBoard host_{mapped(worker_.memory())};
};

TEST_F(ExchangeBoardTest, ARequestIsTakenOnceWithAllItsFields) {
  EXPECT_FALSE(host_.take());
  worker_.post(
      {.exchange = {.step = 7,
                    .batch = 2,
                    .loss = 0.25F,
                    .epoch = 3,
                    .progress = uint64_t{1} << 40,
                    .times = {{Duration{1}, Duration{2}, Duration{3}, Duration{4}, Duration{5}}}},
       .gradient_key = 11,
       .in_use = 12});
  const auto request = host_.take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->exchange.step, 7u);
  EXPECT_EQ(request->exchange.batch, 2u);
  EXPECT_EQ(request->exchange.loss, 0.25F);
  EXPECT_EQ(request->exchange.epoch, 3u);
  EXPECT_EQ(request->exchange.progress, uint64_t{1} << 40);
  EXPECT_EQ(request->gradient_key, 11u);
  EXPECT_EQ(request->in_use, 12u);
  EXPECT_EQ(
      request->exchange.times.each,
      (std::array<Duration, 5>{Duration{1}, Duration{2}, Duration{3}, Duration{4}, Duration{5}}));
  EXPECT_FALSE(host_.take());
}

TEST_F(ExchangeBoardTest, AReplyComesWithAllItsFields) {
  EXPECT_FALSE(worker_.takeReply()) << "nothing was asked";
  worker_.post({});
  EXPECT_FALSE(worker_.takeReply());
  host_.take();
  const replication::StepState state{
      .outcome = replication::Outcome::kWentBack,
      .global_step = 1,
      .next_step = 2,
      .next_batch = 3,
      .done = true,
      .staleness = 4,
      .loss = -1.5F,
      .epoch = 5,
      .progress = replication::kProgressEnd,
      .waited = Duration{20},
      .straggler = replication::Straggler{3, replication::Phase::kSend, Duration{21}}};
  host_.answer(host_.taken(), {.state = state, .key = 6, .gone = {7, 8}});
  const auto reply = worker_.takeReply();
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->by_call);
  EXPECT_EQ(reply->state, state);
  EXPECT_EQ(reply->key, 6u);
  EXPECT_EQ(reply->gone, (std::array<uint64_t, kBoardGoneMax>{7, 8, 0, 0}));
}

TEST_F(ExchangeBoardTest, AReplyToAnEarlierRequestIsNone) {
  worker_.post({.exchange = {.step = 1}});
  host_.take();
  host_.answer(host_.taken(), {.key = 1});
  worker_.post({.exchange = {.step = 2}});
  EXPECT_FALSE(worker_.takeReply());
}

TEST_F(ExchangeBoardTest, OneRequestIsServedAtATime) {
  worker_.post({.exchange = {.step = 1}});
  EXPECT_EQ(host_.take()->exchange.step, 1u);
  worker_.post({.exchange = {.step = 2}});
  EXPECT_FALSE(host_.take()) << "the first isn't answered";
  host_.answer(host_.taken(), {});
  EXPECT_EQ(host_.take()->exchange.step, 2u);
}

// A stale request would say that parameters are in use which no longer are.
TEST_F(ExchangeBoardTest, WhatCameAsACallIsNeitherTakenNorAnswered) {
  worker_.post({.exchange = {.step = 1}});
  host_.skip();
  EXPECT_FALSE(host_.take());
  worker_.post({.exchange = {.step = 2}});
  host_.take();
  const uint64_t number = host_.taken();
  EXPECT_TRUE(host_.awaits(number));
  host_.skip();
  EXPECT_FALSE(host_.awaits(number));
  host_.answer(number, {});
  EXPECT_FALSE(worker_.takeReply());
  worker_.post({.exchange = {.step = 3}});
  EXPECT_EQ(host_.take()->exchange.step, 3u);
}

TEST_F(ExchangeBoardTest, TheWorkerSeesWhetherTheHostLooks) {
  EXPECT_FALSE(worker_.isPolled());
  host_.setPolled(true);
  EXPECT_TRUE(worker_.isPolled());
  host_.setPolled(false);
  EXPECT_FALSE(worker_.isPolled());
}

// Another process may write anything into its page.
TEST(ExchangeBoard, AnOutcomeThatIsNoneIsRefused) {
  RequestBoard worker;
  board::Writer hostile;
  worker.setReplies(mapped(hostile.memory()));
  worker.post({});
  hostile.write(1, {0, 9});
  try {
    worker.takeReply();
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
  }
}

TEST(ExchangeBoard, ARecordIsReadWholeOrNotAtAll) {
  board::Writer writer;
  const board::Reader reader(mapped(writer.memory()));
  std::atomic<bool> ends{false};
  std::thread writing([&] {
    for (uint64_t number = 1; !ends; ++number) {
      board::Words words;
      words.fill(number);
      writer.write(number, words);
    }
  });
  uint64_t seen = 0;
  for (int i = 0; i < 100000 || seen == 0; ++i) {
    board::Words words;
    const uint64_t number = reader.read(words);
    if (number == 0) continue;
    ASSERT_GE(number, seen);
    seen = number;
    for (const uint64_t word : words) ASSERT_EQ(word, number);
  }
  ends = true;
  writing.join();
}

// The worker writes and then asks whether the host looks; the host says that it doesn't, and then
// looks once more. One of the two sees the other.
TEST(ExchangeBoard, ARequestIsNotLostToAHostThatGoesToSleep) {
  for (int i = 0; i < 2000; ++i) {
    RequestBoard worker;
    ReplyBoard host(mapped(worker.memory()));
    worker.setReplies(mapped(host.memory()));
    host.setPolled(true);
    std::atomic<int> ready{0};
    bool is_taken = false, is_polled = true;
    std::thread sleeping([&] {
      ++ready;
      while (ready < 2) {
      }
      host.setPolled(false);
      is_taken = host.take().has_value();
    });
    ++ready;
    while (ready < 2) {
    }
    worker.post({});
    is_polled = worker.isPolled();
    sleeping.join();
    ASSERT_TRUE(is_taken || !is_polled);
  }
}

}  // namespace
}  // namespace dtf::wire
