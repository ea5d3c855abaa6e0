#include "common/engine/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace dtf::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Sent = Rendezvous::Sent;

constexpr Incarnation kAlive{7}, kDead{6};
constexpr std::array<std::byte, 2> kBytes = {std::byte{1}, std::byte{2}};

RendezvousKey key(uint64_t step, uint32_t edge = 0, Incarnation source = kAlive) {
  return {step, source, edge};
}

// The arrivals that receives were called back with: "1 2" for bytes, the message for an error.
class Inbox {
 public:
  Rendezvous::Callback callback() {
    return [this](Rendezvous::Arrival arrival) {
      if (const Error* const error = std::get_if<Error>(&arrival)) {
        all.push_back(error->message());
        return;
      }
      std::string text;
      for (const std::byte byte : std::get<Parcel>(arrival).bytes) {
        text += (text.empty() ? "" : " ") + std::to_string(static_cast<int>(byte));
      }
      all.push_back(text);
    };
  }
  std::vector<std::string> all;
};

class RendezvousTest : public ::testing::Test {
 protected:
  // A parcel with memory of its own; isFreed() shows when it is released.
  Parcel owned() {
    auto memory = std::make_shared<std::vector<std::byte>>(kBytes.begin(), kBytes.end());
    memory_ = memory;
    return {.bytes = *memory, .owner = memory};
  }
  bool isFreed() const { return memory_.expired(); }

  Rendezvous rendezvous_;
  Inbox inbox_;
  std::weak_ptr<std::vector<std::byte>> memory_;
};

TEST_F(RendezvousTest, AReceiveBeforeItsSendIsParked) {
  rendezvous_.receive(key(1), inbox_.callback());
  EXPECT_TRUE(inbox_.all.empty());
  EXPECT_EQ(rendezvous_.load().waiting, 1u);
  EXPECT_EQ(rendezvous_.send(key(1), {.bytes = kBytes}), Sent::kTaken);
  EXPECT_THAT(inbox_.all, ElementsAre("1 2"));
  EXPECT_EQ(rendezvous_.load().waiting, 0u);
}

TEST_F(RendezvousTest, ASendBeforeItsReceiveIsParked) {
  EXPECT_EQ(rendezvous_.send(key(1), owned()), Sent::kTaken);
  EXPECT_EQ(rendezvous_.load().parked, 1u);
  EXPECT_EQ(rendezvous_.load().owned_bytes, kBytes.size());
  rendezvous_.receive(key(1), inbox_.callback());
  EXPECT_THAT(inbox_.all, ElementsAre("1 2"));
  EXPECT_EQ(rendezvous_.load().parked, 0u);
  EXPECT_EQ(rendezvous_.load().owned_bytes, 0u);
}

TEST_F(RendezvousTest, OnlyTheSameStepEdgeAndProcessMatch) {
  rendezvous_.receive(key(2, 5), inbox_.callback());
  for (const RendezvousKey& other : {key(3, 5), key(2, 4), key(2, 5, kDead)}) {
    EXPECT_EQ(rendezvous_.send(other, {.bytes = kBytes}), Sent::kTaken);
  }
  EXPECT_TRUE(inbox_.all.empty()) << "what a dead process sent is another's";
  rendezvous_.send(key(2, 5), {.bytes = kBytes});
  EXPECT_EQ(inbox_.all.size(), 1u);
}

TEST_F(RendezvousTest, AKeyIsSentOnceAndReceivedOnce) {
  EXPECT_EQ(rendezvous_.send(key(1), {.bytes = kBytes}), Sent::kTaken);
  EXPECT_EQ(rendezvous_.send(key(1), {.bytes = kBytes}), Sent::kDuplicate);
  rendezvous_.receive(key(1), inbox_.callback());
  EXPECT_EQ(rendezvous_.send(key(1), {.bytes = kBytes}), Sent::kDuplicate) << "after it was taken";
  rendezvous_.receive(key(1), inbox_.callback());
  EXPECT_THAT(inbox_.all, ElementsAre("1 2", HasSubstr("received twice")));
}

TEST_F(RendezvousTest, AnAbortWakesAllWithTheRootCause) {
  rendezvous_.receive(key(1, 0), inbox_.callback());
  rendezvous_.receive(key(1, 1), inbox_.callback());
  rendezvous_.receive(key(2, 0), inbox_.callback());
  rendezvous_.abort(1, Error(ErrorCode::kUnavailable, "fantasia!"));
  EXPECT_THAT(inbox_.all, ElementsAre("fantasia!", "fantasia!"));
  rendezvous_.abort(1, Error(ErrorCode::kUnavailable, "cancelled"));
  rendezvous_.receive(key(1, 2), inbox_.callback());
  EXPECT_THAT(inbox_.all.back(), "fantasia!") << "the first cause is the root";
  EXPECT_EQ(rendezvous_.send(key(1, 3), {.bytes = kBytes}), Sent::kOver);
  EXPECT_EQ(rendezvous_.load().waiting, 1u) << "of the other step";
  rendezvous_.end(2);
}

TEST_F(RendezvousTest, AnAbortOfAStepThatHasNotBegunHereIsKept) {
  rendezvous_.abort(9, Error(ErrorCode::kUnavailable, "fantasia!"));
  rendezvous_.receive(key(9), inbox_.callback());
  EXPECT_THAT(inbox_.all, ElementsAre("fantasia!"));
}

TEST_F(RendezvousTest, TheEndOfAStepFreesWhatItLeft) {
  rendezvous_.send(key(1, 0), owned());
  rendezvous_.receive(key(1, 1), inbox_.callback());
  EXPECT_FALSE(isFreed());
  rendezvous_.end(1);
  EXPECT_TRUE(isFreed());
  EXPECT_THAT(inbox_.all, ElementsAre(HasSubstr("Step 1 has ended")));
  EXPECT_EQ(rendezvous_.send(key(1, 2), owned()), Sent::kOver);
  EXPECT_TRUE(isFreed()) << "late tensors of an ended step are not kept";
  const RendezvousLoad load = rendezvous_.load();
  EXPECT_EQ(load.steps + load.parked + load.owned_bytes + load.waiting, 0u);
}

TEST_F(RendezvousTest, AnAbortFreesTooAndTheEndAfterItChangesNothing) {
  rendezvous_.send(key(1), owned());
  rendezvous_.abort(1, Error(ErrorCode::kUnavailable, "fantasia!"));
  EXPECT_TRUE(isFreed());
  rendezvous_.end(1);
  rendezvous_.receive(key(1), inbox_.callback());
  EXPECT_THAT(inbox_.all, ElementsAre("fantasia!"));
}

TEST_F(RendezvousTest, EndedStepsAreRememberedInBoundedMemory) {
  Rendezvous few({.ended_steps = 2});
  for (uint64_t step = 1; step <= 5; ++step) few.end(step);
  for (uint64_t step = 1; step <= 5; ++step) {
    EXPECT_EQ(few.send(key(step), {.bytes = kBytes}), Sent::kOver) << step;
  }
  EXPECT_EQ(few.send(key(6), {.bytes = kBytes}), Sent::kTaken);
}

TEST_F(RendezvousTest, AStepThatIsUnderWayIsNotEndedByManyNewerOnes) {
  Rendezvous few({.ended_steps = 2});
  few.receive(key(1), inbox_.callback());
  for (uint64_t step = 2; step <= 9; ++step) few.end(step);
  EXPECT_EQ(few.send(key(1), {.bytes = kBytes}), Sent::kTaken);
  EXPECT_THAT(inbox_.all, ElementsAre("1 2"));
}

TEST_F(RendezvousTest, WhatIsParkedIsBounded) {
  Rendezvous narrow({.parcels = 2, .bytes = 3});
  EXPECT_EQ(narrow.send(key(1, 0), owned()), Sent::kTaken);
  EXPECT_EQ(narrow.send(key(1, 1), owned()), Sent::kFull) << "2 bytes more than 3";
  EXPECT_EQ(narrow.send(key(1, 1), {.bytes = kBytes}), Sent::kTaken) << "memory of the sender";
  EXPECT_EQ(narrow.send(key(1, 2), {.bytes = kBytes}), Sent::kFull) << "a third";
  narrow.receive(key(1, 3), inbox_.callback());
  EXPECT_THAT(inbox_.all, ElementsAre(HasSubstr("can't be waited for")));
  narrow.receive(key(1, 0), inbox_.callback());
  EXPECT_EQ(narrow.send(key(1, 2), owned()), Sent::kTaken) << "there is room again";
}

TEST_F(RendezvousTest, WhatIsRefusedLeavesNothing) {
  Rendezvous full({.parcels = 0});
  EXPECT_EQ(full.send(key(1), owned()), Sent::kFull);
  EXPECT_EQ(full.send(key(1), owned()), Sent::kFull) << "it has not been sent before";
  full.receive(key(2), inbox_.callback());
  full.receive(key(2), inbox_.callback());
  EXPECT_THAT(inbox_.all,
              ElementsAre(HasSubstr("can't be waited for"), HasSubstr("can't be waited for")));
  EXPECT_EQ(full.load().steps, 0u);
  EXPECT_TRUE(isFreed());
}

TEST_F(RendezvousTest, WhyAStepIsOverIsKnownUntilOthersNeedTheRoom) {
  Rendezvous few({.cause_bytes = 20});
  EXPECT_FALSE(few.whyOver(1));
  for (uint64_t step = 1; step <= 3; ++step)
    few.abort(step, Error(ErrorCode::kBadData, "fantasia " + std::to_string(step)));
  EXPECT_EQ(few.whyOver(1)->message(), "Step 1 has ended.");
  EXPECT_EQ(few.whyOver(2)->message(), "fantasia 2");
  EXPECT_EQ(few.whyOver(3)->message(), "fantasia 3");
  EXPECT_EQ(few.send(key(1), {.bytes = kBytes}), Sent::kOver);
  few.receive(key(4), inbox_.callback());
  few.abort(4, Error(ErrorCode::kBadData, std::string(100, 'x')));
  EXPECT_THAT(inbox_.all, ElementsAre(std::string(100, 'x'))) << "whoever waits is told all of it";
}

// The second call of each pair runs the receiver's callback, once, on its own thread.
TEST(RendezvousThreads, EveryPairMeetsOnce) {
  constexpr uint32_t kEdges = 500;
  Rendezvous rendezvous;
  std::atomic<uint32_t> met{0}, aborted{0};
  const auto each = [&](auto action) {
    return std::thread([action] {
      for (uint32_t edge = 0; edge < kEdges; ++edge) {
        for (const uint64_t step : {1, 2}) action(step, edge);
      }
    });
  };
  std::array<std::thread, 3> threads = {
      each([&](uint64_t step, uint32_t edge) {
        rendezvous.send(key(step, edge), {.bytes = kBytes});
      }),
      each([&](uint64_t step, uint32_t edge) {
        rendezvous.receive(key(step, edge), [&](const Rendezvous::Arrival& arrival) {
          ++(std::holds_alternative<Parcel>(arrival) ? met : aborted);
        });
      }),
      std::thread([&] { rendezvous.abort(2, Error(ErrorCode::kUnavailable, "fantasia!")); })};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met + aborted, 2 * kEdges);
  EXPECT_GE(met, kEdges) << "step 1 was not aborted";
  EXPECT_EQ(rendezvous.load().waiting, 0u);
  EXPECT_EQ(rendezvous.load().parked, 0u);
}

}  // namespace
}  // namespace dtf::engine
