#include "common/replication/phase_json.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

using std::chrono::microseconds;

TEST(PhaseJson, PhasesAreMillisecondsByName) {
  PhaseTimes times;
  times[Phase::kData] = microseconds(250);
  times[Phase::kWait] = microseconds(1500);
  EXPECT_EQ(phasesJson(times),
            Json::parse(R"({"data": 0.25, "compute": 0.0, "send": 0.0, "wait": 1.5,
                            "evaluate": 0.0})"));
}

TEST(PhaseJson, AStragglerHasItsPhaseAndItsExcess) {
  EXPECT_EQ(stragglerJson(Straggler{3, Phase::kSend, microseconds(4500)}),
            Json::parse(R"({"worker": "worker/3", "phase": "send", "excess_ms": 4.5})"));
  EXPECT_TRUE(stragglerJson(std::nullopt).isNull());
}

}  // namespace
}  // namespace dtf::replication
