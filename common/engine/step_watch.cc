#include "common/engine/step_watch.h"

#include <fmt/format.h>

#include <algorithm>

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

StepWatch::Watched::Watched(StepWatch& watch, uint64_t step, Duration at_most, void* abort,
                            Call call)
    : watch_(watch),
      step_(step),
      at_most_(at_most),
      deadline_(SystemClock().now() + at_most),
      abort_(abort),
      call_(call) {
  MutexLock lock(watch.mutex_);
  after_ = watch.first_;
  if (after_ != nullptr) after_->before_ = this;
  watch.first_ = this;
  if (deadline_ < watch.wakes_) watch.changed_.notifyAll();
}

// The thread notices when it wakes: most steps end long before.
StepWatch::Watched::~Watched() {
  MutexLock lock(watch_.mutex_);
  if (after_ != nullptr) after_->before_ = before_;
  if (before_ != nullptr) {
    before_->after_ = after_;
  } else {
    watch_.first_ = after_;
  }
}

// Under the lock, so that none of them ends meanwhile.
void StepWatch::abortAll(const Error& cause) {
  MutexLock lock(mutex_);
  for (Watched* step = first_; step != nullptr; step = step->after_)
    step->call_(step->abort_, cause);
}

TimePoint StepWatch::nextDeadline() const {
  TimePoint next = TimePoint::max();
  for (const Watched* step = first_; step != nullptr; step = step->after_)
    if (!step->is_late_) next = std::min(next, step->deadline_);
  return next;
}

void StepWatch::abortLate() {
  const TimePoint now = SystemClock().now();
  for (Watched* step = first_; step != nullptr; step = step->after_) {
    if (step->is_late_ || step->deadline_ > now) continue;
    step->is_late_ = true;
    step->call_(step->abort_, late(step->step_, step->at_most_));
  }
}

void StepWatch::work() {
  MutexLock lock(mutex_);
  while (!ending_) {
    abortLate();
    wakes_ = nextDeadline();
    if (wakes_ == TimePoint::max()) {
      changed_.wait(mutex_);
    } else {
      changed_.waitUntil(mutex_, wakes_);
    }
  }
}

}  // namespace dtf::engine
