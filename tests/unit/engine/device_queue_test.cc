#include "common/engine/device_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace dtf::engine {
namespace {

using ::testing::ElementsAre;

TEST(DeviceThread, RunsJobsInOrderAndAllBeforeItEnds) {
  std::vector<int> ran;
  {
    DeviceThread queue("cpu:0");
    for (int i = 0; i < 4; ++i) queue.post([&ran, i] { ran.push_back(i); });
  }
  EXPECT_THAT(ran, ElementsAre(0, 1, 2, 3));
}

TEST(DeviceThread, AJobMayPostAnother) {
  std::latch done(1);
  DeviceThread queue("cpu:0");
  queue.post([&] { queue.post([&] { done.count_down(); }); });
  done.wait();
}

TEST(DeviceThread, TheCallersJobAndTheThreadsDontOverlap) {
  std::latch entered(1);
  std::atomic<bool> inside{true}, caller_comes{false}, caller_ran{false};
  DeviceThread queue("cpu:0");
  queue.post([&] {
    entered.count_down();
    while (!caller_comes) std::this_thread::yield();
    // Long enough for a caller that doesn't wait to enter.
    for (int i = 0; i < 50 && !caller_ran; ++i) std::this_thread::yield();
    inside = false;
  });
  entered.wait();
  bool overlapped = false;
  caller_comes = true;
  queue.runHere([&] {
    caller_ran = true;
    overlapped = inside;
  });
  EXPECT_FALSE(overlapped);
}

}  // namespace
}  // namespace dtf::engine
