#pragma once

// What a compiled step consists of. Internal: step_compiler.cc makes it, compiled_step.cc runs it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/compiled_step.h"
#include "common/runtime/lowering.h"

namespace dtf::runtime {

// Where a tensor is.
struct Location {
  enum class Kind { kInput, kParameter, kGradient, kPlanned } kind = Kind::kPlanned;
  size_t index = 0;              // of the binding, for what is bound
  std::byte* address = nullptr;  // kPlanned: intermediate tensors and constants
};

// A tensor that the caller binds.
struct Binding {
  std::string name;
  size_t bytes = 0;
  bool required = false;  // not empty, and some kernel reads or writes it or it is fetched
  const std::byte* bound = nullptr;  // written to only when it is a gradient's
  std::vector<size_t> reads;   // positions in StepBody::input_pointers to set when it is bound
  std::vector<size_t> writes;  // positions in StepBody::output_pointers
  std::optional<size_t> first_reader, last_writer;  // launches
  bool is_new = false;                              // a parameter: bound since the last run
  bool is_beside = false;                           // it moves with a segment
  DeviceMemory staged;        // its copy on a device without access to the host's memory
  std::byte* kept = nullptr;  // where the device keeps it; it is neither bound nor copied then

  const std::byte* onDevice() const { return kept != nullptr ? kept : staged.get(); }
};

// Some launches that follow one another, and what moves beside others (step_segments.h).
struct Segment {
  std::unique_ptr<Program> program;
  std::vector<size_t> uploads;    // parameters
  std::vector<size_t> downloads;  // gradients that always move beside others
  std::vector<size_t>
      made;  // all gradients that are final once it is done, of which a listener hears
  bool makes_fetches = false;  // all are there once it is done
};

struct Fetch {
  Location location;
  DType dtype = DType::kFloat32;
  size_t bytes = 0;
  std::vector<std::byte> host;  // on a device without access to the host's memory
};

// Owns and borrows as CompiledStep, whose body this is.
struct StepBody {
  Device* device = nullptr;  // none while it is only planned
  std::vector<Binding> inputs, parameters, gradients;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<const std::byte*>
      input_pointers;  // of all launches; fixed size, launches hold spans of it
  std::vector<std::byte*> output_pointers;
  std::vector<std::string> names;  // of the launches, which refer to them
  std::vector<Launch> launches;
  std::vector<Segment> segments;    // of all of them
  bool tells_early = false;         // segments say what they have made
  std::vector<size_t> told_at_end;  // all gradients that are written, where they don't
  std::vector<Fetch> fetches;
  DeviceMemory constants, arena;
  StepPlan plan;

  std::vector<Binding>& bindings(Location::Kind kind) {
    if (kind == Location::Kind::kInput) return inputs;
    return kind == Location::Kind::kParameter ? parameters : gradients;
  }
};

}  // namespace dtf::runtime
