// The simulator finds every mistake of mutations.toml, in libraries that have all of them behind
// switches. Each runs in a process of its own: a mistake that trips an assertion is found, too.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/sim/cluster_sim.h"
#include "tests/sim/mutants.h"

namespace dtf::sim {

namespace {

constexpr uint64_t kSeedsMax = 3000;  // most are found in the first hundreds

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

enum Outcome : int { kFound, kNotFound, kUncleanWithout };

Outcome find(const NamedMutant& planted) {
  for (uint64_t seed = 0; seed < kSeedsMax; ++seed) {
    const std::string problem = firstProblem(seed, planted.mutant);
    if (problem.empty()) continue;
    std::printf("%s: seed %lu: %s\n", planted.name, seed, problem.c_str());
    const std::string without = firstProblem(seed, Mutant::kNone);
    if (without.empty()) return kFound;
    std::printf("%s: seed %lu without the mistake: %s\n", planted.name, seed, without.c_str());
    return kUncleanWithout;
  }
  std::printf("%s was not found in %lu seeds\n", planted.name, kSeedsMax);
  return kNotFound;
}

TEST_P(Mutants, IsFound) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Outcome outcome = find(GetParam());
    std::fflush(nullptr);
    ::_exit(outcome);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
    return;  // the line above says which check
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), kFound);
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
