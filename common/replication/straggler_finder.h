#pragma once

// Names the worker that makes the steps of a sync job long.
//
// Every worker of a sync job waits for the last one of a step. So the length of a step is the
// largest own time (PhaseTimes::own()) and the update; the worker with that time waits least. The
// rule compares own times only: they don't depend on each other, while waits do.
//
// The lag of a worker in a step is log(its own time / the lower median of the others' own times).
// So a second slow worker hides none, and twice as fast weighs as much as twice as slow. A worker
// is slow if its lag is large in six of its last eight steps, or for most of its last 64 steps: in
// six of eight blocks of eight steps. Large is
//
//   - at least log(1.2): the job would gain little without that worker; and
//   - at least 5 times the noise, over 64 steps 2.5 times; and
//   - a millisecond a step: less is the turn of another process on a busy host.
//
// Where ranks have different numbers of batches, own times are those of a batch, which include a
// part of the costs of a step. So a slow worker is named only if its own time of the whole step
// exceeds the lower median of the others', too: otherwise the step doesn't wait for it.
//
// The noise is the mean deviation of a worker's own times from their median, times 1.25 (so the
// standard deviation of normal noise), over all workers and about the last 32 steps. A deviation
// counts at most three times the noise so far, or a tenth: stalls, and the first steps of a
// straggler, add little. If the noise of two equal workers is normal, a lag is 5 times the noise in
// one of 5000 steps, in six of eight in one of 10^20; the margin is for noise that is correlated
// over a few steps, which makes six steps worth two or three. Two stalls in eight steps name
// nobody, and hide no straggler. A worker that is slower by 30 % is named within ten steps while
// the noise is below 2.5 %, within 72 while it is below 6 %. straggler_finder_test.cc draws such
// jobs.
//
// A named worker stays named until its lag is below half of the limit in six of eight, or its step
// is no longer than the others', or until another slow worker lags by a tenth more.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/replication/phase_times.h"

namespace dtf::replication {

// Owns: the times of the last steps of every worker.
// Threads: thread-compatible.
// Blocks: never. Allocates only in its constructor.
// Errors: none.
class StragglerFinder {
 public:
  // `batches`: by rank, the batches that a worker computes in a step. Own times are compared by
  // batch.
  explicit StragglerFinder(const std::vector<uint32_t>& batches);

  // Notes the times of a worker's last step, reported with its push of `step`. A second report of
  // the current step has no effect, and times without own time are no report. The rule looks at a
  // step when all workers have reported. A report of any other step, an earlier one too, begins
  // that step: after a job went back its steps are repeated. A step with a missing report is
  // skipped. Returns whether straggler() is another worker, or none, from now on.
  bool note(uint32_t rank, uint64_t step, const PhaseTimes& times);

  // Returns the named worker; nullopt: none.
  const std::optional<Straggler>& straggler() const { return straggler_; }
  // Returns the median of the worker's own times in its last steps.
  Duration own(uint32_t rank) const;

  // Returns the noise by which lags are judged.
  double TEST_noise() const { return noise_; }

 private:
  static constexpr size_t kSteps = 8;
  using Window = std::array<float, kSteps>;

  // The lags of eight steps, or of eight blocks of steps.
  struct Lags {
    Window each{};
    float low = 0;   // six of them are this or more
    float high = 0;  // six of them are this or less
    void put(size_t slot, float lag);
  };
  struct Worker {
    float batches = 1;
    uint64_t reported = 0;                           // the round of the last report
    PhaseTimes times;                                // of that report
    std::array<Window, kOwnPhases.size()> phases{};  // microseconds
    Window own{};                                    // likewise
    Lags steps, blocks;
  };
  enum class Scale : uint8_t { kSteps, kBlocks };

  void observe();
  void noteDeviation(const Worker& worker, float own);
  void judge();
  float limit(Scale scale) const;
  std::optional<Scale> isSlow(uint32_t rank) const;
  bool isSlowStill(uint32_t rank, Scale scale) const;
  bool isAwaited(uint32_t rank) const;
  Straggler describe(uint32_t rank) const;
  template <class Of>
  float ofOthers(uint32_t rank, const Of& of) const;

  std::vector<Worker> workers_;
  mutable std::vector<float> sorted_;  // of all workers; memory of calls
  uint64_t round_ = 0;                 // counts the steps with a report
  uint64_t step_ = 0;                  // of the round
  size_t reports_ = 0;                 // in the round
  uint64_t steps_ = 0;                 // observed
  double noise_ = 0;
  uint64_t deviations_ = 0;  // in noise_
  std::optional<Straggler> straggler_;
  Scale scale_ = Scale::kSteps;  // at which the straggler was slow
};

}  // namespace dtf::replication
