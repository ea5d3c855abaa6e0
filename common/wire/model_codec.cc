#include "common/wire/model_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/base/error.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"
#include "common/shard/declaration.h"
#include "common/wire/optimizer_codec.h"

namespace dtf::wire {

namespace {

// The schema's enum, whose zero means "never set".
schema::StepState::Outcome encodeOutcome(replication::Outcome outcome) {
  switch (outcome) {
    case replication::Outcome::kApplied:
      return schema::StepState::Outcome::APPLIED;
    case replication::Outcome::kQueued:
      return schema::StepState::Outcome::QUEUED;
    case replication::Outcome::kStale:
      return schema::StepState::Outcome::STALE;
    case replication::Outcome::kWentBack:
      return schema::StepState::Outcome::WENT_BACK;
  }
  return schema::StepState::Outcome::NONE;
}

// The largest number that fits stands for all above it.
uint32_t toMicroseconds(Duration time) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 0, std::numeric_limits<uint32_t>::max()));
}

// Returns nullopt for a phase of a later version.
std::optional<replication::Straggler> decodeStraggler(schema::StepState::Reader reader) {
  if (reader.getSlowWorker() == 0 || reader.getSlowPhase() >= replication::kPhaseNames.size())
    return std::nullopt;
  return replication::Straggler{reader.getSlowWorker() - 1,
                                replication::Phase{reader.getSlowPhase()},
                                std::chrono::microseconds(reader.getSlowMicros())};
}

std::string textOf(capnp::Text::Reader reader) {
  return {reader.begin(), reader.size()};
}

arena::VariableInfo decodeVariable(schema::Variable::Reader reader) {
  arena::VariableInfo variable;
  variable.name = textOf(reader.getName());
  if (variable.name.empty() || variable.name.size() > 1024)
    refuseModel("a variable's name has " + std::to_string(variable.name.size()) + " characters");
  const auto dims = reader.getShape();
  if (dims.size() > 16) refuseModel(variable.name + " has rank " + std::to_string(dims.size()));
  std::vector<int64_t> shape;
  for (const int64_t dim : dims) shape.push_back(dim);
  variable.shape = Shape(std::move(shape));
  if (reader.getMoves()) variable.momentum = reader.getMomentum();
  variable.is_sparse = reader.getSparse();
  return variable;
}

// `slices_left`: the rest of kSlicesMax, for this and the following shards.
arena::ShardLayout decodeShard(schema::Shard::Reader reader, uint32_t& slices_left) {
  arena::ShardLayout shard;
  shard.elements = reader.getElements();
  const auto slices = reader.getSlices();
  if (slices.size() > slices_left)
    refuseModel("more than " + std::to_string(kSlicesMax) +
                " slices of variables; partition less (placement.partition)");
  slices_left -= slices.size();
  for (const auto item : slices)
    shard.slices.push_back(
        {item.getVariable(), item.getBegin(), item.getCount(), item.getOffset()});
  return shard;
}

cluster::ReplicationSpec decodeReplication(schema::Replication::Reader reader) {
  cluster::ReplicationSpec replication;
  if (reader.getMode() < 1 || reader.getMode() > 3)
    refuseModel("replication mode " + std::to_string(reader.getMode()));
  replication.mode = static_cast<cluster::ReplicationSpec::Mode>(reader.getMode());
  replication.replicas_to_aggregate = reader.getReplicasToAggregate();
  replication.total_num_replicas = reader.getTotalNumReplicas();
  replication.overlap = reader.getOverlap();
  replication.staleness = reader.getStaleness();
  replication.transfer_dtype =
      static_cast<cluster::ReplicationSpec::TransferDtype>(reader.getTransferDtype());
  replication.transfer_top_k = reader.getTransferTopK();
  if (reader.getHostLeaders().size() > replication::kReplicasToAggregateMax)
    refuseModel("a topology of " + std::to_string(reader.getHostLeaders().size()) + " workers");
  for (const uint32_t leader : reader.getHostLeaders()) replication.host_leaders.push_back(leader);
  return replication;
}

std::vector<arena::Setting> decodeSettings(capnp::List<schema::Setting>::Reader reader) {
  if (reader.size() > kSettingsMax)
    refuseModel(std::to_string(reader.size()) + " settings; the bound is " +
                std::to_string(kSettingsMax));
  std::vector<arena::Setting> settings;
  for (const auto setting : reader) {
    if (setting.getName().size() > kSettingBytesMax || setting.getValue().size() > kSettingBytesMax)
      refuseModel("a setting of more than " + std::to_string(kSettingBytesMax) + " characters");
    settings.push_back({textOf(setting.getName()), textOf(setting.getValue())});
  }
  return settings;
}

}  // namespace

void encodeModel(const arena::ModelDeclaration& model, schema::Model::Builder builder) {
  const arena::ParameterLayout& layout = model.layout;
  auto variables = builder.initVariables(static_cast<uint32_t>(layout.variables.size()));
  for (uint32_t i = 0; i < variables.size(); ++i) {
    variables[i].setName(layout.variables[i].name);
    const std::vector<int64_t>& dims = layout.variables[i].shape.dims();
    auto shape = variables[i].initShape(static_cast<uint32_t>(dims.size()));
    for (uint32_t axis = 0; axis < shape.size(); ++axis) shape.set(axis, dims[axis]);
    variables[i].setMoves(layout.variables[i].momentum.has_value());
    variables[i].setMomentum(layout.variables[i].momentum.value_or(0));
    variables[i].setSparse(layout.variables[i].is_sparse);
  }
  auto shards = builder.initShards(static_cast<uint32_t>(layout.shards.size()));
  for (uint32_t i = 0; i < shards.size(); ++i) {
    shards[i].setElements(layout.shards[i].elements);
    auto slices = shards[i].initSlices(static_cast<uint32_t>(layout.shards[i].slices.size()));
    for (uint32_t j = 0; j < slices.size(); ++j) {
      const arena::Slice& slice = layout.shards[i].slices[j];
      slices[j].setVariable(slice.variable);
      slices[j].setBegin(slice.begin);
      slices[j].setCount(slice.count);
      slices[j].setOffset(slice.offset);
    }
  }
  encodeOptimizer(model.optimizer, builder.initOptimizer());
  auto replication = builder.initReplication();
  replication.setMode(static_cast<uint8_t>(model.replication.mode));
  replication.setReplicasToAggregate(model.replication.replicas_to_aggregate);
  replication.setTotalNumReplicas(model.replication.total_num_replicas);
  replication.setOverlap(model.replication.overlap);
  replication.setStaleness(model.replication.staleness);
  replication.setTransferDtype(static_cast<uint8_t>(model.replication.transfer_dtype));
  replication.setTransferTopK(model.replication.transfer_top_k);
  const std::vector<uint32_t>& leaders = model.replication.host_leaders;
  if (!leaders.empty()) {
    auto topology = replication.initHostLeaders(static_cast<uint32_t>(leaders.size()));
    for (uint32_t rank = 0; rank < topology.size(); ++rank) topology.set(rank, leaders[rank]);
  }
  builder.setSteps(model.steps);
  builder.setEpochExamples(model.epochs.examples);
  builder.setEpochBatchSize(model.epochs.batch_size);
  auto settings = builder.initSettings(static_cast<uint32_t>(model.settings.size()));
  for (uint32_t i = 0; i < settings.size(); ++i) {
    settings[i].setName(model.settings[i].name);
    settings[i].setValue(model.settings[i].value);
  }
}

arena::ModelDeclaration decodeModel(schema::Model::Reader reader) {
  arena::ModelDeclaration model;
  if (reader.getVariables().size() > kVariablesMax)
    refuseModel(std::to_string(reader.getVariables().size()) + " variables; the bound is " +
                std::to_string(kVariablesMax));
  if (reader.getShards().size() > kPsTasksMax)
    refuseModel(std::to_string(reader.getShards().size()) + " ps tasks; the bound is " +
                std::to_string(kPsTasksMax));
  for (const auto variable : reader.getVariables())
    model.layout.variables.push_back(decodeVariable(variable));
  uint32_t slices_left = kSlicesMax;
  for (const auto shard : reader.getShards())
    model.layout.shards.push_back(decodeShard(shard, slices_left));
  shard::validateLayout(model.layout);
  model.optimizer = decodeOptimizer(reader.getOptimizer());
  model.replication = decodeReplication(reader.getReplication());
  model.steps = reader.getSteps();
  model.settings = decodeSettings(reader.getSettings());
  model.epochs = {reader.getEpochExamples(), reader.getEpochBatchSize()};
  return model;
}

void encodeStepState(const replication::StepState& state, schema::StepState::Builder builder) {
  builder.setOutcome(encodeOutcome(state.outcome));
  builder.setGlobalStep(state.global_step);
  builder.setNextStep(state.next_step);
  builder.setNextBatch(state.next_batch);
  builder.setDone(state.done);
  builder.setStaleness(state.staleness);
  builder.setLoss(state.loss);
  builder.setEpoch(state.epoch);
  builder.setProgress(state.progress);
  builder.setWaited(toMicroseconds(state.waited));
  if (!state.straggler) return;
  builder.setSlowWorker(1 + state.straggler->rank);
  builder.setSlowPhase(static_cast<uint8_t>(state.straggler->phase));
  builder.setSlowMicros(toMicroseconds(state.straggler->excess));
}

replication::StepState decodeStepState(schema::StepState::Reader reader) {
  replication::StepState state;
  switch (reader.getOutcome()) {
    case schema::StepState::Outcome::APPLIED:
      state.outcome = replication::Outcome::kApplied;
      break;
    case schema::StepState::Outcome::QUEUED:
      state.outcome = replication::Outcome::kQueued;
      break;
    case schema::StepState::Outcome::STALE:
      state.outcome = replication::Outcome::kStale;
      break;
    case schema::StepState::Outcome::WENT_BACK:
      state.outcome = replication::Outcome::kWentBack;
      break;
    default:
      throw Error(ErrorCode::kInternal, "a ps answered with an unknown outcome");
  }
  state.global_step = reader.getGlobalStep();
  state.next_step = reader.getNextStep();
  state.next_batch = reader.getNextBatch();
  state.done = reader.getDone();
  state.staleness = reader.getStaleness();
  state.loss = reader.getLoss();
  state.progress = reader.getProgress();
  state.epoch = reader.getEpoch();
  if (state.epoch != 0 && !replication::validEpoch(state.epoch))
    throw Error(
        ErrorCode::kBadData,
        fmt::format("a ps answered with parameters of the invalid epoch {:#x}", state.epoch));
  state.waited = std::chrono::microseconds(reader.getWaited());
  state.straggler = decodeStraggler(reader);
  return state;
}

void encodePhaseTimes(const replication::PhaseTimes& times, schema::PhaseTimes::Builder builder) {
  using replication::Phase;
  builder.setData(toMicroseconds(times[Phase::kData]));
  builder.setCompute(toMicroseconds(times[Phase::kCompute]));
  builder.setSend(toMicroseconds(times[Phase::kSend]));
  builder.setWait(toMicroseconds(times[Phase::kWait]));
  builder.setEvaluate(toMicroseconds(times[Phase::kEvaluate]));
}

replication::PhaseTimes decodePhaseTimes(schema::PhaseTimes::Reader reader) {
  using replication::Phase;
  using std::chrono::microseconds;
  replication::PhaseTimes times;
  times[Phase::kData] = microseconds(reader.getData());
  times[Phase::kCompute] = microseconds(reader.getCompute());
  times[Phase::kSend] = microseconds(reader.getSend());
  times[Phase::kWait] = microseconds(reader.getWait());
  times[Phase::kEvaluate] = microseconds(reader.getEvaluate());
  return times;
}

void encodeTask(TaskId task, schema::Task::Builder builder) {
  builder.setJob(task.job == JobKind::kPs ? schema::JobKind::PS : schema::JobKind::WORKER);
  builder.setIndex(task.index);
}

TaskId decodeTask(schema::Task::Reader reader) {
  return {reader.getJob() == schema::JobKind::PS ? JobKind::kPs : JobKind::kWorker,
          reader.getIndex()};
}

}  // namespace dtf::wire
