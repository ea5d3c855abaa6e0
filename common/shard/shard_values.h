#pragma once

// The declared model of a shard, its values, and the coordinator that updates them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/checkpoint/held_values.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/coordinator.h"
#include "common/shard/shard_backup.h"
#include "common/shard/shard_options.h"
#include "common/shard/worker_table.h"

namespace dtf::shard {

// The values of an epoch as they begin.
struct Beginning : checkpoint::HeldValues {
  bool has_replica = false;  // the backup is known to hold them
};

//   adopt -> (the store is filled) -> begin -> leave -> (filled again) -> begin
//
// Between adopt() and begin() it holds no values: nothing was lost that a worker was told of.
// Owns: the store, the coordinator.
// Borrows: everything given to the constructor (must outlive this; `peers` may be null).
// Threads: loop-thread only.
// Blocks: while a store is made.
// Errors: kBadConfig: there is no memory for the model.
class ShardValues {
 public:
  ShardValues(const ShardOptions& options, const Clock& clock, optimizer::UpdateRunner& runner,
              replication::OutwardCalls& calls, replication::SyncPeers* peers, ShardBackup& backup,
              const WorkerTable& workers);

  // See Shard::keepOn().
  void keepOn(std::shared_ptr<optimizer::DeviceArrays> device);

  // Errors: kBadConfig for a declaration that is not sane, or needs more memory than the host has.
  void validate(const arena::ModelDeclaration& declaration) const;
  // Makes an empty store, and its coordinator, in place of the ones before. All or nothing: a shard
  // that could not be made is not declared. Precondition: epoch() is 0.
  void adopt(const arena::ModelDeclaration& declaration);
  // Begins the epoch of the values that the store was filled with.
  void begin(const Beginning& beginning);
  // Drops the values, and everything computed from them: queued, held or granted. Returns the calls
  // that waited. Precondition: initialised().
  std::vector<replication::Coordinator::Stranded> leave();

  const std::optional<arena::ModelDeclaration>& declaration() const { return declaration_; }
  bool isDeclared() const { return declaration_.has_value(); }
  // Elements of the arena; 0 before adopt().
  uint64_t elements() const;
  bool initialised() const { return store_ && store_->initialised(); }
  // Returns the values as they are now.
  checkpoint::HeldValues held() const;
  uint64_t epoch() const { return held_.epoch; }  // 0: it holds none
  // Precondition of both: isDeclared().
  optimizer::ParameterStore& store() const;
  replication::Coordinator& coordinator() const;

  // Ends the job after the steps under way, also a job that nobody has declared yet.
  void requestStop();

  // Returns why `what`, "a gradient", can't be taken yet; nullopt: it can.
  std::optional<Error> notReadyFor(std::string_view what) const;
  Error notDeclared(std::string_view what) const;
  Error noMemory(const arena::ModelDeclaration& declaration) const;
  // Returns the variables without values, for a message: "; without values: dense/kernel".
  std::string emptyText() const;

 private:
  std::unique_ptr<optimizer::ParameterStore> makeStore(
      const arena::ModelDeclaration& declaration) const;
  uint64_t arenaBytes(const arena::ModelDeclaration& declaration) const;
  Duration stepPatience() const;
  void recallMembers();

  const ShardOptions& options_;
  const Clock& clock_;
  optimizer::UpdateRunner& runner_;
  replication::OutwardCalls& calls_;
  replication::SyncPeers* const peers_;
  ShardBackup& backup_;
  const WorkerTable& workers_;
  std::shared_ptr<optimizer::DeviceArrays> device_;  // null: the arrays are here
  std::optional<arena::ModelDeclaration> declaration_;
  checkpoint::HeldValues held_;  // as they began
  std::unique_ptr<optimizer::ParameterStore> store_;
  std::unique_ptr<replication::Coordinator> coordinator_;
  bool stop_requested_ = false;
};

// Returns the error of an epoch, in a request for `whose`, that can't exist; nullopt: it can.
std::optional<Error> badEpoch(TaskId host, uint64_t epoch, std::string_view whose);
// Throws badEpoch().
void requireEpoch(TaskId host, uint64_t epoch, std::string_view whose);

}  // namespace dtf::shard
