#include "common/wire/rpc_checkpoint_client.h"

namespace dtf::wire {

RpcCheckpointClient::RpcCheckpointClient(RpcParameterClient& client, double disk_seconds)
    : control_(client.controlThread()) {
  control_.call(
      [&] { calls_ = std::make_unique<CheckpointCalls>(client.controlCalls(), disk_seconds); });
}

RpcCheckpointClient::~RpcCheckpointClient() {
  control_.call([this] { calls_ = nullptr; });
}

std::vector<checkpoint::HeldValues> RpcCheckpointClient::held() {
  return control_.call([this] { return calls_->open(); });
}

std::vector<CutPosition> RpcCheckpointClient::positions(bool hold) {
  return control_.call([&] { return calls_->positions(hold); });
}

void RpcCheckpointClient::releaseHold() {
  control_.call([this] { return calls_->releaseHold(); });
}

void RpcCheckpointClient::startCut(const CutPosition& position, uint64_t epoch) {
  control_.call([&] { return calls_->startCut(position, epoch); });
}

std::optional<uint64_t> RpcCheckpointClient::awaitCut() {
  return control_.call([this] { return calls_->awaitCut(); });
}

void RpcCheckpointClient::callOffCuts() {
  control_.post([this] { calls_->callOffCuts(); });
}

void RpcCheckpointClient::interruptCuts() {
  control_.post([this] { calls_->interruptCuts(); });
}

std::vector<checkpoint::SavedShard> RpcCheckpointClient::save(const std::string& folder,
                                                              const CutPosition& position) {
  return control_.call([&] { return calls_->save(folder, position); });
}

std::vector<checkpoint::KeptSnapshot> RpcCheckpointClient::snapshot(
    const checkpoint::SnapshotName& name, const CutPosition& position,
    const std::optional<checkpoint::SnapshotName>& keep) {
  return control_.call([&] { return calls_->snapshot(name, position, keep); });
}

void RpcCheckpointClient::forgetSnapshots() {
  control_.call([this] { return calls_->forgetSnapshots(); });
}

void RpcCheckpointClient::awaitReplicas(uint64_t epoch) {
  control_.call([&] { return calls_->awaitReplicas(epoch); });
}

void RpcCheckpointClient::refill(const std::vector<uint32_t>& ps, uint64_t epoch) {
  control_.call([&] { return calls_->refill(ps, epoch); });
}

void RpcCheckpointClient::restore(const checkpoint::GoingBack& target) {
  control_.call([&] { return calls_->restore(target); });
}

}  // namespace dtf::wire
