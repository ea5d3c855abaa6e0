// The simulator finds every mistake of mutations.toml, in libraries that have all of them behind
// switches. Each runs in a process of its own: a mistake that trips an assertion is found, too.

#include <gtest/gtest.h>
#include <sys/mman.h>
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

Outcome find(const NamedMutant& planted, uint64_t& now) {
  for (uint64_t seed = 0; seed < kSeedsMax; ++seed) {
    now = seed;
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

bool endsByAMistake(int signal) {
  return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE;
}

TEST_P(Mutants, IsFound) {
  // A check of ours may end the process: the seed is told to this one, which runs it without the mistake.
  const auto seed = static_cast<uint64_t*>(
      ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(seed, MAP_FAILED);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Outcome outcome = find(GetParam(), *seed);
    std::fflush(nullptr);
    ::_exit(outcome);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const uint64_t found_by = *seed;
  ::munmap(seed, sizeof(uint64_t));
  // A check of ours aborted it (the line above says which), or the mistake led it out of its memory.
  // Either finds the mistake only where the same seed is well without it, in this process.
  if (WIFSIGNALED(status)) {
    EXPECT_TRUE(endsByAMistake(WTERMSIG(status))) << "signal " << WTERMSIG(status);
    EXPECT_EQ(firstProblem(found_by, Mutant::kNone), "") << "seed " << found_by;
    return;
  }
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), kFound);
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(kMutants),
                         [](const auto& planted) { return planted.param.name; });

}  // namespace

}  // namespace dtf::sim
