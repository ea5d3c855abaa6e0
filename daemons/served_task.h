#pragma once

// What the sessions of a task that serves have in common, and what the task gives to each.

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

namespace dtf::daemons {

// Beyond it: an error that says so.
struct ServeLimits {
  size_t sessions = 16;
  size_t connections = 1024;            // of clients, other tasks, and who asks for the status
  size_t plans = 1024;                  // of a session
  size_t variables = 16384;             // of the task
  size_t queues = 1024;                 // likewise
  size_t calls = 256;                   // of a session, under way at once
  size_t registrations = 4;             // of these
  size_t sinks = 256;                   // of a session: that other tasks hold
  uint64_t cause_bytes = 4 << 20;       // of an abort's cause; the rest of it is cut
  uint64_t bytes = uint64_t{64} << 30;  // of all that sessions hold: see ServedTask::budget
  uint64_t chunk_bytes = wire::kChunkBytesMax;  // of a blob of a tensor that is sent
  engine::Rendezvous::Limits rendezvous{};      // of a session
};

class ServedSession;

// Borrows all that it names, but the budget.
struct ServedTask {
  TaskId self;
  Incarnation incarnation;
  net::Loop& loop;
  engine::DeviceThreads& devices;
  engine::DeviceQueue& registrar;  // a thread that compiles
  engine::DeviceQueue& copier;     // one that copies values
  engine::VariableStore& variables;
  engine::QueueStore& queues;
  std::function<std::optional<cluster::Address>(TaskId)> address_of;  // nullopt: no such task
  ServeLimits limits;
  // Counts programs and their memory, values of variables, elements of queues and parts for as long
  // as somebody holds them, and messages of 256 KiB and more from their header on, for as long as a
  // tensor of them is held.
  std::shared_ptr<ByteBudget> budget;
  std::shared_ptr<const void>
      device_memory;  // what programs need of their devices to end: they keep it
  // Runs `use` on the loop, with the session if there still is one, and frees that if it is closed
  // and quiet then. Any thread.
  std::function<void(uint64_t session, std::function<void(ServedSession&)> use)> post;
};

}  // namespace dtf::daemons
