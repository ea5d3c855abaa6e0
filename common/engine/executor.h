#pragma once

// Runs the parts of one step in this process, each on its device, connected by a rendezvous.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/step_trace.h"
#include "common/engine/device_queue.h"
#include "common/engine/part_program.h"
#include "common/engine/rendezvous.h"

namespace dtf::engine {

// One part of a step. Borrows everything in it, until the step has ended.
struct StepPart {
  PartProgram* program = nullptr;
  DeviceQueue* queue = nullptr;  // of the program's device
  PartInputs inputs;             // feeds and variables; arrivals are the executor's
  // The trace of the part's task; null if the step is not traced. Shared with the callbacks of
  // sends.
  std::shared_ptr<trace::StepTrace> trace = nullptr;
};

struct StepId {
  uint64_t number = 0;  // never reused
  Incarnation process;  // the sender: this process
};

// Edges to other processes, fixed when the parts are registered. Value type.
struct Routes {
  std::map<uint32_t, Incarnation> sources;  // by received edge: its sender
  std::map<uint32_t, TaskId> destinations;  // by sent edge: its receiver
};

// Sends tensors to other processes.
// Threads: thread-safe; `done` is called once, in any thread, also within send().
// Blocks: never.
class Departures {
 public:
  // Called without an error when `to` has the tensors.
  using Done = std::function<void(std::optional<Error> failed)>;
  virtual ~Departures() = default;
  // `tensors` stay valid until the step has ended.
  virtual void send(uint64_t step, TaskId to, std::vector<PartProgram::Send> tensors,
                    Done done) = 0;
};

// The connections of a step's parts. Borrows everything in it, until the step has ended.
struct StepPorts {
  Rendezvous* rendezvous = nullptr;
  const Routes* routes = nullptr;    // null: every edge is within this process
  Departures* departures = nullptr;  // required if routes have destinations
};

// The number of kernels run, or the root cause.
using StepEnd = std::variant<uint64_t, Error>;
using OnStepEnd = std::function<void(StepEnd end)>;

// Starts all pieces of all parts, each when its inputs are ready. A piece runs in its device's
// thread, and no thread waits. Acts on queues wait without a thread, and continue in their
// device's.
// //
// When a piece fails, no other begins: running ones end, all others are dropped, including those
// that wait at a queue. The first error, the root cause, is reported when all is quiet. The same
// happens if the rendezvous aborts the step, or if sending fails. Tensors already handed over may
// still be in transit.
// //
// `on_end` is called once, in any thread, also within this call. The step is not used afterwards;
// the caller then ends it at the rendezvous, which frees its tensors.
// //
// Returns a function that aborts the step with a root cause: in any thread, at any time, without
// effect after the end of the step.
using AbortStep = std::function<void(const Error& cause)>;
AbortStep startParts(StepId step, std::span<StepPart> parts, const StepPorts& ports,
                     OnStepEnd on_end);

}  // namespace dtf::engine
