// The simulator of sessions finds every mistake of mutations.toml, in libraries that have all of
// them behind switches.

#include <gtest/gtest.h>

#include "common/base/log.h"
#include "tests/session_sim/mutants.h"
#include "tests/session_sim/replicas_sim.h"
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
    // Sessions and trainings in turn.
    const std::vector<std::string> problems =
        seed % 2 == 0 ? runSessionSeed(seed / 2).problems
                      : runReplicasSeed(kFirstReplicasSeed + seed / 2).problems;
    mutant = Mutant::kNone;
    return problems.empty() ? "" : problems.front();
  });
}

INSTANTIATE_TEST_SUITE_P(All, SessionMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
