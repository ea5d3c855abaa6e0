#include "launcher/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

std::string tasksText(const TasksUp& ps, const TasksUp& worker) {
  DTF_CHECK(ps.up <= ps.total && worker.up <= worker.total);
  std::vector<std::string> parts;
  if (ps.total > 0) parts.push_back(fmt::format("ps {}/{}", ps.up, ps.total));
  if (worker.total > 0) parts.push_back(fmt::format("worker {}/{}", worker.up, worker.total));
  return join(parts, " ");
}

std::string stepText(const ProgressNotice& notice) {
  if (notice.steps == 0) return fmt::format("step {}", notice.step);
  // Rounded down: 100 % is the last step, not the one before it.
  const uint64_t percent =
      std::min<uint64_t>(100, static_cast<uint64_t>(100.0 * static_cast<double>(notice.step) /
                                                    static_cast<double>(notice.steps)));
  return fmt::format("step {}/{} {}%", notice.step, notice.steps, percent);
}

// A part of the progress line. Those of the lowest rank go first when there is no room.
struct Part {
  std::string text;
  int rank = 0;
};
constexpr int kAlways = 4;

std::string joined(const std::vector<Part>& parts) {
  std::vector<std::string> texts;
  for (const Part& part : parts) texts.push_back(part.text);
  return join(texts, " | ");
}

}  // namespace

std::string durationText(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string countText(double value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string progressLine(const ProgressView& view, size_t columns) {
  const ProgressNotice& notice = view.notice;
  const bool all_up = view.ps.up == view.ps.total && view.worker.up == view.worker.total;
  std::vector<Part> parts = {{stepText(notice), kAlways}};
  if (!view.waiting.empty()) parts.push_back({view.waiting, kAlways});
  if (notice.straggler)
    parts.push_back({fmt::format("waits for {} ({})", printable(notice.straggler->worker),
                                 printable(notice.straggler->phase)),
                     3});
  if (notice.loss) parts.push_back({"loss " + countText(*notice.loss), 2});
  if (notice.eval_accuracy)
    parts.push_back({fmt::format("accuracy {:.4f}", *notice.eval_accuracy), 3});
  if (notice.examples_per_second)
    parts.push_back({countText(*notice.examples_per_second) + " examples/s", 1});
  if (view.ps.total + view.worker.total > 0)
    parts.push_back({tasksText(view.ps, view.worker), all_up ? 0 : 2});
  if (view.seconds_left) parts.push_back({durationText(*view.seconds_left) + " left", kAlways});
  std::string line = joined(parts);
  for (int rank = 0; line.size() > columns && rank < kAlways; ++rank) {
    std::erase_if(parts, [rank](const Part& part) { return part.rank == rank; });
    line = joined(parts);
  }
  return line.substr(0, columns);
}

std::string waitingLine(std::string_view what, const TasksUp& ps, const TasksUp& worker,
                        double seconds) {
  return fmt::format("{} | {} | {:.0f} s", what, tasksText(ps, worker), seconds);
}

void ProgressMeter::add(const ProgressNotice& notice, TimePoint now) {
  DTF_CHECK(!last_ || now >= last_time_);
  if (!last_) {
    first_step_ = notice.step;
    first_time_ = now;
  }
  last_ = notice;
  last_time_ = now;
}

void ProgressMeter::setAccuracy(double accuracy) {
  if (last_) last_->eval_accuracy = accuracy;
}

std::optional<double> ProgressMeter::stepsPerSecond() const {
  if (!last_ || last_->step <= first_step_ || last_time_ <= first_time_) return std::nullopt;
  return static_cast<double>(last_->step - first_step_) / toSeconds(last_time_ - first_time_);
}

std::optional<double> ProgressMeter::secondsLeft() const {
  const std::optional<double> rate = stepsPerSecond();
  if (!rate || last_->steps < last_->step) return std::nullopt;
  DTF_CHECK(*rate > 0);
  return static_cast<double>(last_->steps - last_->step) / *rate;
}

TasksUp tasksUp(std::span<const TaskFacts> tasks, JobKind job) {
  TasksUp result;
  for (const TaskFacts& task : tasks) {
    if (task.id.job != job) continue;
    ++result.total;
    if (task.state == TaskState::kReady) ++result.up;
  }
  return result;
}

}  // namespace dtf::launcher
