#pragma once

// When training has diverged: a job whose loss is no number, or a million times what it began with,
// has no result worth the name, whatever step it got to.

#include <optional>

namespace dtf::train {

// Losses of one worker, in order.
// Threads: thread-compatible.
// Blocks: never.
class DivergenceWatch {
 public:
  static constexpr double kFactorMax = 1e6;
  // A start below this counts as this: a loss that begins at 0 may become something.
  static constexpr double kStartMin = 1e-3;

  // The first finite loss is the start. True: this one is not finite, or beyond limit().
  bool diverged(double loss);

  // Nullopt: there was no finite loss yet.
  std::optional<double> start() const { return start_; }
  double limit() const;  // infinity before there is a start

 private:
  std::optional<double> start_;
};

}  // namespace dtf::train
