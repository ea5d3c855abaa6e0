#include "common/train/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

namespace dtf::train {

namespace {

constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::minutes(1);
constexpr Duration kReportEvery = std::chrono::seconds(3);

void logNotSaved(uint64_t evaluated, const std::string& why) {
  log::warning("event=evaluation_not_saved step={} reason=\"{}\"", evaluated, why);
}

}  // namespace

bool StepSchedule::isDue(uint64_t next_step, uint64_t ahead) {
  if (every_ == 0) return false;
  if (next_ == 0) next_ = (next_step + every_ - ahead) / every_ * every_;
  if (next_step < next_) return false;
  next_ = (next_step / every_ + 1) * every_;
  return true;
}

Supervisor::Supervisor(Checkpointer& checkpointer, const SaveSchedule& schedule,
                       replication::CutKind cut_kind, const Clock& clock, Events events,
                       SaveRunner* runner)
    : checkpointer_(checkpointer),
      schedule_(schedule),
      cut_kind_(cut_kind),
      clock_(clock),
      events_(std::move(events)),
      runner_(runner),
      saves_{clock.now(), StepSchedule(schedule.checkpoint ? schedule.checkpoint->every_steps : 0)},
      snapshot_steps_(schedule.snapshot_every_steps) {
  if (schedule_.checkpoint) {
    DTF_CHECK(schedule_.checkpoint->every_seconds >= 0);
    const bool has_trained = checkpointer.lastStep().value_or(0) > 0;
    const cluster::CheckpointSpec& spec = *schedule_.checkpoint;
    saves_.next_time += fromSeconds(has_trained ? spec.every_seconds
                                                : std::min(spec.first_seconds, spec.every_seconds));
  }
  status_.last_step = checkpointer.lastStep();
  if (runner_ == nullptr) thread_ = Thread("dtf-checkpoint", [this] { run(); });
}

// A job that succeeds has saved at rest before. So a save that still waits for its cut waits for
// steps that a failed job won't do.
Supervisor::~Supervisor() {
  checkpointer_.callOffCuts();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notifyAll();
  }
  runner_ != nullptr ? runner_->wait() : thread_.join();
}

// A cut at a step is announced before any worker can push gradients of that step. A cut with a hold
// takes the current position.
uint64_t Supervisor::announcedAhead() const {
  return cut_kind_ == replication::CutKind::kAtStep ? 1 : 0;
}

bool Supervisor::isTime() {
  if (!schedule_.checkpoint) return false;
  const double every_seconds = schedule_.checkpoint->every_seconds;
  if (every_seconds <= 0 || clock_.now() < saves_.next_time) return false;
  saves_.next_time = clock_.now() + fromSeconds(every_seconds);
  return true;
}

// Claims the work to start now for this thread, which then must start it. After a failed save, the
// next save starts at its retry time.
Supervisor::Work Supervisor::claim(bool steps_due, bool snapshot_due,
                                   const replication::StepState& state) {
  const bool is_time = isTime();
  MutexLock lock(mutex_);
  global_step_ = state.global_step;
  if (state.epoch >= loss_.back_in_epoch) loss_.back_in_epoch = 0;
  overdue_ = overdue_ || is_time;
  snapshot_overdue_ = (snapshot_overdue_ || snapshot_due) && snapshots_.off.empty();
  if (busy_ || loss_.replaced) return Work::kNothing;
  const bool failed = !status_.degraded.empty();
  if (failed ? clock_.now() >= retry_at_ : overdue_ || steps_due) {
    overdue_ = snapshot_overdue_ = false;
    busy_ = true;
    return Work::kSave;
  }
  if (!snapshot_overdue_) return Work::kNothing;
  snapshot_overdue_ = false;
  busy_ = true;
  return Work::kSnapshot;
}

// In sync mode a cut at step N is announced before any worker can push gradients of step N: this
// worker has not pushed its own of N - 1 yet.
void Supervisor::onStep(const replication::StepState& state) {
  if (state.done || state.outcome == replication::Outcome::kQueued) return;
  // A pull may be the first answer after it.
  const bool other_epoch = std::exchange(saves_.epoch, state.epoch) != state.epoch;
  if (other_epoch || state.outcome == replication::Outcome::kWentBack) {
    saves_.steps.restart();
    snapshot_steps_.restart();
  }
  const uint64_t next_step = state.global_step + announcedAhead();
  const bool save_due = schedule_.checkpoint && saves_.steps.isDue(next_step, announcedAhead());
  const bool snapshot_due = snapshot_steps_.isDue(next_step, announcedAhead());
  const Work work = claim(save_due, snapshot_due, state);
  if (work != Work::kNothing) start(work, next_step);
}

// Starts the claimed work. `step`: of the cut, if cuts are at steps.
void Supervisor::start(Work work, uint64_t step) {
  if (cut_kind_ == replication::CutKind::kAtStep) {
    saves_.announced = work == Work::kSave ? step : 0;
    try {
      checkpointer_.startCut(step);
    } catch (const Error& error) {
      work == Work::kSave ? failed(error) : snapshotFailed(error);
      return beginDue();
    }
  }
  begin(work);
}

// Claims the work once nobody else is at it. Returns why that took too long; empty: it is claimed.
// A recovery behind a save has its own time.
std::string Supervisor::claimWhenIdle(Duration recovery_max) {
  bool recovers = false;
  TimePoint begin = std::chrono::steady_clock::now();
  for (Duration report = kReportEvery;; report += kReportEvery) {
    const char* const what = recovers ? "the recovery of a lost ps" : "the save that is under way";
    const Duration longest = recovers ? recovery_max : schedule_.waits.save;
    {
      MutexLock lock(mutex_);
      const TimePoint until = begin + std::min(report, longest);
      while (busy_ && isLost() == recovers && changed_.waitUntil(mutex_, until)) {
      }
      if (!std::exchange(busy_, true)) return "";
      if (isLost() != recovers) {
        recovers = !recovers;
        begin = std::chrono::steady_clock::now();
        report = Duration{0};
        continue;
      }
    }
    const Duration waited = std::chrono::steady_clock::now() - begin;
    if (waited >= longest) return fmt::format("waited {:.3g} s for {}", toSeconds(waited), what);
    log::info("event=waiting for=\"{}\" waited_s={:.0f}", what, toSeconds(waited));
    if (events_.on_waiting) events_.on_waiting(what, waited);
  }
}

// Claims the save of these parameters. Returns why they aren't saved; empty: it is claimed.
std::string Supervisor::claimForEvaluation(uint64_t global_step) {
  std::string why = claimWhenIdle(schedule_.waits.recovery);
  if (!why.empty()) return why;
  const bool is_lost = hasGoneBackBefore(global_step);
  MutexLock lock(mutex_);
  if (is_lost) {
    release();
    return "the ps went back: it comes again";
  }
  evaluated_ = global_step;
  return "";
}

// Sync: the other workers wait for this one, so all ps are at that step. With backup workers they
// may be further on, and the cut is the next possible one.
void Supervisor::saveEvaluated(uint64_t global_step) {
  DTF_CHECK(schedule_.checkpoint && runner_ == nullptr);
  {
    MutexLock lock(mutex_);
    if (busy_ && saves_.announced == global_step && !isLost()) {
      evaluated_ = global_step;
      return;
    }
  }
  const std::string why = claimForEvaluation(global_step);
  why.empty() ? start(Work::kSave, global_step) : logNotSaved(global_step, why);
}

// Runs the claimed work beside the training. Must not be called inside a job of the runner.
void Supervisor::begin(Work work) {
  if (runner_ != nullptr)
    return runner_->start([this, work] {
      for (Work next = work; next != Work::kNothing; next = takeDue()) run(next);
    });
  MutexLock lock(mutex_);
  DTF_CHECK(busy_ && due_ == Work::kNothing);
  due_ = work;
  changed_.notifyAll();
}

Supervisor::Work Supervisor::takeDue() {
  MutexLock lock(mutex_);
  return std::exchange(due_, Work::kNothing);
}

// With a runner, begins the work that came up while the training thread had the claim. thread_
// finds it by itself.
void Supervisor::beginDue() {
  if (runner_ == nullptr) return;
  if (const Work work = takeDue(); work != Work::kNothing) begin(work);
}

void Supervisor::onPsReplaced() {
  bool at_work = false;
  {
    MutexLock lock(mutex_);
    loss_.replaced = true;
    at_work = std::exchange(busy_, true);
    loss_.recovering = loss_.recovering || !at_work;
  }
  // The thread with the claim recovers next. Its save may wait for a step that can't complete
  // without that ps.
  if (at_work) return checkpointer_.interruptCuts();
  begin(Work::kRecover);
}

void Supervisor::run() {
  for (;;) {
    Work work = Work::kNothing;
    {
      MutexLock lock(mutex_);
      while (due_ == Work::kNothing && !ending_) changed_.wait(mutex_);
      work = std::exchange(due_, Work::kNothing);
    }
    if (work == Work::kNothing) return;
    run(work);
  }
}

void Supervisor::run(Work work) {
  DTF_CHECK(work != Work::kNothing);
  if (work == Work::kSave) return saveOnce();
  if (work == Work::kSnapshot) return snapshotOnce(Motion::kTraining);
  recover();
}

void Supervisor::saveOnce() {
  try {
    const std::optional<SavedCheckpoint> saved = checkpointer_.save(Motion::kTraining);
    if (saved && events_.on_saved) events_.on_saved(*saved);
    succeeded(saved.has_value());
  } catch (const Error& error) {
    failed(error);
  }
}

void Supervisor::snapshotOnce(Motion motion) {
  try {
    const std::optional<TakenSnapshot> taken = checkpointer_.snapshot(motion);
    MutexLock lock(mutex_);
    if (taken) {
      ++snapshots_.kept;
      snapshots_.last_step = taken->global_step;
      snapshots_.bytes = taken->bytes;
      snapshots_.longest_stall = std::max(snapshots_.longest_stall, taken->stall_seconds);
    }
    release();
  } catch (const Error& error) {
    snapshotFailed(error);
  }
}

// A lost ps comes back, so the next snapshot is tried when it is due. Any other error, such as too
// little memory, would recur.
void Supervisor::snapshotFailed(const Error& error) {
  const bool passes =
      error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
  {
    MutexLock lock(mutex_);
    if (!passes) snapshots_.off = error.message();
    release();
  }
  if (passes)
    log::info("event=snapshot_missed reason=\"{}\"", error.message());
  else
    log::warning(
        "event=snapshots_off degraded=snapshot reason=\"{}; no more are taken: a lost ps "
        "costs the steps since the last {}\"",
        error.message(), schedule_.checkpoint ? "checkpoint" : "snapshot, if all have it");
}

// Ends the save under way, after reporting the evaluation that it is for.
void Supervisor::succeeded(bool saved) {
  while (const std::optional<uint64_t> evaluated = takeEvaluatedOrEnd(saved))
    if (events_.on_evaluated_saved)
      events_.on_evaluated_saved(*evaluated, checkpointer_.lastStep().value());
}

// Returns the evaluation to report. If there is none, ends the save and returns nullopt.
std::optional<uint64_t> Supervisor::takeEvaluatedOrEnd(bool saved) {
  MutexLock lock(mutex_);
  if (evaluated_) return std::exchange(evaluated_, std::nullopt);
  status_.saved += saved;
  status_.last_step = checkpointer_.lastStep();
  status_.degraded.clear();
  retry_pause_ = Duration{0};
  release();
  return std::nullopt;
}

// Ends the save under way after an error.
void Supervisor::failed(const Error& error) {
  Duration pause{};
  std::optional<uint64_t> evaluated;
  {
    MutexLock lock(mutex_);
    countFailure(error);
    evaluated = std::exchange(evaluated_, std::nullopt);
    pause = retry_pause_ = std::clamp(2 * retry_pause_, kRetryFirst, kRetryLongest);
    retry_at_ = clock_.now() + pause;
    release();
  }
  log::warning("event=checkpoint_failed degraded=checkpoint retry_s={:.0f} reason=\"{}\"",
               toSeconds(pause), error.message());
  if (evaluated) logNotSaved(*evaluated, error.message());
}

void Supervisor::countFailure(const Error& error) {
  ++status_.failed;
  status_.degraded = error.message();
}

// Gives up the claim. If a ps was restarted meanwhile, claims its recovery instead.
void Supervisor::release() {
  DTF_CHECK(busy_ && due_ == Work::kNothing);
  busy_ = loss_.recovering = loss_.replaced && !ending_;
  if (busy_) due_ = Work::kRecover;
  changed_.notifyAll();
}

// ---- recovery

// Retries until it succeeds, as a ps may be lost at any time. If a ps stays away, the connections
// give up and end the training.
void Supervisor::recover() {
  while (!tryToRecover()) {
    if (runner_ != nullptr) {
      runner_->pause(kRetryFirst);
      continue;
    }
    MutexLock lock(mutex_);
    if (!ending_) changed_.waitUntil(mutex_, std::chrono::steady_clock::now() + kRetryFirst);
  }
  MutexLock lock(mutex_);
  release();
}

bool Supervisor::tryToRecover() {
  uint64_t step = 0;
  {
    MutexLock lock(mutex_);
    if (ending_) return true;
    loss_.replaced = false;
    step = global_step_;
  }
  try {
    const std::optional<WentBack> back = checkpointer_.recover(step);
    if (back) noteBack(*back);
    if (back && events_.on_went_back) events_.on_went_back(*back);
    MutexLock lock(mutex_);
    status_.last_step = checkpointer_.lastStep();
  } catch (const Error& error) {
    const bool passes =
        error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
    log::warning("event=recovery_failed again={} reason=\"{}\"", passes, error.message());
    if (passes) return false;
    if (events_.on_hopeless) events_.on_hopeless(error);
  }
  return true;
}

void Supervisor::noteBack(const WentBack& back) {
  DTF_CHECK(back.epoch > 0);
  MutexLock lock(mutex_);
  loss_.back_at = loss_.back_in_epoch == 0 ? back.step : std::min(loss_.back_at, back.step);
  loss_.back_in_epoch = back.epoch;
}

bool Supervisor::hasGoneBackBefore(uint64_t global_step) const {
  MutexLock lock(mutex_);
  return loss_.back_in_epoch != 0 && loss_.back_at < global_step;
}

void Supervisor::saveAtRest() {
  if (runner_ != nullptr) runner_->wait();
  // A ps that is back may have to read its values.
  const std::string why = claimWhenIdle(schedule_.waits.recovery + schedule_.waits.save);
  if (!schedule_.checkpoint) return snapshotAtRest(why);
  if (!why.empty()) {
    const Error error(ErrorCode::kDeadline, why);
    MutexLock lock(mutex_);
    countFailure(error);
    throw Error(error);
  }
  std::optional<SavedCheckpoint> saved;
  try {
    saved = checkpointer_.save(Motion::kAtRest);
  } catch (const Error& error) {
    {
      MutexLock lock(mutex_);
      countFailure(error);
      release();
    }
    beginDue();
    throw;
  }
  succeeded(saved.has_value());
  beginDue();
  if (saved && events_.on_saved) events_.on_saved(*saved);
}

// Keeps the end of the training, which nobody could compute again: the workers leave after this.
void Supervisor::snapshotAtRest(const std::string& not_claimed) {
  if (!not_claimed.empty()) return log::warning("event=snapshot_missed reason=\"{}\"", not_claimed);
  bool wanted = schedule_.snapshot_every_steps > 0;
  {
    MutexLock lock(mutex_);
    wanted = wanted && snapshots_.off.empty();
    if (!wanted) release();
  }
  if (wanted) snapshotOnce(Motion::kAtRest);
  beginDue();
}

CheckpointStatus Supervisor::status() const {
  MutexLock lock(mutex_);
  return status_;
}

SnapshotStatus Supervisor::snapshotStatus() const {
  MutexLock lock(mutex_);
  return snapshots_;
}

}  // namespace dtf::train
