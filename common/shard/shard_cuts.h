#pragma once

// Checkpoints of a shard, for the chief: the cut, its capture, and whether it is durable.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/arena/model_declaration.h"
#include "common/base/cut_position.h"
#include "common/base/ids.h"
#include "common/replication/cut.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_values.h"
#include "common/shard/worker_table.h"

namespace dtf::shard {

// What a shard captured at a cut, with the declared model.
struct CapturedShard {
  std::shared_ptr<const replication::Capture> capture;  // never null
  arena::ModelDeclaration declaration;
};

// The chief's incarnation is checked at each call.
// Owns: the note of the last durable capture.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: while a small shard is copied.
// Errors: kUnavailable: the caller is not the chief's live process, or it came too early.
class ShardCuts {
 public:
  ShardCuts(const ShardOptions& options, replication::OutwardCalls& calls, WorkerTable& workers,
            ShardValues& values);

  // See Coordinator.
  CutPosition position(Incarnation chief, bool hold);
  // `epoch`: of the positions that the target was chosen from; kUnavailable when the shard has left
  // it.
  void cutAt(Incarnation chief, uint64_t epoch, CutPosition target,
             replication::CutCallback callback);
  void releaseHold(Incarnation chief);
  // Returns the state that cutAt() captured at `position`. Its memory goes with the last user after
  // releaseCapture().
  // Errors: kUnavailable when another cut was captured, or none.
  CapturedShard captured(Incarnation chief, const CutPosition& position);
  void releaseCapture();
  // Notes that the capture of `version` is durable.
  void noteSaved(uint64_t version) { saved_version_ = version; }
  // Whether the newest parameters are in a checkpoint's file. Precondition: values.initialised().
  bool isSaved() const { return saved_version_ == values_.store().version(); }

 private:
  const TaskId host_;  // of the shard
  replication::OutwardCalls& calls_;
  WorkerTable& workers_;
  ShardValues& values_;
  std::optional<uint64_t> saved_version_;
};

// Throws unless `chief` is the chief's live process, and the model is declared. `what`: the chief's
// request, "a request to save".
void requireChief(WorkerTable& workers, const ShardValues& values, Incarnation chief,
                  std::string_view what);

}  // namespace dtf::shard
