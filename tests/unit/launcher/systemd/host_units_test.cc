#include "launcher/systemd/host_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// What it does where systemd is process 1: tests/hosts/far_units_test.py and
// systemd_launch_test.py.

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

TEST(HostUnits, FailuresAreToldToAnAskerElsewhere) {
  HostUnits units({});
  const UnitAnswer early = units.tell(FreeQuestion{});
  ASSERT_TRUE(early.error);
  EXPECT_EQ(early.error->code(), ErrorCode::kBadData);
  EXPECT_THAT(early.error->message(), HasSubstr("nobody has said which units"));
  const UnitAnswer none = units.tell(MeetQuestion{"j", "a1", "/run", "/", {}, false});
  ASSERT_TRUE(none.error);
  EXPECT_THAT(none.error->message(), HasSubstr("no unit is asked about"));
  const UnitAnswer outside = units.tell(MeetQuestion{"j", "a1", "/run", "/", {"../u"}, false});
  ASSERT_TRUE(outside.error && !outside.facts);
  EXPECT_THAT(outside.error->message(), HasSubstr("no name of a unit"));
}

TEST(HostUnits, WhoAsksHereCatchesThem) {
  HostUnits units({});
  EXPECT_THROW(units.answer(ControlQuestion{{"stop"}}), Error);
}

}  // namespace
}  // namespace dtf::launcher
