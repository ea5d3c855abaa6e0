#pragma once

// The contents of a compiled step. Internal: step_compiler.cc fills it, compiled_step.cc runs it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/compiled_step.h"
#include "common/runtime/lowering.h"

namespace dtf::runtime {

// The place of a tensor.
struct Location {
  enum class Kind { kInput, kParameter, kGradient, kPlanned } kind = Kind::kPlanned;
  size_t index = 0;              // of the binding, for bound tensors
  std::byte* address = nullptr;  // kPlanned: intermediate tensors and constants
};

// A tensor that the caller binds.
struct Binding {
  std::string name;
  size_t bytes = 0;
  bool required = false;             // not empty, and read, written or fetched
  const std::byte* bound = nullptr;  // written to only if it is a gradient
  std::vector<size_t> reads;   // positions in StepBody::input_pointers to set when it is bound
  std::vector<size_t> writes;  // positions in StepBody::output_pointers
  std::optional<size_t> first_reader, last_writer;  // launches
  bool is_new = false;                              // for parameters: bound since the last run
  bool is_beside = false;                           // moves with a segment
  DeviceMemory staged;  // its copy on a device without access to the host's memory
  // the device's own memory of a kept variable, which is neither bound nor copied
  std::byte* kept = nullptr;

  const std::byte* onDevice() const { return kept != nullptr ? kept : staged.get(); }
};

// Consecutive launches, and the transfers beside them (step_segments.h).
struct Segment {
  std::unique_ptr<Program> program;
  std::vector<size_t> uploads;    // parameters
  std::vector<size_t> downloads;  // gradients that move beside the computation
  std::vector<size_t> made;       // all gradients that are final after it, for the listener
  bool makes_fetches = false;     // all fetches are ready after it
};

struct Fetch {
  Location location;
  DType dtype = DType::kFloat32;
  size_t bytes = 0;
  std::vector<std::byte> host;  // on a device without access to the host's memory
};

// Owns and borrows as CompiledStep, which it implements.
struct StepBody {
  Device* device = nullptr;  // null while only planned
  std::vector<Binding> inputs, parameters, gradients;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<const std::byte*>
      input_pointers;  // of all launches; fixed size, launches hold spans of it
  std::vector<std::byte*> output_pointers;
  std::vector<std::string> names;  // names of the launches, which refer to them
  std::vector<Launch> launches;
  std::vector<Segment> segments;    // of all of them
  bool tells_early = false;         // segments report their gradients
  std::vector<size_t> told_at_end;  // otherwise: all gradients that are written
  std::vector<Fetch> fetches;
  DeviceMemory constants, arena;
  StepPlan plan;

  std::vector<Binding>& bindings(Location::Kind kind) {
    if (kind == Location::Kind::kInput) return inputs;
    return kind == Location::Kind::kParameter ? parameters : gradients;
  }
};

}  // namespace dtf::runtime
