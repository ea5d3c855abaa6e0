#pragma once

// Time as an interface, so that leases and deadlines can be tested on a manual clock. Only
// monotonic time: the time of day labels log lines, and decides one thing, for want of another way
// to know it: which of two processes of a task started later, where nobody counts (ids.h).

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

// Moves only when told to. Thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_ns_.load())); }
  void advance(Duration by) { now_ns_ += by.count(); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

// For messages and rates.
double toSeconds(Duration d);

// Of a number of seconds in a file. A number beyond kDurationMax becomes kDurationMax, so that
// adding it to a time can't overflow; one below 0, or no number at all, becomes 0.
inline constexpr Duration kDurationMax = std::chrono::hours(24 * 365 * 100);
Duration fromSeconds(double seconds);

}  // namespace dtf
