#include "common/net/caller_loop.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "common/base/error.h"

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
