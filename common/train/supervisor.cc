#include "common/train/supervisor.h"

#include <algorithm>

#include "common/base/log.h"

namespace dtf::train {

namespace {

constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::minutes(5);

}  // namespace

Supervisor::Supervisor(Checkpointer& checkpointer, const cluster::CheckpointSpec& spec,
                       ps::CutKind cut_kind, const Clock& clock, Report report, SaveRunner* runner)
    : checkpointer_(checkpointer),
      spec_(spec),
      cut_kind_(cut_kind),
      clock_(clock),
      report_(std::move(report)),
      runner_(runner),
      next_time_(clock.now() + fromSeconds(spec.every_seconds)) {
  status_.last_step = checkpointer.lastStep();
  if (runner_ == nullptr) thread_ = Thread("dtf-checkpoint", [this] { run(); });
}

// A job that succeeds has saved at rest before. So whatever waits here for its place in training
// waits for steps that a failed job won't do.
Supervisor::~Supervisor() {
  checkpointer_.callOffCuts();
  if (runner_ != nullptr) {
    runner_->wait();
    return;
  }
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notifyAll();
  }
  thread_.join();
}

// A cut at a step is announced before any worker can push the gradients of that step; a cut that
// is held takes what is there.
uint64_t Supervisor::announcedAhead() const {
  return cut_kind_ == ps::CutKind::kAtStep ? 1 : 0;
}

// `next_step`: the first one that a checkpoint can still be of.
bool Supervisor::isDue(uint64_t next_step) {
  if (const uint64_t every = spec_.every_steps; every > 0) {
    if (next_step_ == 0) next_step_ = (next_step + every - announcedAhead()) / every * every;
    if (next_step >= next_step_) {
      next_step_ = (next_step / every + 1) * every;
      return true;
    }
  }
  if (spec_.every_seconds <= 0 || clock_.now() < next_time_) return false;
  next_time_ = clock_.now() + fromSeconds(spec_.every_seconds);
  return true;
}

// A synchronous job that is due at step N is told so before anyone can push the gradients of step
// N: this worker has not pushed those of N - 1 yet.
void Supervisor::onStep(const ps::StepState& state) {
  if (state.done || state.outcome == ps::Outcome::kQueued) return;
  const uint64_t next_step = state.global_step + announcedAhead();
  const bool due = isDue(next_step);
  MutexLock lock(mutex_);
  const bool retry = !status_.degraded.empty() && clock_.now() >= retry_at_;
  overdue_ = overdue_ || due;
  if ((!overdue_ && !retry) || saving_) return;
  overdue_ = false;
  if (cut_kind_ == ps::CutKind::kAtStep) {
    try {
      checkpointer_.startCut(next_step);
    } catch (const Error& error) {
      return failed(error);
    }
  }
  saving_ = true;
  if (runner_ != nullptr) return runner_->start([this] { saveOnce(); });
  changed_.notifyAll();
}

void Supervisor::run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!saving_ && !ending_) changed_.wait(mutex_);
      if (!saving_) return;
    }
    saveOnce();
  }
}

void Supervisor::saveOnce() {
  std::optional<SavedCheckpoint> saved;
  std::optional<Error> error;
  try {
    saved = checkpointer_.save(Motion::kTraining);
    if (saved && report_) report_(*saved);
  } catch (const Error& what) {
    error = what;
  }
  MutexLock lock(mutex_);
  if (error) {
    failed(*error);
  } else {
    succeeded(saved.has_value());
    retry_pause_ = Duration{0};
  }
  saving_ = false;
  changed_.notifyAll();
}

void Supervisor::succeeded(bool saved) {
  status_.saved += saved;
  status_.last_step = checkpointer_.lastStep();
  status_.degraded.clear();
}

void Supervisor::failed(const Error& error) {
  count(error);
  retry_pause_ = std::clamp(2 * retry_pause_, kRetryFirst, kRetryLongest);
  retry_at_ = clock_.now() + retry_pause_;
  log::warning("event=checkpoint_failed degraded=checkpoint retry_s={:.0f} reason=\"{}\"",
               toSeconds(retry_pause_), error.message());
}

void Supervisor::count(const Error& error) {
  ++status_.failed;
  status_.degraded = error.message();
}

void Supervisor::saveAtRest() {
  if (runner_ != nullptr) runner_->wait();
  MutexLock lock(mutex_);
  while (saving_) changed_.wait(mutex_);  // bounded: a save has deadlines of its own
  std::optional<SavedCheckpoint> saved;
  try {
    saved = checkpointer_.save(Motion::kAtRest);
  } catch (const Error& error) {
    count(error);
    throw;
  }
  succeeded(saved.has_value());
  if (saved && report_) report_(*saved);
}

CheckpointStatus Supervisor::status() {
  MutexLock lock(mutex_);
  return status_;
}

}  // namespace dtf::train
