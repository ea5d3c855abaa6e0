#pragma once

// What a worker does: take the batch that is due, run the step, exchange gradients for parameters,
// until the ps say that the job is done. Between-graph replication: each worker has its own loop,
// and they meet only at the ps.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "common/data/batch_order.h"
#include "common/data/batch_source.h"
#include "common/ps/parameter_client.h"
#include "common/runtime/device.h"
#include "common/train/batch_programs.h"
#include "common/train/device_variables.h"
#include "common/train/divergence.h"
#include "common/train/evaluation.h"
#include "common/train/gradient_stream.h"
#include "common/train/parameter_binding.h"
#include "common/train/report_clock.h"
#include "common/train/step_loop.h"
#include "common/train/step_observer.h"
#include "common/train/step_times.h"
#include "common/train/tower_group.h"
#include "common/train/training_metrics.h"
#include "common/train/worker_place.h"

namespace dtf::train {

struct Progress {
  uint64_t global_step = 0;
  double loss = 0;                       // sync: mean of the last step's; async: this worker's last
  double examples_per_second = 0;        // of the whole job, since the last report
  double steps_per_second = 0;           // global steps
  std::optional<Evaluation> evaluation;  // of the parameters at global_step, when one was due
  uint64_t steps = 0;                    // that the job has
  // Of this worker, since its process began:
  uint64_t batches = 0;
  uint64_t batches_stale = 0;  // of them, those that came too late
  uint64_t examples = 0;       // of all of them
  StepTimes step_times{};      // from one batch's answer to the next, without evaluations
};
using ProgressCallback =
    std::function<void(const Progress&)>;  // called on the training thread; should be quick

using StepCallback = std::function<void(const ps::StepState&)>;  // ditto

// Training thread.
using WaitingCallback = std::function<void(const std::string& what, Duration waited)>;

struct TrainingResult {
  uint64_t first_step_number = 0;  // the global step that this process found
  uint64_t global_step = 0;
  uint64_t epoch = 0;          // of the last parameters, see ps/epoch.h
  bool stopped = false;        // before the declared steps, because the job was asked to
  uint64_t batches = 0;        // that this worker computed
  uint64_t batches_stale = 0;  // of them, those that came too late
  uint64_t examples = 0;       // of all of them
  double seconds = 0;  // from the first batch to the last answer: without start-up and evaluations
  std::optional<TimePoint> first_step;  // when the first exchange was answered; none: no batches
  double examples_per_step = 0;         // that one global step stands for
  // Of the last global step: in sync mode the mean over its contributions, in async mode this
  // worker's own last. None: no batches, the job was done already.
  std::optional<double> final_loss;

  // Whether ps that say `state` have nothing more to do. A ps/0 that came back from its replica may
  // know no end, but it holds all that was trained.
  bool isOver(const ps::StepState& state) const {
    return state.done || (state.epoch == epoch && state.global_step >= global_step);
  }
};

// Owns: the towers' steps, the batch buffers, the placement.
// Borrows: `client`, `kernels`, `device`, `clock`, `towers`; shares the data sets.  All that is
// borrowed must outlive this.
// Threads: one training thread, and those of `towers`.
// Blocks: in the calls of the client; their deadlines are the client's.
// Errors: the client's; kTrainingFailed naming worker, step and loss when training has diverged
// (divergence.h);
// the constructor throws kBadConfig when model, data and cluster don't fit, kBadData for a label
// without a unit.
class TrainingLoop final : private StepWorker {
 public:
  // Trains on `towers`, each with an equal share of the batch, or an even one of a short batch;
  // without them on `device`, which evaluates in any case.
  TrainingLoop(const cluster::TrainSpec& train, const WorkerPlace& place,
               std::shared_ptr<const data::Dataset> dataset, ps::ParameterClient& client,
               const runtime::KernelTable& kernels, runtime::Device& device, const Clock& clock,
               TowerDevices towers = {});
  ~TrainingLoop() override;

  // What all workers of the job declare.
  const ps::ModelDeclaration& declaration() const { return declaration_; }

  const model::ModelGraph& model() const { return model_; }
  const graph::Placement& placement() const { return placement_; }
  double examplesPerStep() const;  // that one global step stands for: the mean over an epoch

  // Which variable lies where, for people.
  std::string placementTable() const;

  // Returns nullopt when the ps hold values, else the epoch that their initial ones are to begin.
  using Restore = std::function<std::optional<uint64_t>()>;

  // Declares the model. The chief calls `restore`, brings the initial values when it says so, and
  // asks again until all ps hold values; without `restore` it brings them. The others wait for
  // that. `on_waiting` hears every few seconds how far the initial values are.
  void join(const Restore& restore = nullptr, const WaitingCallback& on_waiting = nullptr);

  // The chief evaluates `dataset` whenever the global step reaches a multiple of eval_every_steps,
  // and in evaluate(). In sync and bounded mode the others wait for it, without a deadline.
  // `before` is called with the global step before each evaluation in run(), on its thread.
  void evaluateOn(std::shared_ptr<const data::Dataset> dataset,
                  std::function<void(uint64_t global_step)> before = nullptr);

  // Shows `observer`, which must outlive run() and evaluate(), what is measured. Null: nobody.
  void observe(StepObserver* observer) { observer_ = observer; }

  // Trains until the job is done; call it once, after join(). No memory is allocated between two
  // reports. `on_step` hears every answer of the ps, before the next batch is computed.
  TrainingResult run(const ProgressCallback& report, const StepCallback& on_step = nullptr);

  // Fetches the parameters as they are and evaluates them (their moving averages where the
  // optimizer keeps them). evaluateOn() must have been called.
  // Errors: kTrainingFailed when the last update has spoilt them.
  Evaluation evaluate();

 private:
  void initialise(uint64_t epoch, const WaitingCallback& on_waiting);
  bool hasRowsOf(const ps::StepState& due) override;
  void wantRowsOf(const ps::StepState& due) override;
  void beforeFirst() override;
  void onRows(const ps::StepState& state) override;
  void onFirst(const ps::StepState& state) override;
  void onDue(const ps::StepState& state) override;
  float compute(const ps::StepState& due) override;
  bool hasStartedPush() const override { return stream_ != nullptr && stream_->hasStarted(); }
  void beforePush(const ps::StepState& due) override;
  void onAnswer(const ps::StepState& due, const ps::StepState& state) override;
  void onWentBack(const ps::StepState& state) override;
  void afterBatch(const ps::StepState& state) override;
  uint64_t batchOf(const ps::StepState& due) const;
  uint64_t batchAfter(const ps::StepState& due) const;
  void wantRowsOfBatch(uint64_t batch);
  GradientListener* listenerFor(const ps::StepState& due);
  Evaluation measureBatch();
  void finishGradients(const ps::StepState& due);
  void inspectKept(const ps::StepState& due, float weight);
  void checkStatistics(const ps::StepState& due);
  void clipGradients(const ps::StepState& due);
  void checkNorm(double norm, const ps::StepState& due) const;
  void afterStep(const ps::StepState& state, TimePoint now);
  Progress progressAt(uint64_t global_step, double loss, const ReportClock::Rates& rates) const;
  Error trainingFailed(const std::string& what) const;
  Error diverged(uint64_t global_step, double loss, uint64_t step);
  Evaluation evaluateValues();
  bool evaluationDue(const ps::StepState& state) const;
  Evaluation evaluateNow(uint64_t global_step);

  const cluster::TrainSpec train_;
  const WorkerPlace place_;
  ps::ParameterClient& client_;
  const runtime::KernelTable& kernels_;
  runtime::Device& device_;
  const Clock& clock_;
  const cluster::BatchPlan plan_;
  const model::ModelGraph model_;  // of the largest batch
  const graph::Placement placement_;
  const TowerDevices devices_;
  const std::shared_ptr<DeviceVariables> kept_;  // null: the variables come from the client
  BatchPrograms programs_;
  const ps::ModelDeclaration declaration_;
  data::BatchReader reader_;
  data::BatchSource batches_;
  std::unique_ptr<ParameterBinding>
      binding_;  // made in join(): a client has arenas once it has declared
  std::unique_ptr<GradientStream>
      stream_;  // likewise; null: gradients are pushed once they are whole
  struct Evaluations {
    std::unique_ptr<Evaluator> evaluator;  // null: this worker has nothing to evaluate
    std::function<void(uint64_t)> before;
  };
  Evaluations evaluations_;
  std::map<int64_t, TrainingMetrics> metrics_;  // by examples of the batch, once somebody asks
  StepObserver* observer_ = nullptr;
  std::vector<std::span<float>> gradients_;  // of all variables, while they are clipped

  // Of run().
  ProgressCallback report_;
  StepCallback on_step_;
  const data::Batch* batch_ = nullptr;  // that was computed last
  uint64_t batch_number_ = 0;
  bool has_begun_ = false;           // onFirst() was called in this run()
  std::vector<LookUp> wanted_;       // by variable, of the batch whose rows are asked for
  std::optional<uint64_t> rows_of_;  // the batch whose rows of sparse variables were asked for last
  TimePoint begin_{};                // the first parameters are there
  DivergenceWatch divergence_;
  TrainingResult result_;
  ReportClock report_clock_;
  std::optional<ReportClock::Rates> rates_;  // of the last report
  uint64_t evaluated_step_ = 0;
  Duration evaluating_{0};
  TimePoint answered_{};  // the batch before, or what came in its place
  StepTimes step_times_;
};

}  // namespace dtf::train
