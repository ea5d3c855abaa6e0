#pragma once

// Runs the parts of one step that this process has, each on its device, against a rendezvous.

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

// One part of a step. Borrows all it names, until the step has ended.
struct StepPart {
  PartProgram* program = nullptr;
  DeviceQueue* queue = nullptr;  // of the device that the program was compiled for
  PartInputs inputs;             // feeds and variables; arrivals are the executor's
  // Of the part's task; null: nobody wants to see the step. Shared with the callbacks of sends.
  std::shared_ptr<trace::StepTrace> trace = nullptr;
};

struct StepId {
  uint64_t number = 0;  // never used before
  Incarnation process;  // who sends: this process
};

// Which edges cross to other processes: fixed when the parts are registered. Value type.
struct Routes {
  std::map<uint32_t, Incarnation> sources;  // by edge that is received: who sends it
  std::map<uint32_t, TaskId> destinations;  // by edge that is sent: who receives it
};

// Where tensors go that leave the process.
// Threads: thread-safe; `done` is called once, in any thread, also within send().
// Blocks: never.
class Departures {
 public:
  // Without an error: `to` has them.
  using Done = std::function<void(std::optional<Error> failed)>;
  virtual ~Departures() = default;
  // `tensors` stay until the step has ended.
  virtual void send(uint64_t step, TaskId to, std::vector<PartProgram::Send> tensors,
                    Done done) = 0;
};

// Where the tensors of a step come from and go to. Borrows all it names, until the step has ended.
struct StepPorts {
  Rendezvous* rendezvous = nullptr;
  const Routes* routes = nullptr;    // null: every edge is between parts of this process
  Departures* departures = nullptr;  // where routes have destinations
};

// The number of kernels run, or the root cause.
using StepEnd = std::variant<uint64_t, Error>;
using OnStepEnd = std::function<void(StepEnd end)>;

// Starts all pieces of all parts, each when what it waits for is there; a piece is handed to its
// device's thread, and nobody waits. What acts on a queue waits there without a thread, and goes on
// in its device's.
//
// When a piece fails, nothing else begins: those that are running end, all others are given up,
// also those that wait at a queue, and the first error, the root cause, is told when all is quiet.
// The same when the rendezvous aborts the step, or something can't be sent. What leaves in the
// meantime may still be on its way.
//
// `on_end` is called once, in any thread, also within this; then nothing of the step is used any
// more, and whoever ends the step at the rendezvous frees what it has there.
//
// Gives what ends the step from outside, for a cause that is its root cause then: in any thread, at
// any time, to no effect when the step has ended.
using AbortStep = std::function<void(const Error& cause)>;
AbortStep startParts(StepId step, std::span<StepPart> parts, const StepPorts& ports,
                     OnStepEnd on_end);

}  // namespace dtf::engine
