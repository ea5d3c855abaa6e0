#include "common/wire/checkpoint/rpc_checkpoint_client.h"

#include "common/base/check.h"

namespace dtf::wire {

RpcCheckpointClient::RpcCheckpointClient(RpcExchangeClient& client, double disk_seconds)
    : control_(client.controlThread()) {
  DTF_CHECK(disk_seconds > 0);
  control_.call([&] {
    calls_ = std::make_unique<CheckpointCalls>(client.controlCalls(), disk_seconds);
    shards_ = std::make_unique<ShardCalls>(*calls_);
    staying_calls_ = std::make_unique<StayingCalls>(*calls_);
  });
}

RpcCheckpointClient::~RpcCheckpointClient() {
  control_.call([this] {
    staying_calls_ = nullptr;
    shards_ = nullptr;
    calls_ = nullptr;
  });
}

std::vector<checkpoint::PsState> RpcCheckpointClient::held() {
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
    const checkpoint::CutName& name, const CutPosition& position,
    const std::optional<checkpoint::CutName>& keep) {
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

std::vector<bool> RpcCheckpointClient::see(const std::string& file) {
  return control_.call([&] { return calls_->see(file); });
}

// ---- shards that travel

std::vector<checkpoint::SavedShard> RpcCheckpointClient::Transfer::stage(
    const CutPosition& position) {
  return client_.control_.call([&] { return client_.shards_->stage(position); });
}

std::string RpcCheckpointClient::Transfer::fetch(uint32_t ps_task, uint64_t offset,
                                                 uint64_t file_bytes) {
  return client_.control_.call([&] { return client_.shards_->fetch(ps_task, offset, file_bytes); });
}

void RpcCheckpointClient::Transfer::release(bool saved) {
  client_.control_.call([&] { return client_.shards_->release(saved); });
}

void RpcCheckpointClient::Transfer::expect(const checkpoint::CutHead& head) {
  client_.control_.call([&] { return client_.shards_->expect(head); });
}

void RpcCheckpointClient::Transfer::bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
                                          std::span<const float> values) {
  client_.control_.call([&] { return client_.shards_->bring(ps_task, place, values); });
}

void RpcCheckpointClient::Transfer::commit(const checkpoint::GoingBack& target) {
  client_.control_.call([&] { return client_.shards_->commit(target); });
}

// ---- shards that stay

std::vector<checkpoint::SavedShard> RpcCheckpointClient::Staying::save(
    const std::string& name, const CutPosition& position) {
  return client_.control_.call([&] { return client_.staying_calls_->save(name, position); });
}

std::vector<std::vector<checkpoint::FoundShard>> RpcCheckpointClient::Staying::find(
    const std::string& name, const std::vector<std::vector<checkpoint::ShardFile>>& wanted) {
  return client_.control_.call([&] { return client_.staying_calls_->find(name, wanted); });
}

std::string RpcCheckpointClient::Staying::fetch(uint32_t ps_task,
                                                const checkpoint::StayingPiece& piece) {
  return client_.control_.call([&] { return client_.staying_calls_->fetch(ps_task, piece); });
}

void RpcCheckpointClient::Staying::drop(const std::string& name) {
  client_.control_.call([&] { return client_.staying_calls_->drop(name); });
}

}  // namespace dtf::wire
