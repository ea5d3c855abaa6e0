#include "common/train/supervisor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

namespace dtf::train {

namespace {

constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::minutes(1);

}  // namespace

bool StepSchedule::isDue(uint64_t next_step, uint64_t ahead) {
  if (every_ == 0) return false;
  if (next_ == 0) next_ = (next_step + every_ - ahead) / every_ * every_;
  if (next_step < next_) return false;
  next_ = (next_step / every_ + 1) * every_;
  return true;
}

Supervisor::Supervisor(Checkpointer& checkpointer, const SaveSchedule& schedule,
                       ps::CutKind cut_kind, const Clock& clock, Events events, SaveRunner* runner)
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
    saves_.next_time += fromSeconds(schedule_.checkpoint->every_seconds);
  }
  status_.last_step = checkpointer.lastStep();
  if (runner_ == nullptr) thread_ = Thread("dtf-checkpoint", [this] { run(); });
}

// A job that succeeds has saved at rest before. So whatever waits here for its cut
// waits for steps that a failed job won't do.
Supervisor::~Supervisor() {
  checkpointer_.callOffCuts();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notifyAll();
  }
  runner_ != nullptr ? runner_->wait() : thread_.join();
}

// A cut at a step is announced before any worker can push the gradients of that step; a cut that
// is held takes what is there.
uint64_t Supervisor::announcedAhead() const {
  return cut_kind_ == ps::CutKind::kAtStep ? 1 : 0;
}

bool Supervisor::isTime() {
  if (!schedule_.checkpoint) return false;
  const double every_seconds = schedule_.checkpoint->every_seconds;
  if (every_seconds <= 0 || clock_.now() < saves_.next_time) return false;
  saves_.next_time = clock_.now() + fromSeconds(every_seconds);
  return true;
}

// What is to start now, and is then this thread's to start. A save that failed is tried again when
// it was said that it would be, not before: what is due meanwhile waits for that.
Supervisor::Work Supervisor::claim(bool steps_due, bool snapshot_due, uint64_t global_step) {
  const bool is_time = isTime();
  MutexLock lock(mutex_);
  global_step_ = global_step;
  overdue_ = overdue_ || is_time;
  snapshot_overdue_ = (snapshot_overdue_ || snapshot_due) && snapshots_.off.empty();
  if (busy_ || replaced_) return Work::kNothing;
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

// A synchronous job that is due at step N is told so before anyone can push the gradients of step
// N: this worker has not pushed those of N - 1 yet.
void Supervisor::onStep(const ps::StepState& state) {
  if (state.done || state.outcome == ps::Outcome::kQueued) return;
  if (state.outcome == ps::Outcome::kWentBack) {
    saves_.steps.restart();
    snapshot_steps_.restart();
  }
  const uint64_t next_step = state.global_step + announcedAhead();
  const bool save_due = schedule_.checkpoint && saves_.steps.isDue(next_step, announcedAhead());
  const bool snapshot_due = snapshot_steps_.isDue(next_step, announcedAhead());
  const Work work = claim(save_due, snapshot_due, state.global_step);
  if (work != Work::kNothing) start(work, next_step);
}

// What was claimed. `step`: of the cut, where it is at a step.
void Supervisor::start(Work work, uint64_t step) {
  if (cut_kind_ == ps::CutKind::kAtStep) {
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

// Sync: the others wait for this worker, so all ps are at that step.
void Supervisor::saveEvaluated(uint64_t global_step) {
  DTF_CHECK(schedule_.checkpoint && runner_ == nullptr);
  bool is_under_way = false;
  {
    MutexLock lock(mutex_);
    is_under_way = busy_ && saves_.announced == global_step;
    // Bounded: a save has deadlines. A recovery may need this thread.
    while (busy_ && !is_under_way && !replaced_) changed_.wait(mutex_);
    if (replaced_) return;
    busy_ = true;
    evaluated_ = global_step;
  }
  if (!is_under_way) start(Work::kSave, global_step);
}

// What was claimed. With a runner, not from within what it runs.
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

// What came up while the training thread had claimed the work: thread_ finds it by itself.
void Supervisor::beginDue() {
  if (runner_ == nullptr) return;
  if (const Work work = takeDue(); work != Work::kNothing) begin(work);
}

void Supervisor::onPsReplaced() {
  bool at_work = false;
  {
    MutexLock lock(mutex_);
    replaced_ = true;
    at_work = std::exchange(busy_, true);
  }
  // Whoever is at work sees it then. A save that waits for its cut may do so for a step that nobody
  // can complete without that ps.
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

// A ps that is away will be back: the next one is tried when it is due. A memory that is too small
// stays so.
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

// Ends the save that is under way, after the report of the evaluation that it is for.
void Supervisor::succeeded(bool saved) {
  while (const std::optional<uint64_t> evaluated = takeEvaluatedOrEnd(saved))
    if (events_.on_evaluated_saved)
      events_.on_evaluated_saved(*evaluated, checkpointer_.lastStep().value());
}

// Nullopt: the save has no evaluation to report, and has ended.
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

// Likewise.
void Supervisor::failed(const Error& error) {
  Duration pause{};
  {
    MutexLock lock(mutex_);
    ++status_.failed;
    status_.degraded = error.message();
    evaluated_.reset();
    pause = retry_pause_ = std::clamp(2 * retry_pause_, kRetryFirst, kRetryLongest);
    retry_at_ = clock_.now() + pause;
    release();
  }
  log::warning("event=checkpoint_failed degraded=checkpoint retry_s={:.0f} reason=\"{}\"",
               toSeconds(pause), error.message());
}

void Supervisor::countFailureAtRest(const Error& error) {
  MutexLock lock(mutex_);
  ++status_.failed;
  status_.degraded = error.message();
  release();
}

// The work that was claimed is done. A ps that was replaced meanwhile comes next.
void Supervisor::release() {
  DTF_CHECK(busy_ && due_ == Work::kNothing);
  busy_ = replaced_ && !ending_;
  if (busy_) due_ = Work::kRecover;
  changed_.notifyAll();
}

// ---- recovery

// Until it has succeeded, for a ps may be lost at any time. The connections give up in the end, and
// with them the training that this is for.
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
  evaluated_.reset();  // nobody saves these parameters any more
  release();
}

bool Supervisor::tryToRecover() {
  uint64_t step = 0;
  {
    MutexLock lock(mutex_);
    if (ending_) return true;
    replaced_ = false;
    step = global_step_;
  }
  try {
    const std::optional<WentBack> back = checkpointer_.recover(step);
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

void Supervisor::saveAtRest() {
  if (runner_ != nullptr) runner_->wait();
  {
    MutexLock lock(mutex_);
    while (busy_) changed_.wait(mutex_);  // bounded: a save has deadlines of its own
    busy_ = true;
  }
  if (!schedule_.checkpoint) return snapshotAtRest();
  std::optional<SavedCheckpoint> saved;
  try {
    saved = checkpointer_.save(Motion::kAtRest);
  } catch (const Error& error) {
    countFailureAtRest(error);
    beginDue();
    throw;
  }
  succeeded(saved.has_value());
  beginDue();
  if (saved && events_.on_saved) events_.on_saved(*saved);
}

// The end of the training, which nobody does again: workers leave once it is kept.
void Supervisor::snapshotAtRest() {
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
