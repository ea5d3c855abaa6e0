#include "daemons/workerd/worker_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/failpoint.h"
#include "common/base/file_system.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/base/trace.h"
#include "common/net/damage.h"
#include "common/replication/barrier.h"
#include "common/replication/replication_rules.h"
#include "common/train/chief_decision.h"
#include "common/train/epochs.h"
#include "common/train/kernel_choices.h"
#include "common/train/summaries.h"
#include "common/train/supervisor.h"
#include "common/train/training_loop.h"
#include "common/train/worker_devices.h"
#include "daemons/workerd/checkpointer_options.h"
#include "daemons/workerd/chief_findings.h"
#include "daemons/workerd/job_data.h"
#include "daemons/workerd/job_evaluations.h"
#include "daemons/workerd/job_file.h"
#include "daemons/workerd/progress_reports.h"
#include "daemons/workerd/replaced_ps.h"
#include "daemons/workerd/supervision.h"
#include "daemons/workerd/worker_client.h"

namespace dtf::workerd {

namespace {

// The longest time that reporting its end to the ps may delay this worker.
constexpr Duration kTellingMax = std::chrono::milliseconds(500);

// One worker's job and its objects.
class WorkerJob {
 public:
  WorkerJob(const cluster::TaskOptions& task, const net::Credentials& credentials,
            WorkerStatus& status, JobReport& report)
      : task_(task),
        status_(status),
        report_(report),
        client_(task.job.cluster.isOneProcess()
                    ? holdParameters(task, clock_, devices_.betweenSteps())
                    : connectToPs(
                          task, credentials, [this](uint32_t ps_task) { onReplaced(ps_task); },
                          onWaiting())) {
    log::info("event=computing threads={} cores={} workers_on_host={} devices={} tiles={}",
              devices_.threads(), availableCores(),
              cluster::workersBeside(task_.job.cluster, task_.task.index), join(names_, ","),
              hasMatrixTiles() ? "yes" : "no");
  }

  ~WorkerJob() { endSupervision(); }

  JobEnd run() {
    const WorkerStatus::Telling telling(
        status_, [this](const Error& reason) { tell(reason, wire::FailureOf::kJob); });
    const WorkerStatus::Asking asking(status_, [this](std::function<void()> answer) {
      client_->askHeartbeats(std::move(answer));
    });
    try {
      return runJob();
    } catch (const Error& error) {
      if (!finished_ && !error.has(ErrorTrait::kJobEnded))
        tell(error, failure_of_.value_or(wire::failureOf(error)));
      throw;
    }
  }

 private:
  JobEnd runJob() {
    if (train_.summaries && train_.summaries->timeline_step > 0)
      trace::start(task_.task, train_.summaries->timeline_step);
    const JobData data = openData();
    left_out_ = leftOutJson(data);
    const train::WorkerPlace place = train::placeOf(task_.job.cluster, task_.task.index);
    train_.steps = train::stepsOf(train_, data.train->size(), place.workers);
    train::TrainingLoop loop(train_, place, data.train, client_->parameters(), devices_.kernels(),
                             devices_.device(), clock_, devices_.towers());
    if (isChief()) warnOfEvaluations(train_, data.train->size(), place.workers);
    if (data.eval)
      loop.evaluateOn(data.eval, [this](uint64_t step) {
        status_.evaluates = true;
        evaluations_.beforeEvaluation(step);
      });
    if (isChief()) reportModel(loop.placement(), loop.placementTable());
    loop.join([this, &loop] { return restore(loop); }, onWaiting());
    report_.begins();
    status_.goesOn();
    if (supervision_) supervise(loop);
    if (supervision_ && evaluations_.watch(*supervision_->supervisor))
      client_->toldToEnd();  // ps/0 stops the job before a worker passes the barrier
    if (isChief()) writeJobFile(task_.job, data, loop.declaration());
    // An earlier process of the chief has trained: a launcher may send SIGTERM from now on.
    if (isChief() && task_.reached_step && train_.checkpoint) status_.hasValues();
    notifyReady();
    log::info("event=joined ps={} variables={}", place.ps_tasks,
              loop.declaration().layout.variables.size());
    client_->parameters().job().barrier(replication::kStartBarrier);
    const train::TrainingResult result = trainToTheEnd(loop);
    if (isChief()) finishAsChief(loop, result);
    const bool pauses = result.stopped && task_.job.launch.pauses();
    if (pauses) pause(result);
    endSupervision();
    const JobEnd end = result.stopped && !train_.checkpoint
                           ? JobEnd{whoWasToldToEnd(*client_, place.hosts)}
                           : JobEnd{.paused = pauses};
    finish();
    log::info(
        "event=finished global_step={} batches={} batches_stale={} examples={} messages_damaged={}",
        result.global_step, result.batches, result.batches_stale, result.examples,
        net::damagedMessages());
    return end;
  }

  // While the connections are made. Large files take longer than the ps wait for a missing worker.
  JobData openData() {
    const auto on_reading = [this](const std::string& what) {
      what.empty() ? status_.goesOn() : status_.awaits(what);
      notifyIfRoom({{"event", "waiting"}, {"for", what}, {"seconds", 0}});
    };
    train_.data.train = preparedTable(task_, on_reading);
    return openJobData(train_, isChief(), on_reading);
  }

  // If the job isn't saved, finishAsChief() has thrown.
  void pause(const train::TrainingResult& result) {
    DTF_CHECK(result.stopped && train_.checkpoint && !unsaved_);
    if (isChief()) client_->pause();
    client_->parameters().job().barrier(replication::kPausedBarrier);
    log::info("event=paused step={} steps={}", result.global_step, train_.steps);
  }

  // No worker leaves before the end is saved: until then, the loss of a ps takes all back.
  train::TrainingResult trainToTheEnd(train::TrainingLoop& loop) {
    for (;;) {
      const train::TrainingResult result = train(loop);
      if (supervision_ && result.stopped) keepStopped();
      trace::save(task_.job.run_dir / "timeline");
      client_->parameters().job().barrier(replication::trainedBarrier(result.epoch));
      // The others are at rest unless the ps went back meanwhile.
      unsaved_.reset();
      bool is_saved = false;
      if (isChief() && areAllAtRest(result)) {
        unsaved_ = saveLast(result);
        is_saved = train_.checkpoint && !unsaved_;
      }
      try {
        client_->parameters().job().barrier(replication::savedBarrier(result.epoch));
        if (isOverOnceSaved(result, is_saved)) return result;
      } catch (const Error&) {
        if (!unsaved_) throw;
        return result;  // the reason why nothing is saved matters more than a lost ps
      }
      log::warning("event=trains_on reason=\"the ps went back after the last step\"");
    }
  }

  // Called after the barrier at the end of training, in its epoch.
  bool areAllAtRest(const train::TrainingResult& result) {
    const replication::StepState state = client_->parameters().pull();
    return state.epoch == result.epoch && result.isOver(state);
  }

  // All workers met when the end was saved. If a ps is lost later, the chief restores it while it
  // is there; otherwise the chief has left, because the job is done.
  // If the ps went back to a point before the end, ps/0 may report the job as done while a last
  // push is on its way to another ps: a chief that hasn't saved the end meets the others once more.
  bool isOverOnceSaved(const train::TrainingResult& result, bool is_saved) {
    try {
      if (isChief() && !is_saved) return areAllAtRest(result);
      return result.isOver(client_->parameters().pull());
    } catch (const Error& error) {
      if (isChief()) throw;
      leaveUnanswered(error);
      return true;
    }
  }

  // A worker that has met the others behind the last save may leave a lost ps without its answer:
  // the ps, or its restored values, need nothing of this worker. Otherwise rethrows the error.
  void leaveUnanswered(const Error& error) const {
    const ErrorCode code = error.code();
    const bool is_lost = code == ErrorCode::kUnavailable || code == ErrorCode::kDeadline;
    if (!isSupervised(task_.job) || unsaved_ || !is_lost) throw;
    log::warning("event=left_unanswered reason=\"{}\"", error.message());
  }

  // The worker that requested the stop may have left when a ps is lost: the chief restores the ps
  // and repeats the request to it.
  void keepStopped() {
    client_->requestStop([](const Error& reason) {
      log::warning("event=stop_refused reason=\"{}\"", reason.message());
    });
  }

  void endSupervision() {
    replaced_.passToNobody();
    supervision_.reset();
  }

  // Errors from here on concern this worker, no longer the job.
  void finish() {
    DTF_FAILPOINT("ending.before_finish");
    try {
      client_->parameters().job().leave();
    } catch (const Error& error) {
      leaveUnanswered(error);
    }
    finished_ = true;
    notify({{"event", "finished"}});
    DTF_FAILPOINT("ending.after_finish");
  }

  OnWaiting onWaiting() {
    return [this](const std::string& what, Duration waited) {
      status_.awaits(what);
      notifyIfRoom({{"event", "waiting"}, {"for", what}, {"seconds", toSeconds(waited)}});
    };
  }

  bool isChief() const { return task_.task == kChief; }

  // By hand only: a launcher notifies the others itself.
  void tell(const Error& reason, wire::FailureOf failure_of) {
    if (!notifyEnabled()) client_->fail(reason, failure_of, kTellingMax);
  }

  // See TrainingLoop::Restore.
  std::optional<uint64_t> restore(const train::TrainingLoop& loop) {
    DTF_CHECK(isChief());
    if (!isSupervised(task_.job)) return decideUnsupervised();
    if (train_.checkpoint) makeWritableFolder(task_.job.run_dir);
    if (!supervision_)
      supervision_.emplace(task_, clock_, *client_, loop.declaration(), evaluations_);
    failure_of_ = wire::FailureOf::kJob;  // another process would find the same files
    const std::optional<uint64_t> epoch = supervision_->checkpointer.start();
    failure_of_.reset();
    if (!epoch) reportGoesOn(supervision_->checkpointer.goesOn(), train_.steps);
    begins_ = begins_ || epoch;
    evaluations_.goOnFrom(supervision_->checkpointer.goesOn(), begins_);
    return epoch;
  }

  // A loss before all ps hold values costs nothing: the initial values are sent again.
  std::optional<uint64_t> decideUnsupervised() {
    const auto ps = client_->checkpoints(task_.job.timeouts.finish_seconds);
    for (;;) {
      replaced_.beginDecision();
      const replication::RecoveryDecision decision =
          train::decideAsChief(ps->held(), {.incarnation = Incarnation::ofNow(task_.attempt).value,
                                            .named = named_,
                                            .reached = task_.reached_step,
                                            .hosts = task_.job.cluster.shardHosts()});
      named_ = std::max(named_, decision.epoch);
      if (decision.action != replication::RecoveryAction::kContinue) return decision.epoch;
      if (replaced_.endDecision()) return std::nullopt;
    }
  }

  // Starts saving checkpoints and snapshots when they are due, and going back to them when a ps is
  // restarted.
  void supervise(const train::TrainingLoop& loop) {
    train::Supervisor::Events events;
    events.on_saved = [this](const train::SavedCheckpoint& saved) {
      reportCheckpoint(saved);
      if (summaries_) summaries_->onCheckpoint(saved.global_step);
    };
    events.on_evaluated_saved = [this](uint64_t step, uint64_t checkpoint) {
      evaluations_.saved(step, checkpoint);
    };
    events.on_went_back = [this](const train::WentBack& back) {
      evaluations_.goBack(back.step);
      reportWentBack(back);
    };
    events.on_waiting = onWaiting();
    events.on_hopeless = [this](const Error& error) { client_->endWith(error); };
    supervision_->supervisor.emplace(supervision_->checkpointer, saveScheduleOf(task_.job),
                                     replication::cutKind(loop.declaration().replication), clock_,
                                     std::move(events));
    replaced_.passTo(*supervision_->supervisor);
  }

  // Runs on the client's control loop.
  void onReplaced(uint32_t ps_task) {
    if (isChief() && !replaced_.add()) client_->endWith(lostForGood(task_.job.cluster, ps_task));
  }

  train::TrainingResult train(train::TrainingLoop& loop) {
    train::StepCallback on_step;
    if (isChief() && train_.summaries && !summaries_) {
      summaries_.emplace(train_, loop, realFileSystem(), task_.job.run_dir / "events", clock_);
      loop.observe(&*summaries_);
    }
    if (supervision_)
      on_step = [supervisor = &*supervision_->supervisor](const replication::StepState& state) {
        supervisor->onStep(state);
      };
    DTF_CHECK(!supervision_ || isChief());
    WorkerStatus::Stopper stopper;
    if (train_.checkpoint)
      stopper = [this](WorkerStatus::Refused refused) { client_->requestStop(std::move(refused)); };
    const WorkerStatus::Training training(status_, std::move(stopper));
    return loop.run(
        [this](const train::Progress& progress) { progress_.add(progress, checkpoints()); },
        on_step);
  }

  // nullopt: the job keeps none.
  std::optional<train::CheckpointStatus> checkpoints() const {
    if (!supervision_ || !train_.checkpoint) return std::nullopt;
    return supervision_->supervisor->status();
  }

  void finishAsChief(train::TrainingLoop& loop, const train::TrainingResult& result) {
    JobResult job{.training = result, .left_out = left_out_, .is_unsaved = unsaved_.has_value()};
    try {
      evaluateLast(loop, job);
      if (!unsaved_ && !result.isOver(client_->parameters().pull()))
        throw Error(
            ErrorCode::kUnavailable,
            "the ps went back after the last step, when others had left the job: the end of the "
            "training is lost; start the job again");
      // Under a launcher the ps needn't wait. By hand they must be notified, or a ps that has
      // written its shard would end as if the job were saved.
      if (unsaved_ && notifyEnabled()) finish();
    } catch (const Error& error) {
      if (!unsaved_) throw;
      log::warning("event=not_evaluated reason=\"{}\"", error.message());
    }
    if (train_.checkpoint) job.checkpoints = supervision_->supervisor->status();
    evaluations_.tellOf(job);
    if (task_.job.durability.kind == cluster::Durability::kSnapshot)
      job.snapshots = supervision_->supervisor->snapshotStatus();
    if (summaries_) loop.observe(nullptr);
    if (summaries_) job.summaries = summaries_->finish();  // waits until they are written
    report_.result(job);
    if (!unsaved_ && job.isDone()) status_.hasResult();
    DTF_FAILPOINT("ending.after_result");
    if (unsaved_) throw Error(*unsaved_);
  }

  // Returns why the last checkpoint could not be written.
  std::optional<Error> saveLast(const train::TrainingResult& result) {
    if (!supervision_) return std::nullopt;
    try {
      supervision_->supervisor->saveAtRest();
      status_.goesOn();
      progress_.add(checkpoints());
    } catch (const Error& error) {
      progress_.add(checkpoints());
      return unsavedError(result, error);
    }
    return std::nullopt;
  }

  void evaluateLast(train::TrainingLoop& loop, JobResult& job) {
    DTF_FAILPOINT("ending.in_last_evaluation");
    if (train_.data.eval && (!job.training.stopped || !evaluations_.endedEarly().empty()))
      job.evaluation = loop.evaluate();
    else
      client_->parameters().pull();
    job.parameters_digest = digestOf(loop.declaration().layout, client_->parameters());
    if (job.evaluation && !unsaved_ && supervision_)
      evaluations_.addLast(job.training.global_step, *job.evaluation,
                           supervision_->checkpointer.lastStep());
  }

  cluster::TaskOptions task_;
  cluster::TrainSpec& train_ = *task_.job.train;  // complete once its data are open
  WorkerStatus& status_;
  JobReport& report_;
  SystemClock clock_;
  bool finished_ = false;
  uint64_t named_ = 0;                         // see replication::ChiefState
  std::optional<wire::FailureOf> failure_of_;  // of an error now; none: depends on its code
  std::optional<Error> unsaved_;               // why the end of the training is in no checkpoint
  Json left_out_;                              // of the data
  train::KernelChoices choices_{
      task_.job.train->kernels, task_.job.run_dir,
      isChief() ? train::KernelChoices::Absent::kTime : train::KernelChoices::Absent::kAwait,
      train::KernelWait{fromSeconds(task_.job.timeouts.start_seconds), onWaiting(), &clock_,
                        [](Duration d) { std::this_thread::sleep_for(d); }},
      train::KernelCache(train::KernelCache::defaultFile())};
  const std::vector<std::string> names_ =
      cluster::devicesOf(task_.job.cluster.worker.at(task_.task.index));
  train::WorkerDevices devices_{
      names_, cluster::computeThreads(task_.job.cluster, task_.task.index, availableCores()),
      choices_.rule()};
  ReplacedPs replaced_;
  const std::unique_ptr<WorkerClient> client_;
  std::optional<train::Summaries> summaries_;  // the chief's, with `summaries` in the file
  JobEvaluations evaluations_{task_.job, [this] { keepStopped(); }};
  ProgressReports progress_{isChief(), clock_, status_, report_, evaluations_};
  bool begins_ = false;                     // with initial values
  std::optional<Supervision> supervision_;  // the chief's, where isSupervised()
};

}  // namespace

JobEnd runWorkerJob(const cluster::TaskOptions& task, const net::Credentials& credentials,
                    WorkerStatus& status, JobReport& report) {
  return WorkerJob(task, credentials, status, report).run();
}

}  // namespace dtf::workerd
