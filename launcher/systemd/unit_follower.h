#pragma once

// What a person sees of a job of units: logs, progress, how it ended. systemd runs the job; whoever
// follows it only looks, and passes on the wish to stop.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/net/asio.h"
#include "common/net/credentials.h"
#include "launcher/console.h"
#include "launcher/log_merge.h"
#include "launcher/options.h"
#include "launcher/stop_signals.h"
#include "launcher/systemd/unit_job.h"
#include "launcher/systemd/unit_verdict.h"
#include "launcher/systemd/unit_watch.h"

namespace dtf::launcher {

// Borrows: `job`, `options`, `units` (must outlive this).
// Threads: one.
// Blocks: run() until the job has ended; on systemctl.
// Errors: those of UnitJob and UnitWatch.
class UnitFollower {
 public:
  // `attempt`: of the logs. `owns`: dtf-launch has started the job, and ends it where it is told to
  // end or a task has failed; else it only shows. `credentials`: to ask the tasks with.
  UnitFollower(const cluster::JobSpec& job, const Options& options, UnitJob& units, int attempt,
               bool owns, const net::Credentials& credentials);

  // Until every unit has ended, or the terminal has gone; `until_ready`: or every unit is ready.
  // False: the job has ended.
  bool run(bool until_ready);
  // Whether run() has returned because of SIGHUP: units go on without a terminal.
  bool hungUp() const { return hung_up_; }
  // Once it has ended: completes summary.json with how the units ended, and says on stderr what has
  // failed. Returns the summary, whose exit_code is the job's.
  Json finish();

  // All units were ready at a time.
  bool wasReady() const { return ready_; }

 private:
  bool owns() const { return signals_.has_value(); }
  void openLogs();
  void onSignal(int signal);
  void look();
  void stopUnits();
  void sayFailed(const std::string& what, const std::vector<Error>& errors);
  void judge();
  void showLogs(bool to_the_end);
  void showProgress();
  void say(const std::string& text);

  const cluster::JobSpec& job_;
  const Options& options_;
  UnitJob& units_;
  const int attempt_;
  const net::Credentials credentials_;
  const SystemClock clock_;
  const TimePoint started_ = clock_.now();
  const std::vector<TaskId> tasks_;
  boost::asio::io_context io_{1};
  std::optional<StopSignals> signals_;
  Console console_;
  LogMerge logs_;
  std::vector<std::string>
      prefixes_;  // of the sources of logs_, which are all tasks where it owns the job
  std::vector<std::deque<std::string>> tails_;  // likewise: their last lines
  bool last_shown_ = false;                     // the log line before this one
  UnitWatch watch_;
  std::vector<UnitState> states_;   // the last that systemd has said; empty: none yet
  std::vector<bool> seen_;          // of each: there was a unit
  std::vector<uint32_t> restarts_;  // seen of each: systemd forgets a unit that has ended
  std::optional<RootCause> root_;
  std::optional<TimePoint> failed_since_;  // and perhaps for the sake of another
  TimePoint looked_{}, asked_{}, plain_shown_{};
  std::string line_;  // of progress
  bool ready_ = false;
  bool stopping_ = false;
  bool chief_ended_ = false;  // see hasChiefEnded()
  bool hung_up_ = false;
  struct StopRequest {  // a person's
    int signal = 0;     // 0: none
    TimePoint time{};
  };
  StopRequest request_;
};

}  // namespace dtf::launcher
