#include "common/engine/step_watch.h"

#include <fmt/format.h>

#include <vector>

namespace dtf::engine {
namespace {

Error late(uint64_t step, Duration at_most) {
  return {ErrorCode::kDeadline,
          fmt::format("step {} has not ended within {:g} s", step, toSeconds(at_most))};
}

}  // namespace

StepWatch::StepWatch() : thread_("dtf-step-watch", [this] { work(); }) {}

StepWatch::~StepWatch() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notifyAll();
  thread_.join();
}

StepWatch::Watched StepWatch::watch(uint64_t step, Duration at_most, AbortStep abort) noexcept {
  const TimePoint deadline = SystemClock().now() + at_most;
  MutexLock lock(mutex_);
  const Watched::Id id{deadline, ++last_};
  steps_.emplace(id, Step{step, at_most, std::move(abort)});
  if (deadline < wakes_) changed_.notifyAll();
  return {*this, id};
}

// The thread finds out when it wakes: most steps end long before.
void StepWatch::forget(const Watched::Id& id) {
  MutexLock lock(mutex_);
  steps_.erase(id);
}

void StepWatch::abortAll(const Error& cause) {
  std::vector<AbortStep> aborts;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, step] : steps_) aborts.push_back(step.abort);
  }
  for (const AbortStep& abort : aborts) abort(cause);
}

void StepWatch::work() {
  std::vector<Step> due;
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!ending_ && (steps_.empty() || SystemClock().now() < steps_.begin()->first.first)) {
        wakes_ = steps_.empty() ? TimePoint::max() : steps_.begin()->first.first;
        if (steps_.empty()) {
          changed_.wait(mutex_);
        } else {
          changed_.waitUntil(mutex_, wakes_);
        }
      }
      if (ending_) return;
      while (!steps_.empty() && steps_.begin()->first.first <= SystemClock().now())
        due.push_back(std::move(steps_.extract(steps_.begin()).mapped()));
    }
    for (const Step& step : due) step.abort(late(step.number, step.at_most));
    due.clear();
  }
}

}  // namespace dtf::engine
