#include "launcher/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "common/base/text.h"

namespace dtf::launcher {

namespace {

std::string tasksText(const TasksUp& ps, const TasksUp& worker) {
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

std::string progressLine(const ProgressView& view) {
  std::vector<std::string> parts = {stepText(view.notice)};
  if (view.notice.loss) parts.push_back("loss " + countText(*view.notice.loss));
  if (view.notice.eval_accuracy)
    parts.push_back(fmt::format("accuracy {:.4f}", *view.notice.eval_accuracy));
  if (view.notice.examples_per_second)
    parts.push_back(countText(*view.notice.examples_per_second) + " examples/s");
  parts.push_back(tasksText(view.ps, view.worker));
  if (view.seconds_left) parts.push_back(durationText(*view.seconds_left) + " left");
  return join(parts, " | ");
}

std::string startingLine(const TasksUp& ps, const TasksUp& worker, double seconds) {
  return fmt::format("starting | {} | {:.0f} s", tasksText(ps, worker), seconds);
}

void ProgressMeter::add(const ProgressNotice& notice, TimePoint now) {
  if (!last_) {
    first_step_ = notice.step;
    first_time_ = now;
  }
  last_ = notice;
  last_time_ = now;
}

std::optional<double> ProgressMeter::stepsPerSecond() const {
  if (!last_ || last_->step <= first_step_ || last_time_ <= first_time_) return std::nullopt;
  return static_cast<double>(last_->step - first_step_) / toSeconds(last_time_ - first_time_);
}

std::optional<double> ProgressMeter::secondsLeft() const {
  const std::optional<double> rate = stepsPerSecond();
  if (!rate || last_->steps < last_->step) return std::nullopt;
  return static_cast<double>(last_->steps - last_->step) / *rate;
}

}  // namespace dtf::launcher
