#include "common/train/training_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/optimizer/gradient_math.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"
#include "common/train/epochs.h"
#include "common/train/initial_values.h"
#include "common/train/job_settings.h"
#include "common/train/model_data.h"

namespace dtf::train {

namespace {

constexpr Duration kWaitingEvery = std::chrono::seconds(3);

arena::ModelDeclaration declare(const cluster::TrainSpec& train, arena::ParameterLayout layout,
                                uint32_t workers, const data::Dataset& dataset,
                                const runtime::StepPlan& plan) {
  arena::ModelDeclaration declaration = declarationOf(train, std::move(layout), workers);
  declaration.settings = jobSettings(train, dataset, plan);
  if (train.epochs > 0)
    declaration.epochs = {static_cast<uint64_t>(dataset.size()),
                          static_cast<uint64_t>(train.data.batch_size)};
  return declaration;
}

// Keeps the variables on the GPUs of this worker if nothing else reads and updates them. Returns
// null if they come from the client at each step.
std::shared_ptr<DeviceVariables> keepVariables(const cluster::TrainSpec& train,
                                               const WorkerPlace& place,
                                               const cluster::BatchPlan& plan,
                                               const arena::ParameterLayout& layout,
                                               const TowerDevices& devices) {
  const auto is_host = [](const ComputeDevice& on) { return on.device->usesHostMemory(); };
  if (!place.one_process || std::ranges::all_of(devices.each, is_host)) return nullptr;
  std::string names;
  for (const ComputeDevice& device : devices.each)
    names += (names.empty() ? "" : ",") + std::string(device.device->name());
  const uint64_t gradients =
      replication::gradientsPerStep(declarationOf(train, layout, place.workers).replication);
  const auto towers = static_cast<int64_t>(devices.each.size());
  const std::vector<int64_t> counts = plan.counts();
  std::string why = DeviceVariables::refusal(layout, train.optimizer, devices.each);
  if (std::ranges::any_of(counts, [towers](int64_t count) { return count % towers != 0; }))
    why = fmt::format("the last batch of an epoch has {} examples", counts.back());
  if (gradients > 1) why = fmt::format("an update is of {} gradients", gradients);
  if (why.empty()) {
    log::info("event=variables kept_on={}", names);
    return std::make_shared<DeviceVariables>(layout, train.optimizer, devices.each);
  }
  log::info("event=variables kept_on=host devices={} because=\"{}\"", names, why);
  return nullptr;
}

// Drawn data lack classes only if they are few.
void logEmptyClasses(const cluster::TrainSpec& train, const data::Dataset& dataset) {
  using Format = cluster::DatasetSpec::Format;
  const Format format = train.data.train.format;
  if (format == Format::kDigits || format == Format::kSynthetic) return;
  const std::vector<int64_t> empty = classesWithoutExamples(train.model, dataset);
  if (!empty.empty())
    log::warning("event=classes_without_examples classes={} first={}", empty.size(), empty[0]);
}

// Returns kYes if reading a batch takes longer than waking another thread. A CPU has no thread to
// spare for data in memory; the host of a GPU waits anyway.
data::ReadAhead readAhead(const cluster::TrainSpec& train, const data::Dataset& dataset,
                          const model::ModelGraph& model, const TowerDevices& devices) {
  constexpr int64_t kBytesWorthAThread = 1 << 20;
  int64_t bytes = 0;
  for (const data::Part& part : dataset.parts())
    bytes +=
        model.graph.spec(model.features).shape.dim(0) * static_cast<int64_t>(part.spec().bytes());
  const bool is_large = bytes >= kBytesWorthAThread;
  const bool waits = !devices.each.front().device->usesHostMemory();
  const bool ahead = train.data.augment.any() || dataset.onDisk() || (waits && is_large);
  return ahead ? data::ReadAhead::kYes : data::ReadAhead::kNo;
}

// Returns whether a gradient is final once the step has computed it, and leaves this process.
bool isFinalOnceComputed(const cluster::TrainSpec& train, const WorkerPlace& place,
                         const TowerDevices& towers) {
  return !place.one_process && towers.each.size() == 1 &&
         train.optimizer.clip_by_global_norm == 0 && !train.replication.overlap;
}

// Returns the devices for training, in the job's precision. Evaluations are in float32.
TowerDevices devicesFor(const cluster::TrainSpec& train, const WorkerPlace& place,
                        TowerDevices towers, const ComputeDevice& only) {
  if (towers.each.empty()) towers.each.push_back(only);
  for (ComputeDevice& device : towers.each) {
    device.precision = train.precision;
    device.told_bytes = isFinalOnceComputed(train, place, towers) ? kStreamBucketBytes : 0;
  }
  return towers;
}

}  // namespace

TrainingLoop::TrainingLoop(const cluster::TrainSpec& train, const WorkerPlace& place,
                           std::shared_ptr<const data::Dataset> dataset,
                           exchange::ExchangeClient& client, const runtime::KernelTable& kernels,
                           runtime::Device& device, const Clock& clock, TowerDevices towers)
    : train_(train),
      place_(place),
      client_(client),
      kernels_(kernels),
      device_(device),
      clock_(clock),
      plan_(planOf(train, dataset->size(), place.workers)),
      model_(
          graphOf(train, plan_.counts().front(), plan_.counts().front() != train.data.batch_size)),
      placement_(placeModel(model_.graph, placementOf(train), place.ps_tasks, place.rank,
                            place.one_process)),
      devices_(devicesFor(train, place, std::move(towers), {&device, &kernels})),
      kept_(keepVariables(train, place, plan_, layoutOf(model_, placement_), devices_)),
      programs_(train, place, devices_, kept_.get(),
                countsOf(train, plan_, place.rank, place.workers)),
      declaration_(
          declare(train, layoutOf(model_, placement_), place.workers, *dataset, programs_.plan())),
      reader_(checkedDataset(train.model, std::move(dataset)), plan_, train.data.seed,
              train.data.augment),
      batches_(reader_, plan_.counts().front(),
               readAhead(train, reader_.dataset(), model_, devices_)),
      report_clock_(train.report_every_steps, examplesPerStep()),
      step_clock_(clock),
      slowest_(place.workers) {
  DTF_CHECK(place.rank < place.workers && place.ps_tasks > 0);
  DTF_CHECK(!place.one_process || !declaration_.replication.overlap);
  if (place.rank == 0) logEmptyClasses(train, reader_.dataset());
}

TrainingLoop::~TrainingLoop() = default;

// With backup workers a step uses the gradients of only some of its batches.
double TrainingLoop::examplesPerStep() const {
  const double gradients = replication::gradientsPerStep(declaration_.replication);
  if (train_.epochs == 0) return gradients * static_cast<double>(train_.data.batch_size);
  if (!replication::hasBackupWorkers(declaration_.replication)) return plan_.examplesPerGroup();
  return plan_.examplesPerGroup() * gradients /
         replication::batchesOfOrderStep(declaration_.replication, place_.workers);
}

std::string TrainingLoop::placementTable() const {
  std::string table = graph::placementTable(placement_, place_.hosts);
  for (size_t i = 0; i < devices_.each.size() && kept_ != nullptr; ++i)
    table += fmt::format("{}{}", i == 0 ? "all stay on " : ", ", devices_.each[i].device->name());
  if (kept_ != nullptr) table += ", updated there\n";
  if (!cluster::needsWholeVariables(train_.optimizer.kind)) return table;
  return table + fmt::format("no variable is split: {} needs the norms of whole variables\n",
                             cluster::optimizerName(train_.optimizer.kind));
}

void TrainingLoop::join(const Restore& restore, const WaitingCallback& on_waiting) {
  DTF_CHECK(binding_ == nullptr);
  client_.declare(declaration_, kept_);
  if (place_.rank == kChief.index && restore) {
    // Doesn't wait for the ps: all hold values by then, and a ps lost later would be waited for in
    // vain.
    while (const std::optional<uint64_t> epoch = restore()) initialise(*epoch, on_waiting);
  } else {
    if (place_.rank == kChief.index) initialise(replication::kFirstEpoch, on_waiting);
    client_.job().waitInitialised();
  }
  binding_ = std::make_unique<ParameterBinding>(declaration_.layout, client_, kept_.get());
  if (isFinalOnceComputed(train_, place_, devices_))
    stream_ = std::make_unique<GradientStream>(declaration_.layout, client_, *binding_);
}

// Returns null if the gradient is to be pushed only when it is whole.
GradientListener* TrainingLoop::listenerFor(const replication::StepState& due) {
  const uint64_t batch = batchOf(due);
  const bool is_weighed = plan_.weight(batch) != 1 || rowWeight(plan_, batch) != 1;
  if (stream_ == nullptr || is_weighed || !client_.traits().streams) return nullptr;
  stream_->expect(due);
  return stream_.get();
}

// Draws the initial values and sends them. Drawing takes minutes for a model that barely fits into
// memory.
void TrainingLoop::initialise(uint64_t epoch, const WaitingCallback& on_waiting) {
  const TimePoint begin = clock_.now();
  TimePoint said = begin;
  const auto progress = [&](const std::string& variable, double share) {
    const TimePoint now = clock_.now();
    if (now - said < kWaitingEvery) return;
    said = now;
    const std::string what = fmt::format("initialising {}: {:.0f} %", variable, 100 * share);
    log::info("event=waiting for=\"{}\" waited_s={:.0f}", what, toSeconds(now - begin));
    if (on_waiting) on_waiting(what, now - begin);
  };
  const std::vector<Buffer> arenas =
      initialArenas(model_, declaration_.layout, train_.data.seed, progress);
  DTF_CHECK(arenas.size() == place_.ps_tasks);
  std::vector<std::span<const float>> shards;
  for (const Buffer& arena : arenas)
    shards.emplace_back(arena.as<float>(), arena.bytes() / sizeof(float));
  client_.job().initialise(shards, epoch);
  DTF_FAILPOINT("training.after_initialise");
}

TrainingResult TrainingLoop::run(const ProgressCallback& report, const StepCallback& on_step) {
  DTF_CHECK(binding_ != nullptr);
  report_ = report;
  on_step_ = on_step;
  const replication::StepState state = client_.traits().overlaps
                                           ? trainOverlapped(client_, *this, train_.steps)
                                           : trainSteps(client_, *this);
  result_.global_step = state.global_step;
  result_.epoch = state.epoch;
  result_.stopped = state.global_step < train_.steps;
  result_.seconds = toSeconds(clock_.now() - begin_ - evaluating_);
  if (result_.batches > 0) result_.final_loss = state.loss;
  result_.slowest = slowest_.most();
  result_.examples_per_step = examplesPerStep();
  return result_;
}

// Requests no rows, as only the first answer names the first batch.
void TrainingLoop::beforeFirst() {
  rows_of_.reset();
  has_begun_ = false;
  if (client_.traits().brings_rows) binding_->wantNoRows();
}

bool TrainingLoop::hasRowsOf(const replication::StepState& due) {
  return !client_.traits().brings_rows || rows_of_ == batchOf(due);
}

void TrainingLoop::wantRowsOf(const replication::StepState& due) {
  wantRowsOfBatch(batchOf(due));
  step_clock_.enter(replication::Phase::kSend);
}

void TrainingLoop::wantRowsOfBatch(uint64_t number) {
  const StepClock::Section reading(step_clock_, replication::Phase::kData);
  const data::Batch& batch = batches_.peek(number);
  wanted_.resize(model_.variables.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const model::ModelVariable& variable = model_.variables[i];
    if (!variable.indices) continue;
    const Tensor& ids = batch.parts.at(variable.indices_input);
    const int64_t of_example = ids.shape().elements() / ids.shape().dim(0);
    wanted_[i] = {ids.dtype(), ids.data(), static_cast<size_t>(batch.count * of_example), nullptr};
  }
  binding_->wantRows(wanted_);
  rows_of_ = number;
}

// After onFirst() these parameters are newer than the last answer's.
void TrainingLoop::onRows(const replication::StepState& state) {
  step_clock_.enter(replication::Phase::kCompute);
  binding_->gatherValues();
  if (!has_begun_) return;
  if (observer_ != nullptr) observer_->onParameters(state, *binding_, false);
  if (state.done) afterStep(state, clock_.now());
}

void TrainingLoop::onFirst(const replication::StepState& state) {
  has_begun_ = true;
  if (!rows_of_) binding_->gatherValues();  // else onRows() did
  const TimePoint now = clock_.now();
  step_clock_.start();
  report_clock_.start(state.global_step, now);
  evaluated_step_ = state.global_step;
  if (begin_ == TimePoint{}) {
    begin_ = now;
    result_.first_step_number = state.global_step;
  }
  if (observer_ != nullptr) observer_->onParameters(state, *binding_, true);
}

void TrainingLoop::onDue(const replication::StepState& state) {
  if (on_step_) on_step_(state);
}

void TrainingLoop::beforePush(const replication::StepState& due) {
  if (!hasBegunExchange()) binding_->scatterGradients();
  if (observer_ != nullptr && batch_->count > 0)
    observer_->onGradients(*binding_, {*batch_, [this] { return measureBatch(); }});
  if (stream_ != nullptr) stream_->complete();
  if (client_.traits().brings_rows) wantRowsOfBatch(batchAfter(due));
  if (place_.one_process) return;  // nothing is sent
  step_clock_.enter(replication::Phase::kSend);
  DTF_FAILPOINT("training.in_send");
}

void TrainingLoop::onAnswer(const replication::StepState& due,
                            const replication::StepState& state) {
  step_clock_.enter(replication::Phase::kCompute);
  step_clock_.noteWaited(state.waited);
  result_.examples += plan_.range(batchOf(due)).count;
  if (state.outcome == replication::Outcome::kQueued) return;
  const trace::Span span("gather parameters");
  binding_->gatherValues();
  if (observer_ != nullptr) observer_->onParameters(state, *binding_, false);
}

// Restarts the rates, so that lost steps don't count.
void TrainingLoop::onWentBack(const replication::StepState& state) {
  log::warning("event=went_back step={} epoch={}", state.global_step,
               replication::epochNumber(state.epoch));
  binding_->gatherValues();
  step_clock_.start();
  report_clock_.start(state.global_step, clock_.now());
  evaluated_step_ = state.global_step;
  if (observer_ != nullptr) observer_->onParameters(state, *binding_, true);
}

void TrainingLoop::afterBatch(const replication::StepState& state) {
  ++result_.batches;
  if (state.outcome == replication::Outcome::kStale) ++result_.batches_stale;
  const bool ends_step = state.outcome != replication::Outcome::kQueued;
  const TimePoint now = step_clock_.endBatch(ends_step);
  if (result_.batches == 1) result_.first_step = now;
  if (ends_step) {
    client_.reportTimes(step_clock_.last());
    slowest_.note(state.straggler);
  }
  afterStep(state, now);
}

// Returns the batch after `due`, unless the ps ask for another.
uint64_t TrainingLoop::batchAfter(const replication::StepState& due) const {
  replication::StepState next = due;
  const bool last =
      due.next_batch + 1 == replication::batchesPerStep(declaration_.replication, place_.rank);
  next.next_step = last ? due.next_step + 1 : due.next_step;
  next.next_batch = last ? 0 : due.next_batch + 1;
  return batchOf(next);
}

uint64_t TrainingLoop::batchOf(const replication::StepState& due) const {
  const uint32_t of_step =
      replication::batchesOfOrderStep(declaration_.replication, place_.workers);
  return cluster::globalBatch(due.next_step, due.next_batch, place_.rank, place_.workers, of_step);
}

// Throws if the loss has diverged: its gradient would spoil the parameters of all workers.
float TrainingLoop::compute(const replication::StepState& due) {
  const StepClock::Section computing(step_clock_, replication::Phase::kCompute);
  DTF_FAILPOINT("training.in_step");
  if (stream_ != nullptr) stream_->expectNothing();
  const uint32_t batches = replication::batchesPerStep(declaration_.replication, place_.rank);
  if (due.next_batch >= batches)
    throw Error(ErrorCode::kBadData,
                fmt::format("the ps want batch {}, counted from 0, of a step in which worker/{} "
                            "has {}",
                            due.next_batch, place_.rank, batches));
  const uint64_t batch = batchOf(due);
  {
    const trace::Span span("read batch");
    const StepClock::Section reading(step_clock_, replication::Phase::kData);
    DTF_FAILPOINT("training.in_read");
    batch_ = &batches_.read(batch, batchAfter(due));
    batch_number_ = batch;
  }
  if (batch_->count == 0) {  // an empty share of a step: others need its push
    binding_->setNoGradients();
    return 0;
  }
  const trace::Span span("compute");
  // Seed and number determine the dropout masks, which so follow from the step, too.
  const float loss = programs_.of(batch_->count)
                         .compute({*batch_, train_.data.seed, batch}, *binding_, listenerFor(due));
  if (divergence_.diverged(loss)) throw diverged(due.global_step, loss, due.next_step);
  finishGradients(due);
  return loss;
}

Evaluation TrainingLoop::measureBatch() {
  DTF_CHECK(batch_ != nullptr);
  const auto towers = static_cast<uint32_t>(devices_.each.size());
  const auto of_size =
      metrics_.try_emplace(batch_->count, train_.model, batch_->count, towers, kernels_, device_);
  return of_size.first->second.measure(*batch_, binding_->values(), train_.data.seed,
                                       batch_number_);
}

Error TrainingLoop::trainingFailed(const std::string& what) const {
  return {ErrorCode::kTrainingFailed,
          fmt::format("{}: training has diverged; try a learning_rate smaller than {}, or look for "
                      "values in the data that should not be there",
                      what, train_.optimizer.learning_rate)};
}

// Reports the step and the loss first, for the summary of the job.
Error TrainingLoop::diverged(uint64_t global_step, double loss, uint64_t step) {
  const ReportClock::Rates rates = rates_.value_or(ReportClock::Rates{});
  if (report_) report_(progressAt(global_step, loss, rates));
  const std::string name = TaskId{JobKind::kWorker, place_.rank}.name();
  if (!std::isfinite(loss))
    return trainingFailed(fmt::format("the loss is {} on {} at step {}", loss, name, step));
  return trainingFailed(fmt::format("the loss is {:.4g} on {} at step {}, it began with {:.4g}",
                                    loss, name, step, divergence_.start().value()));
}

Progress TrainingLoop::progressAt(uint64_t global_step, double loss,
                                  const ReportClock::Rates& rates) const {
  Progress progress;
  progress.global_step = global_step;
  progress.loss = loss;
  progress.examples_per_second = rates.examples_per_second;
  progress.steps_per_second = rates.steps_per_second;
  progress.steps = train_.steps;
  progress.batches = result_.batches;
  progress.batches_stale = result_.batches_stale;
  progress.examples = result_.examples;
  progress.step_times = step_clock_.batches();
  progress.phases_total = step_clock_.total();
  return progress;
}

void TrainingLoop::afterStep(const replication::StepState& state, TimePoint now) {
  const bool evaluates = evaluationDue(state);
  // An evaluation before the first rates needs them.
  const bool wanted = state.done || (evaluates && !rates_);
  const auto rates = report_clock_.due(state.global_step, wanted, now);
  if (rates) rates_ = rates;
  if (!rates && result_.batches == 1) report_clock_.measureFrom(state.global_step, now);
  const auto evaluation = evaluates ? std::optional(evaluateNow(state.global_step)) : std::nullopt;
  if ((!rates && !evaluates) || !report_) return;
  Progress progress = progressAt(state.global_step, state.loss, *rates_);
  progress.evaluation = evaluation;
  progress.phases = step_clock_.takeMean();
  progress.straggler = state.straggler;
  report_(progress);
}

}  // namespace dtf::train
