#include "common/wire/replica_codec.h"

#include "common/base/error.h"
#include "common/replication/epoch.h"
#include "common/wire/gradient_codec.h"

namespace dtf::wire {

void encodeReplicaState(const replication::ReplicaState& state,
                        schema::ReplicaState::Builder builder) {
  builder.setEpoch(state.epoch);
  builder.setOrigin(static_cast<uint8_t>(state.origin));
  builder.setOriginEpoch(state.origin_cut.epoch);
  builder.setOriginStep(state.origin_cut.step);
  builder.setVersion(state.step);
  builder.setApplies(state.clock.applies);
  builder.setBeta1Power(state.clock.beta1_power);
  builder.setBeta2Power(state.clock.beta2_power);
  builder.setLoss(state.memory.loss);
  auto workers = builder.initWorkers(static_cast<uint32_t>(state.memory.workers.size()));
  for (uint32_t rank = 0; rank < workers.size(); ++rank) {
    const replication::PushMemory::Worker& worker = state.memory.workers[rank];
    workers[rank].setIncarnation(worker.incarnation.value);
    workers[rank].setSteps(worker.steps);
    workers[rank].setSets(worker.sets);
    workers[rank].setLoss(worker.loss);
    workers[rank].setProgress(worker.progress);
  }
}

replication::ReplicaState decodeReplicaState(schema::ReplicaState::Reader reader) {
  replication::ReplicaState state;
  state.epoch = reader.getEpoch();
  state.origin = static_cast<checkpoint::EpochOrigin>(reader.getOrigin());
  if (!replication::validEpoch(state.epoch) ||
      state.origin < checkpoint::EpochOrigin::kInitialValues ||
      state.origin > checkpoint::EpochOrigin::kCheckpoint)
    throw Error(ErrorCode::kBadData, "a replica came with an invalid epoch or origin");
  state.origin_cut = {reader.getOriginEpoch(), reader.getOriginStep()};
  state.step = reader.getVersion();
  state.clock = {reader.getApplies(), reader.getBeta1Power(), reader.getBeta2Power()};
  constexpr uint64_t kAppliesMax = uint64_t{1} << 62;
  if (state.clock.applies > kAppliesMax)
    throw Error(ErrorCode::kBadData, "a replica came with an impossible number of updates");
  state.memory.loss = reader.getLoss();
  for (const auto worker : reader.getWorkers())
    state.memory.workers.push_back({Incarnation{worker.getIncarnation()}, worker.getSteps(),
                                    worker.getSets(), worker.getLoss(), worker.getProgress()});
  return state;
}

void encodeReplicaUpdate(const replication::ReplicaUpdate& update,
                         schema::PsReplica::UpdateParams::Builder builder) {
  builder.setEpoch(update.epoch);
  builder.setVersion(update.version);
  builder.setLoss(update.note.loss);
  if (const size_t counts = update.gradient.row_counts.size(); counts > 0)
    encodeRowCounts(update.gradient, builder.initRows(static_cast<uint32_t>(counts)));
  auto pushes = builder.initPushes(static_cast<uint32_t>(update.note.pushes.size()));
  for (uint32_t i = 0; i < pushes.size(); ++i) {
    pushes[i].setRank(update.note.pushes[i].rank);
    pushes[i].setIncarnation(update.note.pushes[i].incarnation.value);
    pushes[i].setStep(update.note.pushes[i].step);
    pushes[i].setProgress(update.note.pushes[i].progress);
  }
}

replication::ReplicaUpdate decodeReplicaUpdate(schema::PsReplica::UpdateParams::Reader reader) {
  replication::ReplicaUpdate update;
  update.epoch = reader.getEpoch();
  update.version = reader.getVersion();
  update.note.loss = reader.getLoss();
  for (const auto push : reader.getPushes())
    update.note.pushes.push_back(
        {push.getRank(), Incarnation{push.getIncarnation()}, push.getStep(), push.getProgress()});
  return update;
}

}  // namespace dtf::wire
