// The end of the job on one host: common/host/ps_server_end.cc.

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

using std::chrono::milliseconds;

TEST(PsServer, AProcessThatLeavesTellsItsPeersWhyAndTheyMayWaitForAnother) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  std::optional<Error> told;
  auto asked = control.awaitEndRequest().send().ignoreResult().eagerlyEvaluate(
      [&](kj::Exception&& e) { told = net::toError(e); });
  world.loop.settle();
  EXPECT_FALSE(world.server().isEnding());
  world.server().leaveWith(Error(ErrorCode::kBadData, "x.csv: cannot open it"));
  EXPECT_TRUE(world.server().isEnding());
  world.loop.settle();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->message(), "it has left: x.csv: cannot open it");
  EXPECT_TRUE(told->has(ErrorTrait::kProcessLeft));
  EXPECT_EQ(world.refusal(control.heartbeatRequest().send().ignoreResult()), "")
      << "only the broken connection ends the calls";
  EXPECT_FALSE(world.ended());
  connection = nullptr;
  world.loop.live(
      std::chrono::seconds(3));  // `control` is held: the server lingers as long as it may
  EXPECT_TRUE(world.ended());
  EXPECT_THROW(world.server().result(), Error);
}

}  // namespace
}  // namespace dtf::host
