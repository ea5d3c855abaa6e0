#pragma once

// Common state of the sessions of a serving task, and the limits for each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/byte_budget.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/engine/local_tasks.h"
#include "common/engine/queue_store.h"
#include "common/engine/rendezvous.h"
#include "common/engine/variable_store.h"
#include "common/net/loop.h"
#include "common/wire/arena_codec.h"

namespace dtf::serving {

// Calls beyond a limit fail with an error that names it.
struct ServeLimits {
  size_t sessions = cluster::kSessionsMaxDefault;
  size_t connections = 4096;                    // see setSessionsMax(); and status queries
  size_t plans = 1024;                          // per session
  size_t variables = 16384;                     // per task
  size_t queues = 1024;                         // per task
  size_t calls = 256;                           // per session, concurrently
  size_t registrations = 4;                     // registrations among these calls
  size_t sinks = 256;                           // per session: held by other tasks
  uint64_t cause_bytes = 4 << 20;               // of an abort's cause; longer ones are cut
  uint64_t bytes = uint64_t{64} << 30;          // of all sessions' data: see ServedTask::budget
  uint64_t chunk_bytes = wire::kChunkBytesMax;  // of a blob of a sent tensor
  engine::Rendezvous::Limits rendezvous{};      // per session
};

class ServedSession;

// Borrows: all members except the budget.
struct ServedTask {
  TaskId self;
  Incarnation incarnation;
  net::Loop& loop;
  engine::DeviceThreads& devices;
  engine::DeviceQueue& registrar;  // thread that compiles
  engine::DeviceQueue& copier;     // thread that copies values
  engine::VariableStore& variables;
  engine::QueueStore& queues;
  std::function<std::optional<cluster::Address>(TaskId)> address_of;  // nullopt: no such task
  ServeLimits limits;
  // Counts programs and their memory, values of variables, elements of queues and parts as long as
  // they are held; and messages of 256 KiB and more, from their header on, as long as one of their
  // tensors is held.
  std::shared_ptr<ByteBudget> budget;
  std::shared_ptr<const void>
      device_memory;  // the devices' memory that programs need until they end
  // Runs `use` on the loop, with the session if there still is one, and frees that if it is closed
  // and quiet then. Any thread.
  std::function<void(uint64_t session, std::function<void(ServedSession&)> use)> post;
};

}  // namespace dtf::serving
