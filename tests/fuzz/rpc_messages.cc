#include "tests/fuzz/rpc_messages.h"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <vector>

#include "common/wire/optimizer_codec.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::fuzz {

AnyMessage::AnyMessage(std::string_view bytes)
    : words_(kj::heapArray<capnp::word>((bytes.size() + 7) / 8 + 1)), segment_{words_} {
  std::memset(words_.begin(), 0, words_.size() * sizeof(capnp::word));
  if (!bytes.empty()) std::memcpy(words_.begin(), bytes.data(), bytes.size());
  reader_ = kj::heap<capnp::SegmentArrayMessageReader>(kj::arrayPtr(segment_, 1));
}

void fillTask(Arguments& arguments, schema::Task::Builder task) {
  const uint8_t kind = arguments.byte();
  task.setJob(kind < 200 ? schema::JobKind::WORKER : static_cast<schema::JobKind>(kind % 4));
  task.setIndex(kind < 200 ? kind % (kWorkers + 1) : static_cast<uint32_t>(arguments.count()));
}

void fillHello(Arguments& arguments, uint32_t callee, bool from_ps, cluster::Durability durability,
               schema::Hello::Builder hello) {
  const uint8_t flaw = arguments.byte();
  hello.setJob(flaw == 1 ? arguments.text() : kj::StringPtr(kJob));
  fillTask(arguments, hello.initCaller());
  if (from_ps) {
    hello.getCaller().setJob(schema::JobKind::PS);
    hello.getCaller().setIndex(flaw == 2 ? callee : 1 - callee);
  }
  const schema::Task::Reader caller = hello.getCaller().asReader();
  if (caller.getJob() == schema::JobKind::WORKER && caller.getIndex() < kWorkers && flaw != 5) {
    const std::vector<cluster::Address> workers(kWorkers);  // none is listened at
    hello.setAddress(workers[caller.getIndex()].str());
    hello.setWorkers(wire::fingerprintOf(workers));
  }
  if (flaw != 6) hello.setDurability(durabilityOf(durability).str());
  hello.setIncarnation(flaw == 3 ? arguments.number<uint64_t>() : 1 + flaw % 2);
  if (flaw == 4) return fillTask(arguments, hello.initCallee());
  hello.initCallee().setJob(schema::JobKind::PS);
  hello.getCallee().setIndex(callee);
}

void fillModel(Arguments& arguments, uint32_t holder, bool on_both,
               schema::PsControl::DeclareParams::Builder params) {
  const uint8_t kind = arguments.byte();
  if (kind >= 200) {
    AnyMessage any(arguments.take(8 * size_t{arguments.byte()}));
    return params.setModel(any.root<schema::Model>());
  }
  auto model = params.initModel();
  auto variables = model.initVariables(on_both ? 2 : 1);
  auto variable = variables[0];
  variable.setName(kind == 1 ? arguments.text() : kj::StringPtr("v"));
  variable.setSparse(kind == 27 || kind == 28 || kind == 117);
  auto shape = variable.initShape(1);
  shape.set(0, static_cast<int64_t>(kind == 2 ? arguments.number<uint64_t>() : kElements));
  auto shards = model.initShards(kind == 3 ? arguments.byte() % 4 : 2);
  if (shards.size() > holder) {
    shards[holder].setElements(kind == 4 ? arguments.number<uint64_t>() : kElements);
    auto slice = shards[holder].initSlices(1)[0];
    slice.setVariable(kind == 5 ? arguments.number<uint32_t>() : 0);
    slice.setBegin(kind == 6 ? arguments.number<uint64_t>() : 0);
    slice.setCount(kind == 7 ? arguments.number<uint64_t>() : kElements);
    slice.setOffset(kind == 8 ? arguments.number<uint64_t>() : 0);
  }
  if (on_both) {
    variables[1].setName("w");
    variables[1].setSparse(variable.getSparse());
    variables[1].initShape(1).set(0, kElements);
    if (shards.size() == 2) {
      shards[1 - holder].setElements(kElements);
      auto slice = shards[1 - holder].initSlices(1)[0];
      slice.setVariable(1);
      slice.setCount(kElements);
    }
  }
  auto optimizer = model.initOptimizer();
  auto spec = cluster::defaultOptimizer(static_cast<cluster::OptimizerSpec::Kind>(1 + kind % 3));
  spec.learning_rate = kind == 10 ? arguments.number<double>() : 0.1;
  if (kind == 11) spec.beta1 = arguments.number<double>();
  if (kind == 16) spec.moving_average_decay = 0.5;
  wire::encodeOptimizer(spec, optimizer);
  if (kind == 9) optimizer.setKind(arguments.byte());
  if (kind == 12) optimizer.setSchedule(arguments.byte());
  auto replication = model.initReplication();
  replication.setTransferDtype(kind == 17      ? arguments.byte()
                               : kind % 4 == 3 ? 1 + kind / 4 % 3
                                               : 0);
  if (replication.getTransferDtype() == 3) replication.setTransferTopK(0.25);
  replication.setMode(kind == 13 ? arguments.byte() : 1 + kind / 100);
  if (replication.getMode() == 3) replication.setStaleness(kind % 4);
  const uint32_t replicas = kind < 100 ? 0 : kind == 14 ? arguments.number<uint32_t>() : kWorkers;
  replication.setReplicasToAggregate(kind >= 150 ? 1 : replicas);
  replication.setTotalNumReplicas(replicas);
  model.setSteps(kind == 15 ? arguments.number<uint64_t>() : 20);
}

void fillReplicaState(Arguments& arguments, uint64_t epoch, schema::ReplicaState::Builder state) {
  const uint8_t kind = arguments.byte();
  state.setEpoch(kind == 1 ? arguments.number<uint64_t>() : epoch);
  state.setOrigin(kind == 2 ? arguments.byte() : 1);
  state.setVersion(arguments.count());
  state.setApplies(kind == 3 ? arguments.number<uint64_t>() : state.getVersion());
  state.setBeta1Power(kind == 4 ? arguments.number<double>() : 0.5);
  state.setBeta2Power(kind == 5 ? arguments.number<double>() : 0.5);
  auto workers = state.initWorkers(kind == 6 ? arguments.byte() % 8 : kWorkers);
  for (auto worker : workers) {
    worker.setIncarnation(arguments.count());
    worker.setSteps(arguments.count());
    worker.setSets(arguments.count());
  }
}

void fillReplicaUpdate(Arguments& arguments, uint64_t epoch,
                       schema::PsReplica::UpdateParams::Builder update) {
  const uint8_t kind = arguments.byte();
  update.setEpoch(kind == 1 ? arguments.number<uint64_t>() : epoch);
  update.setVersion(arguments.count());
  update.setLoss(kind == 2 ? arguments.number<float>() : 1);
  for (auto push : update.initPushes(1 + kind % 4)) {
    push.setRank(static_cast<uint32_t>(arguments.count()));
    push.setIncarnation(1);
    push.setStep(arguments.count());
  }
}

void fillState(Arguments& arguments, schema::StepState::Builder state) {
  const uint8_t kind = arguments.byte();
  state.setOutcome(kind < 240 ? static_cast<schema::StepState::Outcome>(1 + kind % 3)
                              : static_cast<schema::StepState::Outcome>(arguments.byte()));
  state.setGlobalStep(arguments.count());
  state.setNextStep(arguments.count());
  state.setProgress(state.getNextStep());
  state.setNextBatch(static_cast<uint32_t>(arguments.count()));
  state.setDone(arguments.byte() % 8 == 7);
  state.setStaleness(arguments.count());
  state.setLoss(arguments.number<float>());
}

}  // namespace dtf::fuzz
