#include "launcher/systemd/unit_verdict.h"

#include <gtest/gtest.h>

#include <csignal>

#include "common/base/service_manager.h"

namespace dtf::launcher {

namespace {

UnitState unitState(const char* active) {
  UnitState unit;
  unit.name = "u";
  unit.active = active;
  return unit;
}

UnitState failedUnit(int code, uint64_t when, const char* result = "exit-code") {
  UnitState unit = unitState("failed");
  unit.result = result;
  unit.exit.code = code;
  unit.ended_usec = when;
  return unit;
}

}  // namespace

TEST(UnitVerdict, TheFirstThatFailedForItsOwnSakeIsTheCause) {
  const UnitState up = unitState("active"), ended = unitState("inactive");
  EXPECT_EQ(firstFailed({up, ended}, true), std::nullopt);
  EXPECT_EQ(firstFailed({failedUnit(65, 9), failedUnit(1, 7), failedUnit(69, 5), up}, true), 1u);
  EXPECT_EQ(firstFailed({failedUnit(124, 9), failedUnit(69, 5)}, false), std::nullopt);
  EXPECT_EQ(firstFailed({failedUnit(124, 9), failedUnit(69, 5)}, true), 1u);
}

TEST(UnitVerdict, WhoWasToldToEndIsNoCause) {
  EXPECT_EQ(firstFailed({failedUnit(143, 1), failedUnit(130, 2)}, true), std::nullopt);
}

TEST(UnitVerdict, ReadyIsWhoIsUpOrHasEnded) {
  const UnitState up = unitState("active"), ended = unitState("inactive");
  const UnitState starting = unitState("activating");
  EXPECT_TRUE(allUp({up, ended, failedUnit(1, 1)}));
  EXPECT_FALSE(allUp({up, starting}));
  EXPECT_TRUE(allEnded({ended, failedUnit(1, 1)}));
  EXPECT_FALSE(allEnded({ended, starting}));
}

TEST(UnitVerdict, ACauseIsSaidInWords) {
  EXPECT_EQ(unitCause(unitState("inactive")), "");
  EXPECT_EQ(unitCause(failedUnit(65, 1)), "exited with code 65 (bad_data)");
  UnitState killed = failedUnit(0, 1, "start-limit-hit");
  killed.exit.signal = SIGKILL;
  killed.restarts = 10;
  EXPECT_EQ(unitCause(killed),
            "was killed by SIGKILL (signal 9), and was started again 10 times, as often as "
            "launch.restarts allows");
  EXPECT_EQ(unitCause(failedUnit(0, 1, "watchdog")), "hung: the watchdog of systemd killed it");
  UnitState greedy = failedUnit(0, 1, "oom-kill");
  greedy.exit.signal = SIGKILL;
  EXPECT_EQ(
      unitCause(greedy),
      "was killed by SIGKILL (signal 9): the kernel had killed a process of the unit for lack of "
      "memory, see dmesg and MemoryMax= of its slice");
  UnitState mistake = failedUnit(78, 1);
  mistake.status = "failed: no such file";
  const RootCause root = unitRootCause(mistake, 3, "worker/1");
  EXPECT_EQ(root.what, "worker/1 exited with code 78 (bad_config)");
  EXPECT_EQ(root.message, "no such file");
  EXPECT_EQ(root.exit_code, 78);
}

TEST(UnitVerdict, TheExitCodeIsWhatItIsOnThisHostWithoutUnits) {
  const RootCause root{0, "w", "", 65};
  EXPECT_EQ(endOfUnits("done", std::nullopt, 0).exit_code, 0);
  EXPECT_EQ(endOfUnits("done", root, SIGINT).outcome, Outcome::kDone) << "it has its result";
  EXPECT_EQ(endOfUnits("stopped", root, 0).exit_code, 65);
  EXPECT_EQ(endOfUnits("stopped", std::nullopt, 0).exit_code, 0);
  EXPECT_EQ(endOfUnits("stopped", std::nullopt, SIGTERM).exit_code, 0);
  EXPECT_EQ(endOfUnits("stopped", std::nullopt, SIGINT).exit_code, 130);
  EXPECT_EQ(endOfUnits("interrupted", std::nullopt, 0).exit_code, 143);
  EXPECT_EQ(endOfUnits("", std::nullopt, SIGINT).exit_code, 130);
  EXPECT_EQ(endOfUnits("", std::nullopt, 0).exit_code, 69);
}

TEST(UnitVerdict, WhoEndedBecauseTheChiefSaidSoIsNotTheCause) {
  UnitState told = failedUnit(78, 1), chief = failedUnit(78, 2);
  told.status = "failed with its job: the job was ended by worker/0: no room";
  chief.status = "failed: no room";
  EXPECT_EQ(firstFailed({told, chief}, false), 1u);
  EXPECT_EQ(firstFailed({told, unitState("active")}, false), std::nullopt);
  EXPECT_EQ(firstFailed({told, unitState("active")}, true), 0u);
  EXPECT_EQ(unitRootCause(told, 0, "ps/0").message, "the job was ended by worker/0: no room");
  told.status = "failed: 'the job was ended by worker/0' is no path";
  EXPECT_EQ(firstFailed({told, chief}, false), 0u) << "its words alone decide nothing";
}

TEST(UnitVerdict, AUnitThatIsGoneWhileOthersRunHasFailed) {
  UnitState there = unitState("active");
  there.file = "/run/systemd/system/u";
  std::vector<UnitState> units = {there, there, unitState("inactive")};
  std::vector<bool> seen(3);
  markGone(units, seen);
  EXPECT_FALSE(units[2].hasFailed()) << "it never was there";
  units[1] = unitState("inactive");  // its host was rebooted
  markGone(units, seen);
  ASSERT_TRUE(units[1].hasFailed());
  EXPECT_EQ(firstFailed(units, false), 1u);
  const RootCause root = unitRootCause(units[1], 1, "worker/1");
  EXPECT_EQ(root.what, "worker/1 is gone with its unit: its host or its systemd was restarted");
  EXPECT_EQ(root.exit_code, 69);
  std::vector<UnitState> removed(3, unitState("inactive"));
  markGone(removed, seen);
  EXPECT_TRUE(allEnded(removed) && !removed[1].hasFailed()) << "somebody has removed them all";
}

TEST(UnitVerdict, AChiefThatIsKilledBehindItsResultIsDone) {
  const std::vector<TaskId> tasks{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}};
  const UnitState runs = unitState("active");
  UnitState killed = failedUnit(0, 9, "signal");
  killed.exit.signal = SIGKILL;
  killed.status = "step 1000 of 1000, loss 0.2, finishing";
  EXPECT_FALSE(hasChiefEnded({runs, killed, runs}, tasks)) << "it may not have been saved";
  killed.status = resultStatus(1000);
  EXPECT_TRUE(hasChiefEnded({runs, killed, runs}, tasks));
  killed.active = "activating";
  EXPECT_FALSE(hasChiefEnded({runs, killed, runs}, tasks)) << "the next process ends by itself";
}

TEST(UnitVerdict, AChiefThatIsKilledWhenAllOthersHaveEndedWasAtItsEnd) {
  const std::vector<TaskId> tasks{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}};
  UnitState ended = unitState("inactive");
  ended.ended_usec = 5;
  UnitState killed = failedUnit(0, 9, "signal");
  killed.exit.signal = SIGKILL;
  UnitState again = killed;
  again.active = "activating";
  EXPECT_TRUE(hasChiefEnded({ended, killed, ended}, tasks));
  EXPECT_TRUE(hasChiefEnded({ended, again, ended}, tasks)) << "it would wait in vain";
  EXPECT_FALSE(hasChiefEnded({unitState("active"), again, ended}, tasks));
  EXPECT_FALSE(hasChiefEnded({unitState("inactive"), again, ended}, tasks)) << "it never ran";
  EXPECT_FALSE(hasChiefEnded({ended, failedUnit(73, 9), ended}, tasks)) << "it said why";
  EXPECT_FALSE(hasChiefEnded({ended, ended, again}, tasks)) << "a worker";
  EXPECT_EQ(endOfUnits("", std::nullopt, 0, true).exit_code, 0);
  EXPECT_EQ(endOfUnits("", std::nullopt, 0, true).outcome, Outcome::kDone);
}

}  // namespace dtf::launcher
