#pragma once

// The training loop of a worker. It takes the due batch, runs the step, and exchanges gradients for
// parameters, until the ps report that the job is done. Between-graph replication: each worker has
// its own loop, and workers meet only at the ps.

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
#include "common/exchange/exchange_client.h"
#include "common/runtime/device.h"
#include "common/train/batch_programs.h"
#include "common/train/device_variables.h"
#include "common/train/divergence.h"
#include "common/train/evaluation.h"
#include "common/train/gradient_stream.h"
#include "common/train/parameter_binding.h"
#include "common/train/progress.h"
#include "common/train/report_clock.h"
#include "common/train/slowest_worker.h"
#include "common/train/step_clock.h"
#include "common/train/step_loop.h"
#include "common/train/step_observer.h"
#include "common/train/tower_group.h"
#include "common/train/training_metrics.h"
#include "common/train/worker_place.h"

namespace dtf::train {

// Called on the training thread; should be quick.
using StepCallback = std::function<void(const replication::StepState&)>;

// Called on the training thread.
using WaitingCallback = std::function<void(const std::string& what, Duration waited)>;

struct TrainingResult {
  uint64_t first_step_number = 0;  // at which this process began
  uint64_t global_step = 0;
  uint64_t epoch = 0;          // of the last parameters, see replication/epoch.h
  bool stopped = false;        // ended before the declared steps, on request
  uint64_t batches = 0;        // of this worker
  uint64_t batches_stale = 0;  // too late for their step
  uint64_t examples = 0;       // of all batches
  double seconds = 0;  // from the first batch to the last answer: without start-up and evaluations
  std::optional<TimePoint> first_step;  // when the first exchange was answered; none: no batches
  double examples_per_step = 0;         // mean over an epoch
  // Loss of the last global step. sync: the mean over its contributions; async: this worker's last
  // one. None: there were no batches.
  std::optional<double> final_loss;
  std::optional<Slowest> slowest;  // nullopt: ps/0 has named no worker to this process

  // Returns whether the job is over for ps in `state`. A ps/0 restored from its replica may not
  // know the end, but it has all trained steps.
  bool isOver(const replication::StepState& state) const {
    return state.done || (state.epoch == epoch && state.global_step >= global_step);
  }
};

// Owns: the towers' steps, the batch buffers, the placement.
// Borrows: `client`, `kernels`, `device`, `clock`, `towers`, which must outlive this; shares the
// data sets.
// Threads: one training thread, and the threads of `towers`.
// Blocks: in calls of the client, up to its deadlines.
// Errors: as the client; kTrainingFailed, naming worker, step and loss, if training diverges
// (divergence.h). The constructor throws kBadConfig if model, data and cluster don't fit together,
// kBadData if a label has no unit.
class TrainingLoop final : private StepWorker {
 public:
  // Trains on `towers`, or on `device` if there are none. Each tower has an equal share of a whole
  // batch, and an even share of a short batch. Evaluations use `device`.
  TrainingLoop(const cluster::TrainSpec& train, const WorkerPlace& place,
               std::shared_ptr<const data::Dataset> dataset, exchange::ExchangeClient& client,
               const runtime::KernelTable& kernels, runtime::Device& device, const Clock& clock,
               TowerDevices towers = {});
  ~TrainingLoop() override;

  // Returns the declaration that all workers of the job make.
  const arena::ModelDeclaration& declaration() const { return declaration_; }

  const model::ModelGraph& model() const { return model_; }
  const graph::Placement& placement() const { return placement_; }
  double examplesPerStep() const;  // mean over an epoch

  // Returns a table of the places of all variables, for display.
  std::string placementTable() const;

  // Returns nullopt if the ps hold values, else the epoch for initial values.
  using Restore = std::function<std::optional<uint64_t>()>;

  // Declares the model. The chief calls `restore` until it returns nullopt, and sends initial
  // values for each epoch that it returns. Without `restore` the chief sends them once. The other
  // workers wait until all ps hold values. `on_waiting` receives the progress of the initial values
  // every few seconds.
  void join(const Restore& restore = nullptr, const WaitingCallback& on_waiting = nullptr);

  // Makes the chief evaluate `dataset` at each multiple of eval_every_steps, and in evaluate(). In
  // sync and bounded mode the other workers wait for it, for timeouts.finish_seconds at most. run()
  // calls `before` with the global step before each evaluation, on its thread.
  void evaluateOn(std::shared_ptr<const data::Dataset> dataset,
                  std::function<void(uint64_t global_step)> before = nullptr);

  // Sets the observer, which must outlive run() and evaluate(); null for none.
  void observe(StepObserver* observer) { observer_ = observer; }

  // Trains until the job is done. Call it after join(), and again if the ps went back after that.
  // Allocates no memory between two reports. `on_step` receives every answer of the ps before the
  // next batch is computed.
  TrainingResult run(const ProgressCallback& report, const StepCallback& on_step = nullptr);

  // Fetches the current parameters and evaluates them, or their moving averages if the optimizer
  // keeps them. Needs evaluateOn().
  // Errors: kTrainingFailed if the last update spoilt them.
  Evaluation evaluate();

 private:
  void initialise(uint64_t epoch, const WaitingCallback& on_waiting);
  bool hasRowsOf(const replication::StepState& due) override;
  void wantRowsOf(const replication::StepState& due) override;
  void beforeFirst() override;
  void onRows(const replication::StepState& state) override;
  void onFirst(const replication::StepState& state) override;
  void onDue(const replication::StepState& state) override;
  float compute(const replication::StepState& due) override;
  bool hasBegunExchange() const override { return stream_ != nullptr && stream_->hasBegun(); }
  void beforePush(const replication::StepState& due) override;
  void onAnswer(const replication::StepState& due, const replication::StepState& state) override;
  void onWentBack(const replication::StepState& state) override;
  void afterBatch(const replication::StepState& state) override;
  uint64_t batchOf(const replication::StepState& due) const;
  uint64_t batchAfter(const replication::StepState& due) const;
  void wantRowsOfBatch(uint64_t batch);
  GradientListener* listenerFor(const replication::StepState& due);
  Evaluation measureBatch();
  void finishGradients(const replication::StepState& due);
  void inspectKept(const replication::StepState& due, float weight);
  void checkStatistics(const replication::StepState& due);
  void clipGradients(const replication::StepState& due);
  void checkNorm(double norm, const replication::StepState& due) const;
  void afterStep(const replication::StepState& state, TimePoint now);
  Progress progressAt(uint64_t global_step, double loss, const ReportClock::Rates& rates) const;
  Error trainingFailed(const std::string& what) const;
  Error diverged(uint64_t global_step, double loss, uint64_t step);
  Evaluation evaluateValues();
  bool evaluationDue(const replication::StepState& state) const;
  Evaluation evaluateNow(uint64_t global_step);

  const cluster::TrainSpec train_;
  const WorkerPlace place_;
  exchange::ExchangeClient& client_;
  const runtime::KernelTable& kernels_;
  runtime::Device& device_;
  const Clock& clock_;
  const cluster::BatchPlan plan_;
  const model::ModelGraph model_;  // of the largest batch
  const graph::Placement placement_;
  const TowerDevices devices_;
  const std::shared_ptr<DeviceVariables> kept_;  // null: the variables come from the client
  BatchPrograms programs_;
  const arena::ModelDeclaration declaration_;
  data::BatchReader reader_;
  data::BatchSource batches_;
  // Made in join(), as a client has no arenas before declare().
  std::unique_ptr<ParameterBinding> binding_;
  // Made in join(). Null: gradients are pushed once they are whole.
  std::unique_ptr<GradientStream> stream_;
  struct Evaluations {
    std::unique_ptr<Evaluator> evaluator;  // null: this worker has nothing to evaluate
    std::function<void(uint64_t)> before;
  };
  Evaluations evaluations_;
  std::map<int64_t, TrainingMetrics> metrics_;  // by batch size, on demand
  StepObserver* observer_ = nullptr;
  std::vector<std::span<float>> gradients_;  // of all variables, while they are clipped

  // State of run().
  ProgressCallback report_;
  StepCallback on_step_;
  const data::Batch* batch_ = nullptr;  // computed last
  uint64_t batch_number_ = 0;
  bool has_begun_ = false;                 // onFirst() was called in this run()
  std::vector<optimizer::LookUp> wanted_;  // by variable: look-ups of the batch rows_of_
  std::optional<uint64_t> rows_of_;        // the batch whose sparse rows were requested last
  TimePoint begin_{};                      // when the first parameters arrived
  DivergenceWatch divergence_;
  TrainingResult result_;
  ReportClock report_clock_;
  std::optional<ReportClock::Rates> rates_;  // of the last report
  uint64_t evaluated_step_ = 0;
  Duration evaluating_{0};
  StepClock step_clock_;
  SlowestWorker slowest_;
};

}  // namespace dtf::train
