#pragma once

// Runs the parts of one step that this process has, each on its device, against a rendezvous.

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/ids.h"
#include "common/engine/device_queue.h"
#include "common/engine/part_program.h"
#include "common/engine/rendezvous.h"

namespace dtf::engine {

// One part of a step. Borrows all it names, for one call of runParts.
struct StepPart {
  PartProgram* program = nullptr;
  DeviceQueue* queue = nullptr;  // of the device that the program was compiled for
  PartInputs inputs;             // feeds and variables; arrivals are the executor's
};

struct StepId {
  uint64_t number = 0;  // never used before
  Incarnation process;  // who sends: this process
};

// Runs all pieces of all parts, each when what it waits for is there; a piece is handed to its
// device's thread, and nobody waits but the caller. A part alone with one piece that receives
// nothing runs in the calling thread.
//
// When a piece fails, nothing else begins: those that are running end, all others are given up, and
// the first error, the root cause, is thrown when all is quiet. The same when the rendezvous aborts
// the step. Afterwards the rendezvous has nothing of the step. Gives the number of kernels run.
//
// Blocks: until the step has ended. Errors: the root cause; kInternal for what isn't an Error.
uint64_t runParts(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous);

}  // namespace dtf::engine
