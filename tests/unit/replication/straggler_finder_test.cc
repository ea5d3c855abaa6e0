#include "common/replication/straggler_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace dtf::replication {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

PhaseTimes timesOf(double data, double compute, double send) {
  PhaseTimes times;
  const auto of = [](double milliseconds) {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(milliseconds));
  };
  times[Phase::kData] = of(data);
  times[Phase::kCompute] = of(compute);
  times[Phase::kSend] = of(send);
  return times;
}

// The workers of a job, which report a step at a time.
class Job {
 public:
  explicit Job(uint32_t workers) : workers_(workers), finder_(std::vector<uint32_t>(workers, 1)) {}

  // Makes a step with these times; returns whether the named worker changed.
  bool step(const std::function<PhaseTimes(uint32_t rank)>& times) {
    bool has_changed = false;
    for (uint32_t rank = 0; rank < workers_; ++rank)
      has_changed |= finder_.note(rank, step_, times(rank));
    ++step_;
    return has_changed;
  }
  // Returns after how many steps a worker is named; `most` + 1: none is.
  int stepsToName(int most, const std::function<PhaseTimes(uint32_t rank)>& times) {
    for (int i = 1; i <= most; ++i) {
      step(times);
      if (named()) return i;
    }
    return most + 1;
  }
  const std::optional<Straggler>& named() const { return finder_.straggler(); }
  StragglerFinder& finder() { return finder_; }

 private:
  const uint32_t workers_;
  uint64_t step_ = 1;
  StragglerFinder finder_;
};

PhaseTimes usual(uint32_t) {
  return timesOf(1, 10, 2);
}

TEST(StragglerFinder, EqualWorkersAreNotNamed) {
  Job job(3);
  EXPECT_EQ(job.stepsToName(100, usual), 101);
}

TEST(StragglerFinder, AWorkerIsNamedWithThePhaseThatMakesItSlow) {
  struct Case {
    PhaseTimes slow;
    Phase phase;
  };
  for (const Case& each :
       {Case{timesOf(6, 10, 2), Phase::kData}, Case{timesOf(1, 15, 2), Phase::kCompute},
        Case{timesOf(1, 10, 7), Phase::kSend}}) {
    Job job(3);
    for (int i = 0; i < 20; ++i) job.step(usual);
    const int steps =
        job.stepsToName(20, [&](uint32_t rank) { return rank == 1 ? each.slow : usual(rank); });
    EXPECT_LE(steps, 9) << "the tenth brings the ninth's times";
    ASSERT_TRUE(job.named()) << phaseName(each.phase);
    EXPECT_EQ(job.named()->rank, 1u);
    EXPECT_EQ(job.named()->phase, each.phase) << phaseName(job.named()->phase);
  }
}

TEST(StragglerFinder, OneThatIsSlowFromTheStartIsNamedWithinTenSteps) {
  Job job(2);
  const auto times = [](uint32_t rank) { return timesOf(1, rank == 0 ? 14 : 10, 2); };
  EXPECT_LE(job.stepsToName(20, times), 9);
  ASSERT_TRUE(job.named());
  EXPECT_EQ(job.named()->rank, 0u);
}

TEST(StragglerFinder, ItTellsHowMuchLongerAStepIs) {
  Job job(3);
  for (int i = 0; i < 20; ++i)
    job.step([](uint32_t rank) { return timesOf(1, rank == 2 ? 14 : 10, 2); });
  ASSERT_TRUE(job.named());
  EXPECT_NEAR(toSeconds(job.named()->excess), 0.004, 1e-5);
  EXPECT_NEAR(toSeconds(job.finder().own(2)), 0.017, 1e-5);
}

TEST(StragglerFinder, OneThatHasRecoveredIsNamedNoLonger) {
  Job job(2);
  for (int i = 0; i < 100; ++i)
    job.step([](uint32_t rank) { return timesOf(1, rank == 1 ? 20 : 10, 2); });
  ASSERT_TRUE(job.named());
  int steps = 0;
  while (job.named() && steps < 50) {
    job.step(usual);
    ++steps;
  }
  EXPECT_LE(steps, 8);
  EXPECT_EQ(job.stepsToName(100, usual), 101) << "what lies behind doesn't count";
}

TEST(StragglerFinder, TheSlowestOfTwoIsNamed) {
  Job job(4);
  for (int i = 0; i < 20; ++i)
    job.step([](uint32_t rank) { return timesOf(1, rank == 1 ? 15 : rank == 3 ? 30 : 10, 2); });
  ASSERT_TRUE(job.named());
  EXPECT_EQ(job.named()->rank, 3u);
}

TEST(StragglerFinder, AnotherWorkerTakesItsPlaceOnlyIfItIsClearlySlower) {
  Job job(4);
  double of_second = 15.5;
  const auto times = [&](uint32_t rank) {
    return timesOf(1, rank == 1 ? 15 : rank == 2 ? of_second : 10, 2);
  };
  for (int i = 0; i < 20; ++i)
    job.step([](uint32_t rank) { return timesOf(1, rank == 1 ? 15 : 10, 2); });
  for (int i = 0; i < 20; ++i) job.step(times);
  EXPECT_EQ(job.named()->rank, 1u);
  of_second = 25;
  for (int i = 0; i < 10; ++i) job.step(times);
  EXPECT_EQ(job.named()->rank, 2u);
}

TEST(StragglerFinder, LessThanAMillisecondIsTheSchedulers) {
  Job job(2);
  const auto times = [](uint32_t rank) { return timesOf(0, rank == 1 ? 1.9 : 1, 0); };
  EXPECT_EQ(job.stepsToName(100, times), 101) << "though it is nearly twice as slow";
}

TEST(StragglerFinder, StallsNameNobodyAndHideNobody) {
  Job job(2);
  int step = 0;
  const auto stalls = [&](uint32_t rank) {
    return timesOf(1, rank == 1 && step++ % 4 == 0 ? 500 : 10, 2);
  };
  EXPECT_EQ(job.stepsToName(200, stalls), 201) << "two of eight";
  const auto slow = [&](uint32_t rank) {
    return timesOf(1, rank == 1 && step++ % 4 == 0 ? 500 : rank == 0 ? 14 : 10, 2);
  };
  EXPECT_LE(job.stepsToName(20, slow), 9);
  EXPECT_EQ(job.named()->rank, 0u);
}

TEST(StragglerFinder, TheChiefsEvaluationsAreNotItsOwnTime) {
  Job job(2);
  int step = 0;
  const auto times = [&](uint32_t rank) {
    PhaseTimes of = usual(rank);
    if (rank == 0 && step++ % 2 == 0) of[Phase::kEvaluate] = milliseconds(800);
    if (rank == 1) of[Phase::kWait] = milliseconds(800);
    return of;
  };
  EXPECT_EQ(job.stepsToName(200, times), 201);
}

TEST(StragglerFinder, BatchesAreComparedWhereRanksHaveDifferentNumbers) {
  StragglerFinder finder({2, 1});
  for (uint64_t step = 1; step < 50; ++step) {
    finder.note(0, step, timesOf(2, 20, 4));
    finder.note(1, step, timesOf(1, 10, 2));
  }
  EXPECT_FALSE(finder.straggler());
  for (uint64_t step = 50; step < 60; ++step) {
    finder.note(0, step, timesOf(2, 30, 4));
    finder.note(1, step, timesOf(1, 10, 2));
  }
  ASSERT_TRUE(finder.straggler());
  EXPECT_EQ(finder.straggler()->rank, 0u);
  EXPECT_NEAR(toSeconds(finder.straggler()->excess), 0.010, 1e-5) << "of the step";
}

// Both have 12 ms of a step and 7 ms of a batch; the rank with one batch has a longer batch.
TEST(StragglerFinder, AWorkerWithFewerBatchesIsNamedOnlyIfItsStepIsLonger) {
  StragglerFinder finder({2, 1});
  uint64_t step = 1;
  const auto makeSteps = [&](double of_second) {
    for (const uint64_t end = step + 30; step < end; ++step) {
      finder.note(0, step, timesOf(6, 14, 6));
      finder.note(1, step, timesOf(6, of_second, 6));
    }
  };
  makeSteps(7);
  EXPECT_FALSE(finder.straggler()) << "19 ms a step, and 26 of the other";
  makeSteps(40);
  ASSERT_TRUE(finder.straggler());
  EXPECT_EQ(finder.straggler()->rank, 1u);
  makeSteps(7);
  EXPECT_FALSE(finder.straggler()) << "nobody waits for it any more";
}

TEST(StragglerFinder, AStepWithoutAReportIsSkipped) {
  StragglerFinder finder({1, 1});
  for (uint64_t step = 1; step < 100; ++step) {
    finder.note(0, step, timesOf(1, 10, 2));
    if (step % 2 == 0) finder.note(1, step, timesOf(1, 10, 2));  // else its process is another
    finder.note(0, step, timesOf(1, 99, 2));                     // repeated
    if (step % 2 == 1) finder.note(1, step, PhaseTimes());
  }
  EXPECT_FALSE(finder.straggler());
  EXPECT_EQ(finder.TEST_noise(), 0);
}

TEST(StragglerFinder, StepsMayBeRepeatedInAnotherEpoch) {
  StragglerFinder finder({1, 1});
  for (int epoch = 0; epoch < 4; ++epoch)
    for (uint64_t step = 10; step < 13; ++step) {
      finder.note(0, step, timesOf(1, 20, 2));
      finder.note(1, step, timesOf(1, 10, 2));
    }
  ASSERT_TRUE(finder.straggler());
  EXPECT_EQ(finder.straggler()->rank, 0u);
}

TEST(StragglerFinder, AJobOfOneWorkerHasNone) {
  Job job(1);
  EXPECT_EQ(job.stepsToName(50, usual), 51);
}

// ---- drawn jobs

// How own times vary.
struct Noise {
  const char* name;
  double sigma;            // of each phase
  double correlation = 0;  // with the worker's step before
  double stalls = 0;       // the share of steps that take several times as long
  double common = 0;       // of all workers together
};

class DrawnJob {
 public:
  DrawnJob(uint64_t seed, uint32_t workers, const Noise& noise)
      : random_(seed), noise_(noise), drift_(workers), job_(workers) {}

  // `slow`: the factor by which `phase` of `rank` is longer.
  void step(uint32_t rank = 0, Phase phase = Phase::kCompute, double more_ms = 0,
            bool evaluates = false) {
    const double all = std::exp(noise_.common * normal());
    job_.step([&](uint32_t of) {
      double& drift = drift_[of];
      const double rest = std::sqrt(1 - noise_.correlation * noise_.correlation);
      drift = noise_.correlation * drift + rest * noise_.sigma * normal();
      const double stall = uniform() < noise_.stalls ? 2 + 20 * uniform() : 1;
      const double scale = all * std::exp(drift) * stall;
      PhaseTimes times = timesOf(scale * (2 + more(of, Phase::kData, rank, phase, more_ms)),
                                 scale * (20 + more(of, Phase::kCompute, rank, phase, more_ms)),
                                 scale * (5 + more(of, Phase::kSend, rank, phase, more_ms)));
      if (evaluates && of == 0) times[Phase::kEvaluate] = milliseconds(300);
      return times;
    });
  }
  const std::optional<Straggler>& named() const { return job_.named(); }

 private:
  static double more(uint32_t of, Phase here, uint32_t rank, Phase phase, double more_ms) {
    return of == rank && here == phase ? more_ms : 0;
  }
  // The same on every machine, unlike the distributions of <random>.
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform());
  }

  std::mt19937_64 random_;
  const Noise noise_;
  std::vector<double> drift_;
  Job job_;
};

constexpr Noise kNoises[] = {
    {.name = "quiet", .sigma = 0.01},
    {.name = "usual", .sigma = 0.03},
    {.name = "busy", .sigma = 0.1},
    {.name = "wild", .sigma = 0.5},
    {.name = "correlated", .sigma = 0.05, .correlation = 0.5},
    {.name = "drifting", .sigma = 0.1, .correlation = 0.5},
    {.name = "stalls", .sigma = 0.03, .stalls = 0.05},
    {.name = "busy, stalls", .sigma = 0.1, .stalls = 0.01},
    {.name = "common", .sigma = 0.03, .common = 0.3},
};
constexpr uint32_t kWorkers[] = {2, 3, 4, 8};
constexpr uint64_t kSeeds = 1000;

TEST(StragglerFinder, WithoutAStragglerNoneIsNamedInAMillionSteps) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Noise& noise = kNoises[seed % std::size(kNoises)];
    const uint32_t workers = kWorkers[seed / std::size(kNoises) % std::size(kWorkers)];
    DrawnJob job(seed, workers, noise);
    for (int step = 0; step < 1000; ++step) {
      job.step(0, Phase::kCompute, 0, step % 50 == 49);
      ASSERT_FALSE(job.named()) << "seed " << seed << ", " << noise.name << " noise, " << workers
                                << " workers, step " << step << ": worker/" << job.named()->rank;
    }
  }
}

// 30 % of own time, in one phase.
TEST(StragglerFinder, EachPlantedStragglerIsNamedWithinTenSteps) {
  constexpr Noise kCalm[] = {kNoises[0],
                             {.name = "calm", .sigma = 0.02},
                             {.name = "less calm", .sigma = 0.025},
                             {.name = "few stalls", .sigma = 0.02, .stalls = 0.02}};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Noise& noise = kCalm[seed % std::size(kCalm)];
    const uint32_t workers = kWorkers[seed / 4 % std::size(kWorkers)];
    const uint32_t rank = static_cast<uint32_t>(seed % workers);
    const Phase phase = kOwnPhases[seed % kOwnPhases.size()];
    DrawnJob job(seed, workers, noise);
    const uint64_t before = 20 + seed % 100;
    for (uint64_t step = 0; step < before; ++step) job.step();
    int steps = 0;
    while (!job.named() && steps < 20) {
      job.step(rank, phase, 0.3 * 27);
      ++steps;
    }
    ASSERT_TRUE(job.named()) << "seed " << seed << ", " << noise.name;
    EXPECT_LE(steps, 9) << "seed " << seed << ", " << noise.name << ", " << workers << " workers";
    EXPECT_EQ(job.named()->rank, rank) << "seed " << seed;
    EXPECT_EQ(job.named()->phase, phase) << "seed " << seed;
  }
}

TEST(StragglerFinder, InNoiseAStragglerIsNamedLater) {
  constexpr Noise kSome{.name = "some", .sigma = 0.06};
  for (uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    DrawnJob job(seed, 3, kSome);
    for (uint64_t step = 0; step < 50; ++step) job.step();
    int steps = 0;
    while (!job.named() && steps < 100) {
      job.step(2, Phase::kSend, 0.3 * 27);
      ++steps;
    }
    EXPECT_LE(steps, 72) << "seed " << seed << ": nine blocks of eight";
    ASSERT_TRUE(job.named());
    EXPECT_EQ(job.named()->rank, 2u);
  }
}

}  // namespace
}  // namespace dtf::replication
