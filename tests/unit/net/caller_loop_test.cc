#include "common/net/caller_loop.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "common/base/error.h"
#include "common/net/polled.h"

namespace dtf::net {
namespace {

using std::chrono::milliseconds;

TEST(CallerLoop, RunsOnTheThreadThatCalls) {
  CallerLoop loop{Duration{0}};
  const auto me = std::this_thread::get_id();
  EXPECT_EQ(loop.call([] { return std::this_thread::get_id(); }), me);
  const auto during_wait = loop.call([&loop] {
    return loop.timer().afterDelay(1 * kj::MILLISECONDS).then([] {
      return std::this_thread::get_id();
    });
  });
  EXPECT_EQ(during_wait, me);
}

TEST(CallerLoop, MayBeCalledByOneThreadAfterAnother) {
  CallerLoop loop{milliseconds(1)};
  std::optional<kj::Promise<int>> kept;  // made here, awaited there
  loop.call([&] { kept = loop.timer().afterDelay(5 * kj::MILLISECONDS).then([] { return 7; }); });
  int result = 0;
  std::thread([&] { result = loop.call([&] { return kj::mv(*kept); }); }).join();
  EXPECT_EQ(result, 7);
  loop.call([&] { kept.reset(); });
}

TEST(CallerLoop, APostWakesACallThatWaits) {
  CallerLoop loop{Duration{0}};
  auto pair = kj::newPromiseAndFulfiller<int>();
  std::thread other([&] { loop.post([&] { pair.fulfiller->fulfill(3); }); });
  EXPECT_EQ(loop.call([&] { return kj::mv(pair.promise); }), 3);
  other.join();
  loop.call([&] { pair.fulfiller = nullptr; });
}

TEST(CallerLoop, APostBetweenTwoCallsRunsInTheNext) {
  CallerLoop loop{Duration{0}};
  bool ran = false;
  loop.post([&] { ran = true; });
  EXPECT_FALSE(ran) << "nobody runs the loop";
  loop.call([&] { return loop.timer().afterDelay(1 * kj::MILLISECONDS); });
  EXPECT_TRUE(ran);
}

// Counts how often it is asked, and has work once.
class CountedWork : public Polled {
 public:
  bool poll() override { return ++polls == has_work_at; }
  bool beforeSleep() override {
    ++sleeps;
    return false;
  }
  int polls = 0, sleeps = 0;
  int has_work_at = 0;
};

TEST(CallerLoop, LooksForWorkInMemoryUntilItSleeps) {
  CallerLoop loop{milliseconds(1)};
  CountedWork work;
  ASSERT_TRUE(loop.addPolled(work));
  loop.call([&] { return loop.timer().afterDelay(20 * kj::MILLISECONDS); });
  EXPECT_GT(work.polls, 0);
  EXPECT_GT(work.sleeps, 0);
  loop.removePolled(work);
  const int polls = work.polls;
  loop.call([&] { return loop.timer().afterDelay(1 * kj::MILLISECONDS); });
  EXPECT_EQ(work.polls, polls);
}

TEST(CallerLoop, WithoutPollingItLooksForNothing) {
  CallerLoop loop{Duration{0}};
  CountedWork work;
  EXPECT_FALSE(loop.addPolled(work));
  loop.call([&] { return loop.timer().afterDelay(1 * kj::MILLISECONDS); });
  EXPECT_EQ(work.polls + work.sleeps, 0);
}

TEST(CallerLoop, ErrorsArriveAsOurs) {
  CallerLoop loop{Duration{0}};
  try {
    loop.call([&]() -> kj::Promise<void> {
      return loop.timer().afterDelay(1 * kj::MILLISECONDS).then([] {
        throwAsKj(Error(ErrorCode::kBadData, "no good"));
      });
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_STREQ(error.what(), "no good");
  }
}

}  // namespace
}  // namespace dtf::net
