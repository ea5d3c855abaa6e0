#include "common/runtime/compute_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "common/base/cores.h"
#include "common/base/error.h"
#include "tests/support/sanitizer.h"
#include "tests/unit/runtime/count_allocations.h"

namespace dtf::runtime {
namespace {

using std::chrono::steady_clock;

// Longer than a thread spins, so that a thread that waits for it sleeps.
void busyFor(std::chrono::microseconds time) {
  const auto end = steady_clock::now() + time;
  while (steady_clock::now() < end) {
  }
}
constexpr std::chrono::microseconds kLong{300};

TEST(ComputePool, RunsEveryPartOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ComputePool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      for (const int parts : {0, 1, 2, 3, 7, 40}) {
        // Not atomic: each part runs in one thread, and the caller reads them after run() has
        // returned.
        std::vector<int> runs(static_cast<size_t>(parts)), by(static_cast<size_t>(parts), -1);
        pool.run(parts, [&](int part, int thread) {
          ++runs[static_cast<size_t>(part)];
          by[static_cast<size_t>(part)] = thread;
        });
        EXPECT_THAT(runs, ::testing::Each(1)) << threads << " " << parts;
        EXPECT_THAT(by,
                    ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(threads))));
      }
    }
  }
}

TEST(ComputePool, PartsRunAtTheSameTime) {
  ComputePool pool(3);
  std::atomic<int> here{0};
  pool.run(3, [&](int, int) {
    ++here;
    while (here < 3) std::this_thread::yield();  // for ever, unless all three run
  });
  EXPECT_EQ(here, 3);
}

TEST(ComputePool, OneThreadIsTheCallerAlone) {
  ComputePool pool(1);
  std::set<std::thread::id> ran_in;
  pool.run(5, [&](int, int) { ran_in.insert(std::this_thread::get_id()); });
  EXPECT_THAT(ran_in, ::testing::ElementsAre(std::this_thread::get_id()));
}

// Whichever thread runs the part that waits, the other one runs all other parts, of both shares.
TEST(ComputePool, APartThatIsSlowDelaysNoOther) {
  constexpr int kParts = 8;
  ComputePool pool(2);
  for (int slow = 0; slow < kParts; ++slow) {
    std::atomic<int> others{0};
    pool.run(kParts, [&](int part, int) {
      if (part != slow) {
        ++others;
        return;
      }
      while (others < kParts - 1) std::this_thread::yield();
    });
    EXPECT_EQ(others, kParts - 1);
  }
}

// Threads that sleep until a call wake up, and so does a call that sleeps until a thread is done.
TEST(ComputePool, WhoeverSleepsIsWoken) {
  ComputePool pool(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    busyFor(kLong);
    std::atomic<int> done{0}, others{0};
    pool.run(3, [&](int, int thread) {
      if (thread != 0) {
        ++others;
        busyFor(kLong);
      }
      while (thread == 0 && others < 2) std::this_thread::yield();  // takes no part of theirs
      ++done;
    });
    EXPECT_EQ(done, 3);
  }
}

TEST(ComputePool, EndsWhetherItsThreadsSpinOrSleep) {
  { const ComputePool unused(5); }
  ComputePool pool(5);
  busyFor(kLong);
}

cpu_set_t onlyCpu(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  return one;
}
cpu_set_t cpusOf(pid_t thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(::sched_getaffinity(thread, sizeof cpus, &cpus), 0);
  return cpus;
}
void setCpus(pid_t thread, const cpu_set_t& cpus) {
  ASSERT_EQ(::sched_setaffinity(thread, sizeof cpus, &cpus), 0);
}

// Runs f(thread) in both threads of a pool of two, at the same time.
template <class F>
void inBoth(ComputePool& pool, const F& f) {
  std::atomic<int> here{0};
  pool.run(2, [&](int, int thread) {
    ++here;
    while (here < 2) std::this_thread::yield();
    f(thread);
  });
}

// Linux leaves both threads on one CPU, while another process keeps the other CPU busy.
TEST(ComputePool, AThreadThatWasLastOnTheCallersCpuComputesOnAnother) {
  if (availableCores() < 2) GTEST_SKIP() << "needs two CPUs";
  const cpu_set_t all = cpusOf(0);
  ComputePool pool(2);
  testing::awaitThreads(pool);
  pid_t other = 0;
  int other_on = -1;
  const auto note = [&](int thread) {
    if (thread == 0) return;
    other = ::gettid();
    other_on = ::sched_getcpu();
  };
  inBoth(pool, note);
  const int cpu = ::sched_getcpu();
  setCpus(0, onlyCpu(cpu));
  setCpus(other, onlyCpu(cpu));
  inBoth(pool, note);
  EXPECT_EQ(other_on, cpu) << "left alone, for this test has set its CPUs";
  setCpus(other, all);
  inBoth(pool, note);
  EXPECT_NE(other_on, cpu);
  const cpu_set_t after = cpusOf(other);
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
  setCpus(0, all);
}

// Returns whether the thread was moved to one CPU while it was stalled in a part. After the call it
// may use all CPUs again.
template <class F>
bool movesAStalledThread(ComputePool& pool, const F& is_over) {
  const cpu_set_t all = cpusOf(0);
  bool was_moved = false;
  while (!was_moved && !is_over()) {
    pid_t other = 0;
    inBoth(pool, [&](int thread) {
      if (thread == 0) return;
      other = ::gettid();
      // As if Linux ran another process on its CPU, for longer than the caller spins.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const cpu_set_t now = cpusOf(other);
      was_moved = CPU_COUNT(&now) == 1;
    });
    const cpu_set_t after = cpusOf(other);
    EXPECT_TRUE(CPU_EQUAL(&after, &all));
  }
  return was_moved;
}

TEST(ComputePool, AThreadThatIsStalledMovesToTheCallersCpuForThatPart) {
  if (availableCores() < 2) GTEST_SKIP() << "needs two CPUs";
  ComputePool pool(2);
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  EXPECT_TRUE(movesAStalledThread(pool, [end] { return steady_clock::now() > end; }));
}

TEST(ComputePool, OneWithoutACpuForEachThreadMovesNone) {
  ComputePool pool(availableCores() + 1);
  const cpu_set_t all = cpusOf(0);
  std::atomic<int> moved{0};
  for (int i = 0; i < 5; ++i) {
    pool.run(pool.threads(), [&](int, int thread) {
      if (thread != 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const cpu_set_t now = cpusOf(0);
      if (!CPU_EQUAL(&now, &all)) ++moved;
    });
  }
  EXPECT_EQ(moved, 0);
}

TEST(ComputePool, AllocatesNothing) {
  ComputePool pool(3);
  testing::awaitThreads(pool);
  std::vector<int> values(30);
  const testing::CountAllocations allocations;
  pool.run(30, [&](int part, int) { values[static_cast<size_t>(part)] = part; });
  EXPECT_EQ(allocations.count(), 0);
}

TEST(ComputePool, NamesItsThreads) {
  ComputePool pool(3);
  std::atomic<int> here{0};
  std::multiset<std::string> names;
  pool.run(3, [&](int, int thread) {
    ++here;
    while (here < 3) std::this_thread::yield();
    if (thread != 0) return;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      names.insert(name);
    }
  });
  EXPECT_THAT(names, ::testing::IsSupersetOf({"compute-1", "compute-2"}));
}

TEST(ComputePoolDeathTest, RefusesACallFromWithinAPart) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  ComputePool pool(1);
  const auto nested = [&] { pool.run(1, [&](int, int) { pool.run(1, [](int, int) {}); }); };
  EXPECT_DEATH(nested(), "two callers of one pool");
  EXPECT_DEATH(pool.run(-1, [](int, int) {}), "-1");
  EXPECT_DEATH(ComputePool(0), "threads >= 1");
}

// The address space has no room for so many stacks.
TEST(ComputePoolDeathTest, AHostThatGivesFewerThreadsIsToldInWords) {
#ifdef DTF_SANITIZER_MALLOC
  GTEST_SKIP() << "a sanitizer reserves address space as it likes";
#endif
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto make = [] {
    const rlimit space{1 << 30, 1 << 30};
    if (::setrlimit(RLIMIT_AS, &space) != 0) std::_Exit(2);
    try {
      const ComputePool pool(1024);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.message().c_str());
      std::_Exit(error.code() == ErrorCode::kUnavailable ? 0 : 3);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(make(), ::testing::ExitedWithCode(0),
              "of 1024 threads to compute on .*set 'threads' of the worker");
}

}  // namespace
}  // namespace dtf::runtime
