#include "common/net/reactor.h"

#include <gtest/gtest.h>
#include <kj/debug.h>

#include <atomic>
#include <string>
#include <vector>

namespace dtf::net {
namespace {

TEST(Reactor, StopBeforeRunIsNotLost) {
  Reactor reactor;
  reactor.stop();
  reactor.run();
}

TEST(IoThread, CallReturnsTheResultOfAFunctionOnTheLoop) {
  IoThread io("test-io");
  EXPECT_FALSE(io.inLoop());
  EXPECT_TRUE(io.call([&] { return io.inLoop(); }));
  EXPECT_EQ(io.call([&] { return std::string("done"); }), "done");
  bool ran = false;
  io.call([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(IoThread, CallOnTheLoopItselfRunsAtOnce) {
  IoThread io("test-io");
  EXPECT_EQ(io.call([&] { return io.call([] { return 5; }); }), 5);
}

TEST(IoThread, CallWaitsForAPromise) {
  IoThread io("test-io");
  const int value = io.call([&]() -> kj::Promise<int> {
    return io.timer().afterDelay(1 * kj::MILLISECONDS).then([] { return 42; });
  });
  EXPECT_EQ(value, 42);
  io.call([&]() -> kj::Promise<void> { return io.timer().afterDelay(1 * kj::MILLISECONDS); });
}

TEST(IoThread, CallThrowsWhatTheFunctionThrows) {
  IoThread io("test-io");
  const auto codeOf = [&](auto fn) {
    try {
      io.call(fn);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUsage;
  };
  EXPECT_EQ(codeOf([] { throw Error(ErrorCode::kBadData, "bad"); }), ErrorCode::kBadData);
  EXPECT_EQ(codeOf([]() -> kj::Promise<void> { throw Error(ErrorCode::kBadData, "bad"); }),
            ErrorCode::kBadData);
  EXPECT_EQ(codeOf([] { KJ_FAIL_REQUIRE("kj"); }), ErrorCode::kInternal);
  EXPECT_EQ(codeOf([&]() -> kj::Promise<void> {
              return io.timer().timeoutAfter(1 * kj::MILLISECONDS,
                                             kj::Promise<void>(kj::NEVER_DONE));
            }),
            ErrorCode::kDeadline);
}

TEST(IoThread, PostsOfOneThreadRunInOrder) {
  std::vector<int> order;
  {
    IoThread io("test-io");
    for (int i = 0; i < 100; ++i) io.post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(IoThread, CleanupsRunOnTheLoopInReverseOrder) {
  std::string order;
  {
    IoThread io("test-io");
    io.onStop([&] { order += io.inLoop() ? 'a' : 'x'; });
    io.onStop([&] {
      order += 'b';
      io.post([&] { order += 'p'; });  // handlers that a cleanup posts still run
    });
  }
  EXPECT_EQ(order, "bap");
}

TEST(IoThread, ManyThreadsMayPost) {
  std::atomic<int> count{0};
  {
    IoThread io("test-io");
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back("poster", [&] {
        for (int i = 0; i < 250; ++i) io.post([&] { ++count; });
        io.call([] {});
      });
    threads.clear();
  }
  EXPECT_EQ(count, 1000);
}

// The thread ends while a call waits for a promise that never resolves: an error, not a hang.
TEST(IoThread, APendingCallFailsWhenTheThreadEnds) {
  auto io = std::make_unique<IoThread>("test-io");
  std::promise<void> started;
  Thread caller("caller", [&, raw = io.get()] {
    try {
      raw->call([&]() -> kj::Promise<void> {
        started.set_value();
        return kj::NEVER_DONE;
      });
      ADD_FAILURE() << "the call returned";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    }
  });
  started.get_future().get();
  io.reset();
  caller.join();
}

}  // namespace
}  // namespace dtf::net
