#include "launcher/systemd/service_control.h"

#include <gtest/gtest.h>

#include <csignal>

namespace dtf::launcher {

TEST(ServiceControl, ReadsWhatSystemdSaysOfSeveralUnits) {
  const std::vector<UnitState> states = parseUnitStates(
      "Result=success\nNRestarts=2\nExecMainCode=0\nExecMainStatus=0\nId=dtf-a@ps-0.service\n"
      "ActiveState=active\nStatusText=step 3 of 9, loss=0.5\n"
      "FragmentPath=/run/systemd/system/dtf-a@ps-0.service\nInactiveEnterTimestampMonotonic=0\n\n"
      "Result=signal\nExecMainCode=2\nExecMainStatus=9\nId=dtf-a@worker-0.service\n"
      "ActiveState=failed\nInactiveEnterTimestampMonotonic=77\n\n"
      "Job=12\nExecMainCode=1\nExecMainStatus=65\nId=dtf-a@worker-1.service\nActiveState=failed\n");
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].name, "dtf-a@ps-0.service");
  EXPECT_TRUE(states[0].isUp() && states[0].isAlive() && states[0].exit.success());
  EXPECT_EQ(states[0].restarts, 2u);
  EXPECT_EQ(states[0].status, "step 3 of 9, loss=0.5");
  EXPECT_EQ(states[0].file, "/run/systemd/system/dtf-a@ps-0.service");
  EXPECT_TRUE(states[1].hasFailed() && !states[1].isAlive());
  EXPECT_EQ(states[1].exit.signal, SIGKILL);
  EXPECT_EQ(states[1].ended_usec, 77u);
  EXPECT_EQ(states[2].exit.code, 65);
  EXPECT_TRUE(states[2].isAlive()) << "something is about to be done with it";
  EXPECT_FALSE(states[2].hasFailed());
}

TEST(ServiceControl, AUnitThatIsStartedAgainOrStoppedIsAlive) {
  for (const char* active : {"activating", "deactivating", "active", "reloading"})
    EXPECT_TRUE(parseUnitStates(std::string("Id=a\nActiveState=") + active + "\n")[0].isAlive());
  EXPECT_FALSE(parseUnitStates("Id=a\nActiveState=inactive\n")[0].isAlive());
  EXPECT_TRUE(parseUnitStates("\n\nVersion=252\n").empty());
}

}  // namespace dtf::launcher
