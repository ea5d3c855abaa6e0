#include "common/exchange/exchange_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/error.h"

namespace dtf::exchange {
namespace {

TEST(ExchangeThread, AnswersWhatItWasAskedOnAnotherThread) {
  const std::thread::id caller = std::this_thread::get_id();
  ExchangeThread beside([caller](uint64_t step, uint32_t batch, float loss) {
    EXPECT_NE(std::this_thread::get_id(), caller);
    return replication::StepState{.next_step = step + 1, .next_batch = batch, .loss = loss};
  });
  for (uint64_t step = 0; step < 1000; ++step) {
    beside.start(step, 3, 0.5F);
    EXPECT_EQ(beside.finish(),
              (replication::StepState{.next_step = step + 1, .next_batch = 3, .loss = 0.5F}));
  }
}

TEST(ExchangeThread, TheCallerGoesOnUntilItAsksForTheAnswer) {
  std::atomic<bool> goes_on = false;
  ExchangeThread beside([&goes_on](uint64_t, uint32_t, float) {
    goes_on.wait(false);
    return replication::StepState{.done = true};
  });
  beside.start(0, 0, 0);
  goes_on = true;
  goes_on.notify_all();
  EXPECT_TRUE(beside.finish().done);
}

TEST(ExchangeThread, AnErrorIsThatOfItsOwnExchange) {
  ExchangeThread beside([](uint64_t step, uint32_t, float) {
    if (step == 0) throw Error(ErrorCode::kUnavailable, "ps/1 is lost");
    return replication::StepState{.next_step = step};
  });
  beside.start(0, 0, 0);
  try {
    beside.finish();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "ps/1 is lost");
  }
  beside.start(7, 0, 0);
  EXPECT_EQ(beside.finish().next_step, 7u);
}

TEST(ExchangeThread, ItsEndWaitsForTheExchange) {
  std::atomic<bool> done = false;
  {
    ExchangeThread beside([&done](uint64_t, uint32_t, float) {
      std::this_thread::yield();
      done = true;
      return replication::StepState{};
    });
    beside.start(0, 0, 0);
  }
  EXPECT_TRUE(done) << "half an exchange is none";
}

}  // namespace
}  // namespace dtf::exchange
