#pragma once

// A part of a client's plan, compiled on a serving task.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/engine/executor.h"
#include "common/engine/registered_part.h"
#include "common/serving/served_task.h"
#include "common/wire/parts.capnp.h"

namespace dtf::serving {

// The compiled part and the data of its edges that steps need. Shared by the session, the steps
// that run it and the messages with its tensors.
// Owns: the compiled part. Borrows: `task`.
// Threads: immutable except `part`, which one step at a time runs; the last two members belong to
// the loop.
// Blocks: never. Errors: none.
struct ServedPart final : engine::Departures {
  struct Source {  // the sender of a received edge
    TaskId peer;
    Incarnation incarnation;
    uint64_t bytes = 0;
  };

  void send(uint64_t step, TaskId to, std::vector<engine::PartProgram::Send> tensors,
            Done done) override;

  const ServedTask* task = nullptr;
  uint64_t session = 0, plan = 0, digest = 0;
  ByteBudget::Share held;                     // for memory that its devices don't count
  std::shared_ptr<const void> device_memory;  // destroyed after `part`
  std::unique_ptr<engine::RegisteredPart> part;
  engine::Routes routes;
  std::map<uint32_t, Source> sources;
  std::map<TaskId, Incarnation> peers;
  uint64_t last_step = 0;
  bool is_running = false;
};

struct PartId {
  uint64_t session = 0, plan = 0, digest = 0;
};

// Decodes, checks and compiles a part.
// Threads: any. Blocks: while it computes, seconds for a large part.
// Errors: as GraphSession.registerPart.
std::shared_ptr<ServedPart> makeServedPart(const ServedTask& task, const PartId& id,
                                           schema::Part::Reader part);

}  // namespace dtf::serving
