#include "launcher/systemd/host_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// tests/hosts/far_units_test.py and systemd_launch_test.py test it where systemd is process 1.

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

TEST(HostUnits, FailuresAreToldToAnAskerElsewhere) {
  HostUnits units({});
  const UnitAnswer early = units.tell(FreeQuestion{});
  ASSERT_TRUE(early.error);
  EXPECT_EQ(early.error->code(), ErrorCode::kBadData);
  EXPECT_THAT(early.error->message(), HasSubstr("the first request must name the units"));
  const UnitAnswer none = units.tell(MeetQuestion{"j", "a1", "/run", "/", {}, false});
  ASSERT_TRUE(none.error);
  EXPECT_THAT(none.error->message(), HasSubstr("a request without units"));
  const UnitAnswer outside = units.tell(MeetQuestion{"j", "a1", "/run", "/", {"../u"}, false});
  ASSERT_TRUE(outside.error && !outside.facts);
  EXPECT_THAT(outside.error->message(), HasSubstr("not a name of a unit"));
}

TEST(HostUnits, WhoAsksHereCatchesThem) {
  HostUnits units({});
  EXPECT_THROW(units.answer(ControlQuestion{{"stop"}}), Error);
}

}  // namespace
}  // namespace dtf::launcher
