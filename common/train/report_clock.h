#pragma once

// Schedules progress reports and computes their rates.

#include <cstdint>
#include <optional>

#include "common/base/clock.h"

namespace dtf::train {

// Decides when a report is due, and computes the rates since the last one. Value type.
class ReportClock {
 public:
  // `every_steps`: 0 for about two reports a second. `examples_per_step`: per global step.
  ReportClock(uint64_t every_steps, double examples_per_step)
      : every_steps_(every_steps), examples_(examples_per_step) {}

  void start(uint64_t global_step, TimePoint now);

  struct Rates {
    double steps_per_second = 0;
    double examples_per_second = 0;
  };
  // If a report is due or `wanted`, returns the rates and starts the next interval.
  std::optional<Rates> due(uint64_t global_step, bool wanted, TimePoint now);
  // Leaves the steps before this one, and their time, out of the rates of the interval. A first
  // step is slower than the others.
  void measureFrom(uint64_t global_step, TimePoint now) {
    measured_from_ = global_step;
    since_ = now;
  }
  // Excludes time spent on something else.
  void skip(Duration time) { since_ += time; }

 private:
  uint64_t every_steps_;
  double examples_;
  uint64_t step_ = 0;           // of the last report
  uint64_t measured_from_ = 0;  // the step at since_
  TimePoint since_{};
};

}  // namespace dtf::train
