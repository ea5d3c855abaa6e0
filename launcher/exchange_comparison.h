#pragma once

// Compares the time of exchanges with its prediction, once, after some steps.

#include <cstdint>
#include <optional>

namespace dtf::launcher {

// Threads: thread-compatible.  Blocks: never.
class ExchangeComparison {
 public:
  static constexpr uint64_t kBatches = 20;

  // `predicted`: in seconds; 0: there is no prediction.
  explicit ExchangeComparison(double predicted) : predicted_(predicted) {}

  // `batches`, `seconds`: of the chief since its process began. Returns the measured seconds of an
  // exchange when enough batches have passed since the first call, once. The batches before that
  // wait for workers that start later.
  std::optional<double> add(uint64_t batches, double seconds) {
    if (predicted_ == 0 || is_done_ || batches == 0) return std::nullopt;
    if (batches < first_batches_ || first_batches_ == 0) {  // or another process of the chief
      first_batches_ = batches;
      first_seconds_ = seconds;
    }
    if (batches < first_batches_ + kBatches) return std::nullopt;
    is_done_ = true;
    return (seconds - first_seconds_) / static_cast<double>(batches - first_batches_);
  }

  double predicted() const { return predicted_; }

 private:
  const double predicted_;
  uint64_t first_batches_ = 0;
  double first_seconds_ = 0;
  bool is_done_ = false;
};

}  // namespace dtf::launcher
