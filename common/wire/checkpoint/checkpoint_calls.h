#pragma once

// The calls of a CheckpointClient to all ps at once, as promises. The blocking RpcCheckpointClient
// posts them to the control loop; a simulation runs them on its own loop.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "common/wire/ps/rpc_calls.h"

namespace dtf::wire {

// The chief's calls for checkpoints.
// Owns: the ps's PsCheckpoint capabilities.
// Borrows: `calls` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises; see checkpoint::CheckpointClient.
class CheckpointCalls {
 public:
  // `disk_seconds`: the longest that a ps may take to write or read its shard.
  CheckpointCalls(ControlCalls& calls, double disk_seconds);

  // The first call after the model is declared, and after the restart of any ps. Returns the state
  // that each ps holds.
  kj::Promise<std::vector<checkpoint::PsState>> open();

  kj::Promise<std::vector<CutPosition>> positions(bool hold);
  kj::Promise<void> releaseHold();
  kj::Promise<void> startCut(const CutPosition& position, uint64_t epoch);
  kj::Promise<std::optional<uint64_t>> awaitCut();
  void callOffCuts();
  void interruptCuts();
  kj::Promise<std::vector<checkpoint::SavedShard>> save(const std::string& folder,
                                                        const CutPosition& position);
  kj::Promise<std::vector<checkpoint::KeptSnapshot>> snapshot(
      const checkpoint::CutName& name, const CutPosition& position,
      const std::optional<checkpoint::CutName>& keep);
  kj::Promise<void> forgetSnapshots();
  kj::Promise<void> awaitReplicas(uint64_t epoch);
  kj::Promise<void> refill(const std::vector<uint32_t>& ps, uint64_t epoch);
  kj::Promise<void> restore(const checkpoint::GoingBack& target);
  kj::Promise<std::vector<bool>> see(const std::string& file);

  // For shard_calls.h, which calls the same processes.
  kj::Promise<void> commitRestore(const checkpoint::GoingBack& target);
  schema::PsCheckpoint::Client& session(uint32_t ps_task);
  ControlCalls& control() { return calls_; }
  double diskSeconds() const { return disk_seconds_; }
  // Returns the error of an interruptCuts() since the last startCut() or forgetInterruption().
  const std::optional<Error>& interruption() const { return interruption_; }
  void forgetInterruption() { interruption_.reset(); }
  // Sets the callback of interruptCuts(); null removes it.
  void onInterrupted(std::function<void(const Error& why)> interrupted) {
    on_interrupted_ = std::move(interrupted);
  }

 private:
  kj::Promise<checkpoint::PsState> supervise(uint32_t i);
  template <class T>
  kj::Promise<T> guardCut(kj::Promise<T> promise);
  template <class T>
  kj::Promise<std::vector<T>> fromEvery(const std::string& doing, double seconds,
                                        const std::function<kj::Promise<T>(uint32_t)>& call);

  ControlCalls& calls_;
  const double disk_seconds_;
  std::vector<std::unique_ptr<schema::PsCheckpoint::Client>> ps_;
  // The cuts under way: for each ps its captured version; nullopt: the cut came too late.
  std::vector<kj::Promise<std::optional<uint64_t>>> cuts_;
  Abort cuts_called_off_;
  std::unique_ptr<Abort> cuts_interrupted_;  // of the cuts under way; null: none was started
  std::optional<Error> interruption_;
  std::function<void(const Error& why)> on_interrupted_;
};

}  // namespace dtf::wire
