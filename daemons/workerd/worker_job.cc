#include "daemons/workerd/worker_job.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/trace.h"
#include "common/data/dataset.h"
#include "common/ps/parameter_digest.h"
#include "common/ps/replication_rules.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/job_start.h"
#include "common/train/summaries.h"
#include "common/train/supervisor.h"
#include "common/train/training_loop.h"
#include "common/wire/rpc_checkpoint_client.h"
#include "common/wire/rpc_parameter_client.h"

namespace dtf::workerd {

namespace {

// How long the end of this worker may be held up by telling the ps of it.
constexpr Duration kTellingMax = std::chrono::milliseconds(500);

void notifyWaiting(const std::string& what, Duration waited) {
  notifyIfRoom({{"event", "waiting"}, {"for", what}, {"seconds", toSeconds(waited)}});
}

wire::RpcClientOptions clientOptions(const cluster::TaskOptions& task) {
  wire::RpcClientOptions options;
  options.link = wire::linkOptions(task.job, task.task, Incarnation::random(task.attempt));
  options.ps = wire::addressesOf(task.job.cluster.ps);
  options.on_waiting = notifyWaiting;
  return options;
}

void sayNothingToEvaluate() {
  constexpr std::string_view kLine =
      "event=nothing_to_evaluate reason=\"model.metrics asks for the accuracy, but data.eval names "
      "no data to evaluate: add it, or leave out the metrics\"";
  // dtf-launch has warned of it before it started anything: for its console this is a detail.
  notifyEnabled() ? log::info("{}", kLine) : log::warning("{}", kLine);
}

// The chief's part in checkpoints: made once the model is declared, ended before the connections.
struct Supervision {
  Supervision(const cluster::TaskOptions& task, const Clock& clock,
              wire::RpcParameterClient& parameter_client, const ps::ModelDeclaration& declaration)
      : client(parameter_client, task.job.timeouts.finish_seconds),
        checkpointer(
            realFileSystem(), clock, client, declaration,
            {task.job.job, task.job.run_dir, Incarnation::random(task.attempt),
             static_cast<uint32_t>(task.job.cluster.worker.size()), *task.job.train->checkpoint,
             task.job.train->data, task.job.train->model, task.fresh}) {}

  wire::RpcCheckpointClient client;
  train::Checkpointer checkpointer;
  std::optional<train::Supervisor> supervisor;  // once training starts
};

// One worker's job with everything that it works with.
class WorkerJob {
 public:
  WorkerJob(const cluster::TaskOptions& task, WorkerStatus& status, JobReport& report)
      : task_(task),
        train_(*task.job.train),
        status_(status),
        report_(report),
        client_(clientOptions(task)) {
    DTF_CHECK(task_.task.job == JobKind::kWorker);
    runtime::registerCpuKernels(kernels_);
  }

  JobEnd run() {
    const WorkerStatus::Telling telling(
        status_, [this](const Error& reason) { tell(reason, wire::FailureOf::kJob); });
    try {
      return runJob();
    } catch (const Error& error) {
      if (!finished_ && !wire::isJobFailed(error)) tell(error, wire::failureOf(error));
      throw;
    }
  }

 private:
  JobEnd runJob() {
    if (train_.summaries && train_.summaries->timeline_step > 0)
      trace::start(task_.task, train_.summaries->timeline_step);
    // While the connections are being made.
    const auto dataset = data::openDataset(train_.data.train, train_.data.seed, false);
    const auto ranks = static_cast<uint32_t>(task_.job.cluster.worker.size());
    const auto ps_tasks = static_cast<uint32_t>(task_.job.cluster.ps.size());
    train::TrainingLoop loop(train_, {task_.task.index, ranks, ps_tasks}, dataset, client_,
                             kernels_, device_, clock_);
    if (isChief() && train_.model.accuracy && !train_.data.eval) sayNothingToEvaluate();
    if (isChief() && train_.data.eval)
      loop.evaluateOn(data::openDataset(*train_.data.eval, train_.data.seed, true));
    if (isChief()) reportModel(loop.placement(), loop.placementTable());
    loop.join([this, &loop] { return restore(loop); }, notifyWaiting);
    notify({{"event", "ready"}});
    log::info("event=joined ps={} variables={}", ps_tasks,
              loop.declaration().layout.variables.size());
    client_.barrier("start");
    const train::TrainingResult result = train(loop);
    trace::save(task_.job.run_dir / "timeline");
    client_.barrier("trained");
    if (isChief()) finishAsChief(loop, result);
    supervision_.reset();
    finish();
    log::info("event=finished global_step={} batches={} batches_stale={}", result.global_step,
              result.batches, result.batches_stale);
    return result.stopped && !train_.checkpoint ? JobEnd::kStoppedUnsaved : JobEnd::kDone;
  }

  // What goes wrong afterwards is this worker's affair, no longer the job's.
  void finish() {
    client_.finish();
    finished_ = true;
  }

  bool isChief() const { return task_.task == kChief; }

  // By hand: a launcher tells the others itself.
  void tell(const Error& reason, wire::FailureOf failure_of) {
    if (!notifyEnabled()) client_.fail(reason, failure_of, kTellingMax);
  }

  // True when the ps hold values and need no initial ones.
  bool restore(const train::TrainingLoop& loop) {
    DTF_CHECK(isChief() && !supervision_);
    if (!train_.checkpoint) {
      wire::RpcCheckpointClient ps(client_, task_.job.timeouts.finish_seconds);
      return train::decideStart(ps.held(), std::nullopt) == train::JobStart::kContinue;
    }
    makeWritableFolder(task_.job.run_dir);
    supervision_.emplace(task_, clock_, client_, loop.declaration());
    const bool restored = supervision_->checkpointer.restore();
    if (const std::optional<train::Resumed>& resumed = supervision_->checkpointer.resumed())
      reportResumed(*resumed, train_.steps);
    return restored;
  }

  train::TrainingResult train(train::TrainingLoop& loop) {
    train::StepCallback on_step;
    if (isChief() && train_.summaries) {
      summaries_.emplace(train_, loop, realFileSystem(), task_.job.run_dir / "events", clock_);
      loop.observe(&*summaries_);
    }
    if (supervision_) {
      supervision_->supervisor.emplace(supervision_->checkpointer, *train_.checkpoint,
                                       ps::cutKind(loop.declaration().replication), clock_,
                                       [this](const train::SavedCheckpoint& saved) {
                                         reportCheckpoint(saved);
                                         if (summaries_)
                                           summaries_->onCheckpoint(saved.global_step);
                                       });
      on_step = [supervisor = &*supervision_->supervisor](const ps::StepState& state) {
        supervisor->onStep(state);
      };
    }
    DTF_CHECK(!supervision_ || isChief());
    WorkerStatus::Stopper stopper;
    if (train_.checkpoint)
      stopper = [this](WorkerStatus::Refused refused) { client_.requestStop(std::move(refused)); };
    const WorkerStatus::Training training(status_, std::move(stopper));
    return loop.run([this](const train::Progress& progress) { report(progress); }, on_step);
  }

  void report(const train::Progress& progress) {
    status_.global_step = progress.global_step;
    status_.loss = static_cast<float>(progress.loss);
    if (!isChief()) return;
    report_.progress(progress);
    if (progress.evaluation && progress.evaluation->accuracy)
      accuracy_ = fmt::format(" eval_accuracy={:.4f}", *progress.evaluation->accuracy);
    // A launcher shows the progress itself; its log files get a line now and then.
    const Duration pause = std::chrono::seconds(notifyEnabled() ? 10 : 0);
    if (clock_.now() - logged_ < pause) return;
    logged_ = clock_.now();
    log::info("event=progress step={} steps={} loss={:.4f} examples_per_second={:.0f}{}",
              progress.global_step, train_.steps, progress.loss, progress.examples_per_second,
              accuracy_);
  }

  void finishAsChief(train::TrainingLoop& loop, const train::TrainingResult& result) {
    DTF_CHECK(isChief());
    const std::optional<Error> unsaved = saveLast(result);
    JobResult job{result, {}, {}, {}, {}};
    try {
      evaluateLast(loop, job);
      // Under a launcher the ps have nothing to wait for. By hand they are to be told, or one that
      // has written its part would end as if the job were saved.
      if (unsaved && notifyEnabled()) finish();
    } catch (const Error& error) {
      if (!unsaved) throw;
      log::warning("event=not_evaluated reason=\"{}\"", error.message());
    }
    if (supervision_) job.checkpoints = supervision_->supervisor->status();
    job.summaries = finishSummaries(loop);
    report_.result(job);
    if (unsaved) throw Error(*unsaved);
  }

  // Why the last checkpoint could not be written.
  std::optional<Error> saveLast(const train::TrainingResult& result) {
    if (!supervision_) return std::nullopt;
    try {
      supervision_->supervisor->saveAtRest();
    } catch (const Error& error) {
      return Error(error.code(),
                   fmt::format("{}, but its last checkpoint could not be written: {}",
                               result.stopped ? fmt::format("the job was stopped at step {}",
                                                            result.global_step)
                                              : "training is done",
                               error.message()));
    }
    return std::nullopt;
  }

  void evaluateLast(train::TrainingLoop& loop, JobResult& job) {
    if (train_.data.eval && !job.training.stopped)
      job.evaluation = loop.evaluate();
    else
      client_.pull();
    job.parameters_digest = ps::parameterDigest(
        loop.declaration().layout, [this](uint32_t ps) { return client_.parameters(ps); });
  }

  // Waits until they are written.
  std::optional<summary::EventWriterStatus> finishSummaries(train::TrainingLoop& loop) {
    if (!summaries_) return std::nullopt;
    loop.observe(nullptr);
    return summaries_->finish();
  }

  const cluster::TaskOptions& task_;
  const cluster::TrainSpec& train_;
  WorkerStatus& status_;
  JobReport& report_;
  SystemClock clock_;
  TimePoint logged_{};
  bool finished_ = false;
  std::string accuracy_;  // of the last evaluation, for the progress lines
  runtime::KernelTable kernels_;
  runtime::CpuDevice device_;
  wire::RpcParameterClient client_;
  std::optional<train::Summaries> summaries_;  // the chief's, with `summaries` in the file
  std::optional<Supervision> supervision_;     // the chief's, with `checkpoint` in the file
};

}  // namespace

JobEnd runWorkerJob(const cluster::TaskOptions& task, WorkerStatus& status, JobReport& report) {
  return WorkerJob(task, status, report).run();
}

}  // namespace dtf::workerd
