#pragma once

// Looks for the seed by which a simulator finds a mistake that is planted in its code (mutate.py).
// The search runs in a process of its own: a mistake that trips an assertion is found, too.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace dtf::sim {

// The first broken promise of a run with or without the mistake; empty: none.
using FirstProblem = std::function<std::string(uint64_t seed, bool planted)>;

namespace internal {

inline constexpr uint64_t kSeedsMax = 6000;  // most are found in the first hundreds

enum Outcome : int { kFound, kNotFound, kUncleanWithout };

inline Outcome search(const char* name, const FirstProblem& first_problem, uint64_t& now) {
  for (uint64_t seed = 0; seed < kSeedsMax; ++seed) {
    now = seed;
    const std::string problem = first_problem(seed, true);
    if (problem.empty()) continue;
    std::printf("%s: seed %lu: %s\n", name, seed, problem.c_str());
    const std::string without = first_problem(seed, false);
    if (without.empty()) return kFound;
    std::printf("%s: seed %lu without the mistake: %s\n", name, seed, without.c_str());
    return kUncleanWithout;
  }
  std::printf("%s was not found in %lu seeds\n", name, kSeedsMax);
  return kNotFound;
}

// In processor time. A search takes a minute at most, but a mistake that corrupts its memory may
// never end. That is no proof: a simulator finds a mistake by a promise that it sees broken, a
// job that does not end among them.
constexpr rlim_t kSearchSeconds = 240;

inline bool endsByAMistake(int signal) {
  return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE;
}

}  // namespace internal

inline void expectFound(const char* name, const FirstProblem& first_problem) {
  // A failed check may end the process, so the search shares its seed with this process, which runs
  // it without the mistake.
  const auto seed = static_cast<uint64_t*>(
      ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(seed, MAP_FAILED);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{internal::kSearchSeconds, internal::kSearchSeconds + 1};
    ::setrlimit(RLIMIT_CPU, &limit);
    const internal::Outcome outcome = internal::search(name, first_problem, *seed);
    std::fflush(nullptr);
    ::_exit(outcome);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const uint64_t found_by = *seed;
  ::munmap(seed, sizeof(uint64_t));
  // A failed check aborted the search (the line above names it), or the mistake corrupted its
  // memory. Either counts only if the same seed keeps all promises without the mistake, in this
  // process.
  if (WIFSIGNALED(status)) {
    std::printf("%s: seed %lu: ended by signal %d\n", name, found_by, WTERMSIG(status));
    ASSERT_NE(WTERMSIG(status), SIGXCPU) << "the search has not ended: seed " << found_by;
    EXPECT_TRUE(internal::endsByAMistake(WTERMSIG(status))) << "signal " << WTERMSIG(status);
    EXPECT_EQ(first_problem(found_by, false), "") << "seed " << found_by;
    return;
  }
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), internal::kFound);
}

}  // namespace dtf::sim
