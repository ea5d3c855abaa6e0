// The simulator of sessions finds every mistake of mutations.toml, in libraries that have all of
// them behind switches.

#include <gtest/gtest.h>

#include "common/base/log.h"
#include "tests/session_sim/mutants.h"
#include "tests/session_sim/session_sim.h"
#include "tests/sim/mutant_search.h"

namespace dtf::sim {

namespace {

class SessionMutants : public ::testing::TestWithParam<NamedMutant> {
 protected:
  static void SetUpTestSuite() { log::init("sim", log::Level::kError); }
};

TEST_P(SessionMutants, IsFound) {
  expectFound(GetParam().name, [](uint64_t seed, bool planted) {
    mutant = planted ? GetParam().mutant : Mutant::kNone;
    const SessionReport report = runSessionSeed(seed);
    mutant = Mutant::kNone;
    return report.problems.empty() ? "" : report.problems.front();
  });
}

INSTANTIATE_TEST_SUITE_P(All, SessionMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
