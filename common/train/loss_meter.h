#pragma once

// What a worker knows of its losses: the sum of those that went into a step, and when the next
// report is due.

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/ps/parameter_client.h"

namespace dtf::train {

// The losses of the batches that one worker contributed to one step.
struct StepLoss {
  uint64_t step = 0;
  double sum = 0;
  uint32_t count = 0;
  double mean() const { return count > 0 ? sum / count : 0; }
};

// Value type. Gathers the batches of the current step until the step is decided.
class LossMeter {
 public:
  // The loss of a batch of `step`, and what became of its gradient.
  void add(uint64_t step, double loss, ps::Outcome outcome);
  const StepLoss& last() const {
    return last_;
  }  // of the last step that was applied with this worker's batches

 private:
  StepLoss open_;
  StepLoss last_;
};

// Decides when progress is reported and computes the rates since the last time. Value type.
class ReportClock {
 public:
  // `every_steps` 0: about twice a second. `examples_per_step`: that one global step stands for.
  ReportClock(uint64_t every_steps, double examples_per_step)
      : every_steps_(every_steps), examples_(examples_per_step) {}

  void start(uint64_t global_step, TimePoint now);

  struct Rates {
    double steps_per_second = 0;
    double examples_per_second = 0;
  };
  // Rates when a report is due, and then starts the next interval. The last step is always due.
  std::optional<Rates> due(uint64_t global_step, bool done, TimePoint now);
  // Time that was spent on something else doesn't count.
  void skip(Duration time) { since_ += time; }

 private:
  uint64_t every_steps_;
  double examples_;
  uint64_t step_ = 0;
  TimePoint since_{};
};

}  // namespace dtf::train
