#include "common/shard/shard_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace dtf::shard {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Incarnation kLife{1};

class ShardWaitsTest : public ::testing::Test {
 protected:
  // Notes the messages of errors; a call that succeeds is noted by name.
  template <class Answer>
  std::function<void(Answer)> recorder(const std::string& name) {
    return [this, name](const Answer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      answers_.push_back(name + ": " + (error == nullptr ? "answered" : error->message()));
    };
  }
  replication::PushCallback pushed(const std::string& name) {
    return recorder<replication::PushAnswer>(name);
  }
  static ParkedCall pushOf(uint64_t step) {
    ParkedCall call{.incarnation = kLife};
    call.contribution.emplace();
    call.contribution->step = step;
    return call;
  }
  void park(ParkedCall call, const std::string& name) {
    const replication::OutwardCalls::Scope scope(calls_);
    waits_.park(0, std::move(call), pushed(name));
  }
  void expire() {
    const replication::OutwardCalls::Scope scope(calls_);
    waits_.expire([] { return "; without values: w"; });
  }

  const ShardOptions options_{
      .ps_task = 1, .workers = 2, .step_timeout = seconds(10), .rejoin_timeout = seconds(20)};
  ManualClock clock_;
  replication::OutwardCalls calls_;
  ShardWaits waits_{options_, calls_, clock_};
  std::vector<std::string> answers_;
};

TEST_F(ShardWaitsTest, ALatePushGivesWayToTheCallThatWaits) {
  park(pushOf(5), "step 5");
  park(pushOf(4), "step 4");
  EXPECT_THAT(answers_, ElementsAre(HasSubstr("step 4: worker/0 asked ps/1 again")));
  answers_.clear();
  park({.incarnation = kLife}, "pull");
  EXPECT_THAT(answers_, ElementsAre(HasSubstr("step 5: worker/0 asked ps/1 again")));
  answers_.clear();
  park(pushOf(6), "step 6");
  EXPECT_THAT(answers_, ElementsAre(HasSubstr("step 6: ")))
      << "a worker that pulls has nothing to push before it is answered";
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(ShardWaitsTest, EachKindHasItsOwnDeadline) {
  {
    const replication::OutwardCalls::Scope scope(calls_);
    waits_.awaitInitialised(0, seconds(5), recorder<replication::WaitAnswer>("first"));
    waits_.awaitAside(0, Aside::kAverages, pushed("aside"));
    waits_.park(0, {.incarnation = kLife}, pushed("parked"));
  }
  EXPECT_EQ(waits_.size(), 3u);
  clock_.advance(seconds(5));
  expire();
  EXPECT_THAT(answers_, ElementsAre("first: worker/0 has waited 5 s for the chief, worker/0, to "
                                    "initialise ps/1; without values: w"));
  clock_.advance(seconds(5));
  expire();
  EXPECT_THAT(answers_.back(), HasSubstr("aside: worker/0 has waited 10 s on ps/1"));
  clock_.advance(seconds(10));
  expire();
  EXPECT_EQ(answers_.back(),
            "parked: worker/0 has waited 20 s for worker/0 to bring the values of ps/1 back");
  EXPECT_EQ(waits_.size(), 0u);
}

TEST_F(ShardWaitsTest, ParkedCallsWaitLongerForALiveChiefButNotForEver) {
  park({.incarnation = kLife}, "pull");
  Duration waited{};
  for (; waited < kBringBackMax; waited += seconds(10)) {
    expire();
    ASSERT_THAT(answers_, IsEmpty());
    waits_.holdParked();
    clock_.advance(seconds(10));
  }
  expire();
  EXPECT_THAT(answers_, ElementsAre(HasSubstr("to bring the values of ps/1 back")));
}

TEST_F(ShardWaitsTest, ALostWorkersCallsAreAllDropped) {
  const replication::OutwardCalls::Scope scope(calls_);
  waits_.awaitInitialised(1, seconds(5), recorder<replication::WaitAnswer>("first"));
  waits_.awaitAside(1, Aside::kParameters, pushed("aside"));
  waits_.park(1, {.incarnation = kLife}, pushed("parked"));
  waits_.park(0, {.incarnation = kLife}, pushed("another's"));
  waits_.drop(1, Error(ErrorCode::kUnavailable, "lost"));
  EXPECT_EQ(waits_.size(), 1u);
  EXPECT_FALSE(waits_.anyAside());
  EXPECT_TRUE(waits_.anyParked());
}

}  // namespace
}  // namespace dtf::shard
