// The simulator finds every mistake of mutations.toml, in libraries that have all of them behind
// switches.

#include <gtest/gtest.h>

#include "common/base/log.h"
#include "tests/sim/cluster_sim.h"
#include "tests/sim/mutants.h"

namespace dtf::sim {

namespace {

constexpr uint64_t kSeedsMax = 2000;  // as the test run has

std::string firstProblem(uint64_t seed, Mutant planted) {
  mutant = planted;
  const Report report = runSeed(seed);
  mutant = Mutant::kNone;
  return report.problems.empty() ? "" : report.problems.front();
}

class Mutants : public ::testing::TestWithParam<NamedMutant> {
 protected:
  static void SetUpTestSuite() { log::init("sim", log::Level::kError); }
};

TEST_P(Mutants, IsFound) {
  for (uint64_t seed = 0; seed < kSeedsMax; ++seed) {
    const std::string problem = firstProblem(seed, GetParam().mutant);
    if (problem.empty()) continue;
    std::printf("%s: seed %lu: %s\n", GetParam().name, seed, problem.c_str());
    EXPECT_EQ(firstProblem(seed, Mutant::kNone), "") << "without the mistake, seed " << seed;
    return;
  }
  FAIL() << GetParam().name << " was not found in " << kSeedsMax << " seeds";
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
