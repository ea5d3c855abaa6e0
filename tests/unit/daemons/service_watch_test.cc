#include "daemons/service_watch.h"

#include <gtest/gtest.h>
#include <kj/debug.h>

#include <utility>

#include "common/net/reactor.h"
#include "tests/support/notify_socket.h"
#include "tests/support/process.h"

namespace dtf::daemons {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ServiceWatchTest : public ::testing::Test {
 protected:
  ~ServiceWatchTest() noexcept override {}  // kj's destructors may throw, gtest's may not

  // Turns the loop until `word` has arrived.
  std::string await(const std::string& word) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      turn();
      for (;;) {
        const auto got = socket_.next(milliseconds(0));
        if (!got) break;
        if (got->find(word) != std::string::npos) return *got;
      }
    }
    return "nothing with " + word + " in " + socket_.heard();
  }
  void turn() { reactor_.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor_.wait_scope); }

  testing::TemporaryFolder folder_;
  testing::NotifySocket socket_{folder_.path() + "/notify"};
  const ServiceManager manager_{socket_.name(), milliseconds(20)};
  net::Reactor reactor_;
};

TEST_F(ServiceWatchTest, EachLookFeedsTheWatchdogAndSaysTheStatus) {
  int looks = 0;
  const ServiceWatch watch(reactor_.timer, &manager_, [&looks]() -> kj::Promise<ServiceLook> {
    return ServiceLook{"look " + std::to_string(++looks)};
  });
  EXPECT_EQ(await("look 1\n"), "STATUS=look 1\nWATCHDOG=1\n");
  EXPECT_EQ(await("look 2\n"), "STATUS=look 2\nWATCHDOG=1\n");
}

// One of its loops hangs: nothing is sent to the watchdog until that loop turns again.
TEST_F(ServiceWatchTest, ALookThatIsNotAnsweredFeedsNothing) {
  auto answer = kj::newPromiseAndFulfiller<ServiceLook>();
  int looks = 0;
  const ServiceWatch watch(reactor_.timer, &manager_, [&]() -> kj::Promise<ServiceLook> {
    if (++looks == 1) return kj::mv(answer.promise);
    return ServiceLook{"awake"};
  });
  while (looks == 0) turn();
  for (int turns = 0; turns < 100; ++turns) turn();
  EXPECT_EQ(socket_.next(milliseconds(0)), std::nullopt) << socket_.heard();
  EXPECT_EQ(looks, 1);
  answer.fulfiller->fulfill(ServiceLook{"late"});
  EXPECT_EQ(await("late"), "STATUS=late\nWATCHDOG=1\n");
  EXPECT_EQ(await("awake"), "STATUS=awake\nWATCHDOG=1\n");
}

TEST_F(ServiceWatchTest, WhoStartsOrStopsAsksForTime) {
  bool starting = true;
  ServiceWatch watch(reactor_.timer, &manager_, [&starting]() -> kj::Promise<ServiceLook> {
    return ServiceLook{starting ? "starting" : "training", starting};
  });
  EXPECT_EQ(await("starting"), "STATUS=starting\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000\n");
  starting = false;
  EXPECT_EQ(await("training"), "STATUS=training\nWATCHDOG=1\n");
  watch.stopping();
  EXPECT_EQ(await("STOPPING"), "STOPPING=1");
  EXPECT_EQ(await("training"), "STATUS=training\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000\n");
}

TEST_F(ServiceWatchTest, ATaskThatDoesNotAnswerBecauseItEndsIsFedOn) {
  const ServiceWatch watch(reactor_.timer, &manager_, []() -> kj::Promise<ServiceLook> {
    return KJ_EXCEPTION(FAILED, "the job has ended");
  });
  EXPECT_EQ(await("WATCHDOG"), "STATUS=ending\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000\n");
}

TEST_F(ServiceWatchTest, WithoutAServiceManagerNobodyLooks) {
  int looks = 0;
  ServiceWatch watch(reactor_.timer, nullptr, [&looks]() -> kj::Promise<ServiceLook> {
    ++looks;
    return ServiceLook{};
  });
  watch.stopping();
  for (int turns = 0; turns < 20; ++turns) turn();
  EXPECT_EQ(looks, 0);
}

}  // namespace dtf::daemons
