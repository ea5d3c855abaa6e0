#pragma once

// When the next progress report is due, and the rates that it shows.

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/ps/parameter_client.h"

namespace dtf::train {

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
  // Rates when a report is due or `wanted` (after the last step), and then starts the next
  // interval.
  std::optional<Rates> due(uint64_t global_step, bool wanted, TimePoint now);
  // Time that was spent on something else doesn't count.
  void skip(Duration time) { since_ += time; }

 private:
  uint64_t every_steps_;
  double examples_;
  uint64_t step_ = 0;
  TimePoint since_{};
};

}  // namespace dtf::train
