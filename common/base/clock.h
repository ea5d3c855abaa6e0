#pragma once

// Time as an interface, so that leases and deadlines can be tested on a manual clock. Time is
// monotonic. The time of day labels log lines, and orders two processes of one task where nothing
// counts their starts (ids.h).

#include <atomic>
#include <chrono>
#include <cstdint>

namespace dtf {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// CLOCK_MONOTONIC. Thread-safe.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
};

// Moves only in advance(). Thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_ns_.load())); }
  void advance(Duration by) { now_ns_ += by.count(); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

// For messages and rates.
double toSeconds(Duration d);

// Converts seconds read from a file. A number beyond kDurationMax becomes kDurationMax, so that
// adding it to a time can't overflow; a negative number and NaN become 0.
inline constexpr Duration kDurationMax = std::chrono::hours(24 * 365 * 100);
Duration fromSeconds(double seconds);

}  // namespace dtf
