#pragma once

// A part of a client's plan, compiled on a task that serves.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/engine/executor.h"
#include "common/engine/registered_part.h"
#include "common/wire/parts.capnp.h"
#include "daemons/served_task.h"

namespace dtf::daemons {

// With what steps need to know of its edges. Shared by the session, the steps that run it and the
// messages that carry its tensors.
// Owns: the compiled part. Borrows: `task`.
// Threads: immutable but for `part`, which one step at a time runs; the last two are the loop's.
// Blocks: never. Errors: none.
struct ServedPart final : engine::Departures {
  struct Source {  // of an edge that is received
    TaskId peer;
    Incarnation incarnation;
    uint64_t bytes = 0;
  };

  void send(uint64_t step, TaskId to, std::vector<engine::PartProgram::Send> tensors,
            Done done) override;

  const ServedTask* task = nullptr;
  uint64_t session = 0, plan = 0, digest = 0;
  ByteBudget::Share held;                     // besides the memory that its devices count
  std::shared_ptr<const void> device_memory;  // ends after `part`
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

// Decodes, checks and compiles.
// Any thread; blocks while it computes, seconds for a large part.
// Errors: those of GraphSession.registerPart.
std::shared_ptr<ServedPart> makeServedPart(const ServedTask& task, const PartId& id,
                                           schema::Part::Reader part);

}  // namespace dtf::daemons
