#pragma once

// Detects that training has diverged: the loss is not finite, or a million times the first one.
// Such a job has no useful result, whatever step it has reached.

#include <optional>

namespace dtf::train {

// Watches the losses of one worker, in order.
class DivergenceWatch {
 public:
  static constexpr double kFactorMax = 1e6;
  // Smallest start for the limit, as a loss may begin at 0.
  static constexpr double kStartMin = 1e-3;

  // Returns whether `loss` is not finite, or beyond limit(). The first finite loss is the start.
  bool diverged(double loss);

  // Returns nullopt before the first finite loss.
  std::optional<double> start() const { return start_; }
  double limit() const;  // infinity before there is a start

 private:
  std::optional<double> start_;
};

}  // namespace dtf::train
