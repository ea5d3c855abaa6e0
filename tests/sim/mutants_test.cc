// The simulator finds every mistake of mutations.toml, in libraries that have all of them behind
// switches.

#include <gtest/gtest.h>

#include "common/base/log.h"
#include "tests/sim/cluster_sim.h"
#include "tests/sim/mutant_search.h"
#include "tests/sim/mutants.h"

namespace dtf::sim {

namespace {

class Mutants : public ::testing::TestWithParam<NamedMutant> {
 protected:
  static void SetUpTestSuite() { log::init("sim", log::Level::kError); }
};

TEST_P(Mutants, IsFound) {
  expectFound(GetParam().name, [](uint64_t number, bool planted) {
    mutant = planted ? GetParam().mutant : Mutant::kNone;
    // One in four is a job that is hurt at its end, of all over their list.
    const bool is_end = number % 4 == 3;
    const uint64_t end = number / 4 * 37 % kEndPlans;
    const Report report = runSeed(is_end ? kFirstEndPlan + end : number - number / 4);
    mutant = Mutant::kNone;
    return report.problems.empty() ? "" : report.problems.front();
  });
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
