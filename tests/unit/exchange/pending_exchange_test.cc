#include "common/exchange/pending_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/error.h"

namespace dtf::exchange {
namespace {

TEST(PendingExchange, IsMadeByTheCallerInFinish) {
  const std::thread::id caller = std::this_thread::get_id();
  int made = 0;
  PendingExchange pending([&](uint64_t step, uint32_t batch, float loss) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++made;
    return replication::StepState{.next_step = step + 1, .next_batch = batch, .loss = loss};
  });
  EXPECT_FALSE(pending.hasThread());
  for (uint64_t step = 0; step < 3; ++step) {
    pending.begin(step, 2, 0.5F, false);
    EXPECT_FALSE(pending.isBeside());
    EXPECT_EQ(made, static_cast<int>(step));
    EXPECT_EQ(pending.finish(),
              (replication::StepState{.next_step = step + 1, .next_batch = 2, .loss = 0.5F}));
  }
}

TEST(PendingExchange, GoesOnBesideTheCallerOnAThread) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> goes_on = false;
  PendingExchange pending([&](uint64_t step, uint32_t, float) {
    EXPECT_NE(std::this_thread::get_id(), caller);
    goes_on.wait(false);
    return replication::StepState{.next_step = step + 1};
  });
  pending.startThread();
  pending.begin(7, 0, 0, true);
  EXPECT_TRUE(pending.isBeside());
  goes_on = true;
  goes_on.notify_all();
  EXPECT_EQ(pending.finish().next_step, 8u);
  EXPECT_FALSE(pending.isBeside());
}

TEST(PendingExchange, OneThatIsDroppedIsNotMadeByTheCaller) {
  int made = 0;
  PendingExchange pending([&made](uint64_t, uint32_t, float) {
    ++made;
    return replication::StepState{};
  });
  pending.begin(0, 0, 0, false);
  pending.drop();
  EXPECT_EQ(made, 0);
  pending.startThread();
  pending.begin(0, 0, 0, true);
  pending.drop();
  EXPECT_EQ(made, 1) << "half an exchange is none";
}

TEST(PendingExchange, AnErrorIsThrownByFinishOrDrop) {
  PendingExchange pending([](uint64_t, uint32_t, float) -> replication::StepState {
    throw Error(ErrorCode::kUnavailable, "ps/1 is lost");
  });
  pending.startThread();
  for (const bool beside : {false, true}) {
    pending.begin(0, 0, 0, beside);
    EXPECT_THROW(pending.finish(), Error);
  }
  pending.begin(0, 0, 0, true);
  EXPECT_THROW(pending.drop(), Error);
}

TEST(PendingExchange, TheEndOfItsThreadWaitsForTheExchange) {
  std::atomic<bool> done = false;
  PendingExchange pending([&done](uint64_t, uint32_t, float) {
    std::this_thread::yield();
    done = true;
    return replication::StepState{};
  });
  pending.startThread();
  pending.begin(0, 0, 0, true);
  pending.endThread();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace dtf::exchange
