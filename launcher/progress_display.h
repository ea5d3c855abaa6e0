#pragma once

// Shows how far the job is: on a terminal one line, redrawn in place; elsewhere a plain line now
// and then.

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "launcher/console.h"
#include "launcher/progress.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// Borrows: console, monitor, clock (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
class ProgressDisplay {
 public:
  // `start_limit`: how long the tasks may take to become ready. `report_every_steps`: after so many
  // the chief says how far it is; 0: about twice a second. `shown` false: it only measures.
  ProgressDisplay(Console& console, const TaskMonitor& monitor, const Clock& clock,
                  Duration start_limit, uint64_t report_every_steps, bool shown)
      : console_(console),
        monitor_(monitor),
        clock_(clock),
        start_limit_(start_limit),
        report_every_steps_(report_every_steps),
        shown_(shown),
        start_time_(clock.now()) {}

  void onProgress(const ProgressNotice& notice);
  // The chief waits in a step: said until the job moves again.
  void onWaiting(const std::string& whom);
  void onAccuracy(double accuracy) { meter_.setAccuracy(accuracy); }

  // To be called often. Redraws the line; names the tasks that are awaited every five seconds, and
  // whom a job that stands still waits for.
  void refresh();

  // The last progress as a plain line, where it has not been shown yet. A job that has ended has no
  // time left, and no tasks.
  void finish();

  const ProgressMeter& meter() const { return meter_; }
  std::string text(size_t columns = kColumnsUnlimited) const;

 private:
  std::string standstill() const;
  void nameAwaited();
  void nameStandstill();

  Console& console_;
  const TaskMonitor& monitor_;
  const Clock& clock_;
  const Duration start_limit_;
  const uint64_t report_every_steps_;
  const bool shown_;
  const TimePoint start_time_;
  std::optional<TimePoint> awaited_since_;  // none: all tasks are ready
  TimePoint waiting_shown_;
  ProgressMeter meter_;
  TimePoint moved_;      // when the step was last another
  std::string awaited_;  // since then
  std::optional<TimePoint> plain_shown_;
  std::optional<TimePoint> standstill_shown_;  // none: the job moves
  bool unshown_ = false;
};

}  // namespace dtf::launcher
