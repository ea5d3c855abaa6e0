#pragma once

// CheckpointClient over RPC, on the control connections of the chief's exchange client.

#include <memory>
#include <vector>

#include "common/wire/checkpoint/checkpoint_calls.h"
#include "common/wire/checkpoint/shard_calls.h"
#include "common/wire/checkpoint/staying_calls.h"
#include "common/wire/ps/rpc_exchange_client.h"

namespace dtf::wire {

// See checkpoint::CheckpointClient. To be constructed after the model is declared.
// Owns: the calls (checkpoint_calls.h).
// Borrows: `client` (must outlive this).
class RpcCheckpointClient final : public checkpoint::CheckpointClient {
 public:
  // `disk_seconds`: the longest that a ps may take to write or read its shard.
  RpcCheckpointClient(RpcExchangeClient& client, double disk_seconds);
  ~RpcCheckpointClient() override;

  std::vector<checkpoint::PsState> held() override;
  std::vector<CutPosition> positions(bool hold) override;
  void releaseHold() override;
  void startCut(const CutPosition& position, uint64_t epoch) override;
  std::optional<uint64_t> awaitCut() override;
  void callOffCuts() override;
  void interruptCuts() override;
  std::vector<checkpoint::SavedShard> save(const std::string& folder,
                                           const CutPosition& position) override;
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName& name, const CutPosition& position,
      const std::optional<checkpoint::CutName>& keep) override;
  void forgetSnapshots() override;
  void awaitReplicas(uint64_t epoch) override;
  void refill(const std::vector<uint32_t>& ps, uint64_t epoch) override;
  void restore(const checkpoint::GoingBack& target) override;
  std::vector<bool> see(const std::string& file) override;
  checkpoint::ShardTransfer& transfer() override { return transfer_; }
  checkpoint::StayingShards& staying() override { return staying_; }

 private:
  class Transfer final : public checkpoint::ShardTransfer {
   public:
    explicit Transfer(RpcCheckpointClient& client) : client_(client) {}
    std::vector<checkpoint::SavedShard> stage(const CutPosition& position) override;
    std::string fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) override;
    void release(bool saved) override;
    void expect(const checkpoint::CutHead& head) override;
    void bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
               std::span<const float> values) override;
    void commit(const checkpoint::GoingBack& target) override;

   private:
    RpcCheckpointClient& client_;
  };

  class Staying final : public checkpoint::StayingShards {
   public:
    explicit Staying(RpcCheckpointClient& client) : client_(client) {}
    std::vector<checkpoint::SavedShard> save(const std::string& name,
                                             const CutPosition& position) override;
    std::vector<std::vector<checkpoint::FoundShard>> find(
        const std::string& name,
        const std::vector<std::vector<checkpoint::ShardFile>>& wanted) override;
    std::string fetch(uint32_t ps_task, const checkpoint::StayingPiece& piece) override;
    void drop(const std::string& name) override;

   private:
    RpcCheckpointClient& client_;
  };

  net::IoThread& control_;
  std::unique_ptr<CheckpointCalls> calls_;       // lives on the control loop
  std::unique_ptr<ShardCalls> shards_;           // likewise
  std::unique_ptr<StayingCalls> staying_calls_;  // likewise
  Transfer transfer_{*this};
  Staying staying_{*this};
};

}  // namespace dtf::wire
