#pragma once

// Whether and when a task that has failed is started again: pure, from how it ended, the clock and
// a seed.
//
// A restart mends what chance broke (a kill, no memory, a lost host), not what would break again: a
// task that never was ready, bad usage or configuration, data or rights that are missing, training
// that diverges; nor a task that somebody told to end, or that waited in vain: who kept it waiting
// is the one to mend. Pauses are drawn at random up to a bound ("full jitter"), so that tasks that
// died together don't come back together. The bound grows with each failure in a row of a task that
// fails by itself; one that is killed from outside comes back as soon as after its first failure.
// Restarts come out of a budget that refills with time, so a task that fails now and then lives for
// ever, and one that fails all the time is given up.

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

struct RestartLimits {
  uint32_t max = 10;                           // restarts of one task in `refill`; 0: none
  Duration refill = std::chrono::minutes(10);  // until the whole budget is there again
  Duration pause_min = std::chrono::milliseconds(100);
  Duration pause_max = std::chrono::seconds(30);
};

// Whether starting the task again could help. 128+n is a task that a signal ended.
bool isWorthRestarting(const ExitStatus& status);

// Of one task.
// Threads: thread-compatible.
class RestartPolicy {
 public:
  // `seed` draws the pauses; another one for each task.
  RestartPolicy(const RestartLimits& limits, uint64_t seed) : limits_(limits), random_(seed) {}

  // The task has failed. How long to wait before it is started again; nullopt: it is not, for how
  // it ended, or because the budget is spent. `ran`: from its being ready to its end; nullopt: it
  // never was ready.
  std::optional<Duration> onFailure(const ExitStatus& status, std::optional<Duration> ran,
                                    TimePoint now);

  uint32_t restarts() const { return restarts_; }  // granted so far
  uint32_t spent() const;  // of the budget, with the last one granted; what is refilled is not

 private:
  void refill(TimePoint now);
  Duration drawPause(uint32_t in_a_row);

  const RestartLimits limits_;
  Random random_;
  uint32_t restarts_ = 0;
  uint32_t in_a_row_ = 0;  // failures by itself since it last ran for pause_max
  double spent_ = 0;       // of the budget
  TimePoint spent_at_{};   // when spent_ was reckoned
};

}  // namespace dtf::launcher
