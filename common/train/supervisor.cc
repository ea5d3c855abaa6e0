#include "common/train/supervisor.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"

namespace dtf::train {

namespace {

constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::minutes(1);

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
  DTF_CHECK(spec.every_seconds >= 0);
  status_.last_step = checkpointer.lastStep();
  if (runner_ == nullptr) thread_ = Thread("dtf-checkpoint", [this] { run(); });
}

// A job that succeeds has saved at rest before. So whatever waits here for its cut
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

// True when a save is to start, which is then this thread's to start. A failed one is tried again
// when it was said that it would be, not before: what is due meanwhile waits for that.
bool Supervisor::claimSave(bool due) {
  MutexLock lock(mutex_);
  overdue_ = overdue_ || due;
  const bool failed = !status_.degraded.empty();
  const bool wanted = failed ? clock_.now() >= retry_at_ : overdue_;
  if (!wanted || saving_) return false;
  overdue_ = false;
  return saving_ = true;
}

// A synchronous job that is due at step N is told so before anyone can push the gradients of step
// N: this worker has not pushed those of N - 1 yet.
void Supervisor::onStep(const ps::StepState& state) {
  if (state.done || state.outcome == ps::Outcome::kQueued) return;
  const uint64_t next_step = state.global_step + announcedAhead();
  if (!claimSave(isDue(next_step))) return;
  if (cut_kind_ == ps::CutKind::kAtStep) {
    try {
      checkpointer_.startCut(next_step);
    } catch (const Error& error) {
      return failed(error);
    }
  }
  if (runner_ != nullptr) return runner_->start([this] { saveOnce(); });
  MutexLock lock(mutex_);
  started_ = true;
  changed_.notifyAll();
}

void Supervisor::run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!started_ && !ending_) changed_.wait(mutex_);
      if (!started_) return;
      started_ = false;
    }
    saveOnce();
  }
}

void Supervisor::saveOnce() {
  try {
    const std::optional<SavedCheckpoint> saved = checkpointer_.save(Motion::kTraining);
    if (saved && report_) report_(*saved);
    succeeded(saved.has_value());
  } catch (const Error& error) {
    failed(error);
  }
}

// Ends the save that is under way.
void Supervisor::succeeded(bool saved) {
  MutexLock lock(mutex_);
  DTF_CHECK(saving_);
  status_.saved += saved;
  status_.last_step = checkpointer_.lastStep();
  status_.degraded.clear();
  retry_pause_ = Duration{0};
  saving_ = false;
  changed_.notifyAll();
}

// Likewise.
void Supervisor::failed(const Error& error) {
  Duration pause{};
  {
    MutexLock lock(mutex_);
    DTF_CHECK(saving_);
    ++status_.failed;
    status_.degraded = error.message();
    pause = retry_pause_ = std::clamp(2 * retry_pause_, kRetryFirst, kRetryLongest);
    retry_at_ = clock_.now() + pause;
    saving_ = false;
    changed_.notifyAll();
  }
  log::warning("event=checkpoint_failed degraded=checkpoint retry_s={:.0f} reason=\"{}\"",
               toSeconds(pause), error.message());
}

void Supervisor::countFailureAtRest(const Error& error) {
  MutexLock lock(mutex_);
  ++status_.failed;
  status_.degraded = error.message();
  saving_ = false;
}

void Supervisor::saveAtRest() {
  if (runner_ != nullptr) runner_->wait();
  {
    MutexLock lock(mutex_);
    while (saving_) changed_.wait(mutex_);  // bounded: a save has deadlines of its own
    saving_ = true;
  }
  std::optional<SavedCheckpoint> saved;
  try {
    saved = checkpointer_.save(Motion::kAtRest);
  } catch (const Error& error) {
    countFailureAtRest(error);
    throw;
  }
  succeeded(saved.has_value());
  if (saved && report_) report_(*saved);
}

CheckpointStatus Supervisor::status() const {
  MutexLock lock(mutex_);
  return status_;
}

}  // namespace dtf::train
