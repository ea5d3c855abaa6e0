#pragma once

// How far the job is, in one line.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "launcher/end_of_job.h"
#include "launcher/notice.h"

namespace dtf::launcher {

inline constexpr size_t kColumnsUnlimited = SIZE_MAX;

// Tasks that are up (ready and not ended) of a job, and how many there are.
struct TasksUp {
  size_t up = 0;
  size_t total = 0;
};

TasksUp tasksUp(std::span<const TaskFacts> tasks, JobKind job);

struct ProgressView {
  ProgressNotice notice;
  TasksUp ps;  // with those of the workers; of none: left out
  TasksUp worker;
  std::optional<double> seconds_left;
  std::string waiting;  // "no step for 4 s: suspended: worker/1"; empty: the job moves
};

// "step 4210/10000 42% | loss 0.213 | 812 examples/s | ps 2/2 worker 4/4 | 1:52 left" in at most
// `columns` characters: what is unknown is left out, and where there is no room, first how many
// tasks are up (when all are), then the examples, the loss, the accuracy; the step and the time
// left stay.
std::string progressLine(const ProgressView& view, size_t columns = kColumnsUnlimited);

// Before the first progress: "starting | ps 1/2 worker 0/4 | 3 s".
std::string waitingLine(std::string_view what, const TasksUp& ps, const TasksUp& worker,
                        double seconds);

std::string durationText(double seconds);  // "0:07", "1:52", "3:04:05"
std::string countText(
    double value);  // three significant digits below 1000: "0.213", "81.2", "812", "81234"

// The global steps a second between the first and the last progress heard of, hence the time left.
// Threads: thread-compatible.
class ProgressMeter {
 public:
  void add(const ProgressNotice& notice, TimePoint now);
  // The last progress shows it from now on; nothing before the first progress.
  void setAccuracy(double accuracy);
  const std::optional<ProgressNotice>& last() const { return last_; }
  std::optional<double> stepsPerSecond() const;
  std::optional<double> secondsLeft() const;

 private:
  std::optional<ProgressNotice> last_;
  uint64_t first_step_ = 0;
  TimePoint first_time_;
  TimePoint last_time_;
};

}  // namespace dtf::launcher
