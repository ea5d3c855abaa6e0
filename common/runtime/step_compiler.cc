// compile(): lowers and fuses the graph, places every tensor, and prepares the launches.

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "common/base/check.h"
#include "common/runtime/fusion.h"
#include "common/runtime/gradient_order.h"
#include "common/runtime/inlined_functions.h"
#include "common/runtime/memory_plan.h"
#include "common/runtime/mixed_precision.h"
#include "common/runtime/segment_programs.h"
#include "common/runtime/step_body.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using Kind = Location::Kind;

// Every tensor gets at least one aligned unit, so that even an empty one has an address.
size_t allocationOf(const graph::TensorSpec& spec) {
  return std::max<size_t>(spec.bytes(), 1);
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Borrows: all constructor arguments, for one compilation. Owns its results until take().
class StepCompiler {
 public:
  // Needs no device.
  StepCompiler(LoweredStep step, DeviceType type, const KernelTable& kernels);
  const StepPlan& plan() const { return body_->plan; }
  std::unique_ptr<StepBody> take(Device& device, const KeptVariables& kept,
                                 const TransferOptions& transfers);

 private:
  void makeSlots();
  void directGradients();
  void makeKernels(DeviceType type, const KernelTable& kernels);
  void markLastUses();
  void planOutputs(size_t index);
  std::optional<Output> overwritable(size_t index, size_t output) const;
  void placeAll();
  void fillConstants();
  void makeLaunches();
  void makeFetches();
  void bindKept();
  std::optional<size_t> lastOfFetches() const;
  void describe();

  Location locate(const Output& tensor) const;
  Binding& bindingOf(const Location& location) {
    return body_->bindings(location.kind)[location.index];
  }

  LoweredStep step_;
  std::unique_ptr<StepBody> body_ = std::make_unique<StepBody>();
  std::map<Output, Location> bound_;  // tensors in memory bound by the caller
  std::map<Output, int> last_use_;    // index of the last operation that reads it
  std::map<Output, size_t> buffers_;  // intermediate tensor -> index into lifetimes_
  std::vector<Lifetime> lifetimes_;
  std::vector<size_t> workspaces_;  // by operation, index into lifetimes_ or kNone
  MemoryPlan memory_;
  std::vector<size_t> reader_,
      writer_;  // launches, by position in input_pointers and output_pointers
  std::map<Output, std::byte*> placed_;  // addresses of constants and intermediate tensors
};

StepCompiler::StepCompiler(LoweredStep step, DeviceType type, const KernelTable& kernels)
    : step_(std::move(step)) {
  makeSlots();
  directGradients();
  makeKernels(type, kernels);
  markLastUses();
  for (size_t i = 0; i < step_.operations.size(); ++i) planOutputs(i);
  memory_ = planMemory(lifetimes_);
  describe();
}

// A step need not use a kept variable: not every variable is read, or trained.
void markKept(std::vector<Binding>& bindings, const std::string& name, float* memory) {
  for (Binding& binding : bindings)
    if (binding.name == name) binding.kept = reinterpret_cast<std::byte*>(memory);
}

std::unique_ptr<StepBody> StepCompiler::take(Device& device, const KeptVariables& kept,
                                             const TransferOptions& transfers) {
  body_->device = &device;
  for (const auto& [name, variable] : kept) {
    markKept(body_->parameters, name, variable.value);
    markKept(body_->gradients, name, variable.gradient);
  }
  placeAll();
  fillConstants();
  makeLaunches();
  makeFetches();
  bindKept();
  makeSegments(*body_, transfers, lastOfFetches());
  return std::move(body_);
}

void StepCompiler::makeSlots() {
  const auto make = [this](const std::vector<BoundTensor>& tensors, Kind kind) {
    for (const BoundTensor& tensor : tensors) {
      Binding binding;
      binding.name = tensor.name;
      binding.bytes = tensor.spec.bytes();
      std::vector<Binding>& bindings = body_->bindings(kind);
      // directGradients() decides whether a gradient is a tensor of its own.
      if (kind != Kind::kGradient) bound_[tensor.tensor] = {kind, bindings.size()};
      bindings.push_back(std::move(binding));
    }
  };
  make(step_.inputs, Kind::kInput);
  make(step_.parameters, Kind::kParameter);
  make(step_.gradients, Kind::kGradient);
}

// Lets the operation that produces a gradient write to the bound memory. If it can't (the gradient
// is a constant, an input, or shared by two variables), a copy at the end does.
void StepCompiler::directGradients() {
  for (size_t i = 0; i < step_.gradients.size(); ++i) {
    const BoundTensor& gradient = step_.gradients[i];
    const Location location{Kind::kGradient, i};
    if (!step_.constants.contains(gradient.tensor) &&
        bound_.try_emplace(gradient.tensor, location).second) {
      continue;
    }
    // No node of the graph has this index.
    const Output copied{gradient.tensor.node, -1 - static_cast<int32_t>(i)};
    bound_[copied] = location;
    step_.operations.push_back({gradient.name,
                                "Identity",
                                {},
                                {gradient.tensor},
                                {gradient.spec},
                                {copied},
                                {gradient.spec}});
  }
}

void StepCompiler::makeKernels(DeviceType type, const KernelTable& kernels) {
  for (const Operation& operation : step_.operations) {
    body_->kernels.push_back(kernels.make(operation, type));
  }
}

void StepCompiler::markLastUses() {
  for (size_t i = 0; i < step_.operations.size(); ++i) {
    for (const Output& input : step_.operations[i].inputs) last_use_[input] = static_cast<int>(i);
  }
  for (const BoundTensor& fetch : step_.fetches) {
    last_use_[fetch.tensor] = static_cast<int>(step_.operations.size());
  }
}

// Returns the intermediate tensor that this operation reads last and may overwrite with `output`.
std::optional<Output> StepCompiler::overwritable(size_t index, size_t output) const {
  const Operation& operation = step_.operations[index];
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const Output& input = operation.inputs[i];
    const auto buffer = buffers_.find(input);
    if (buffer == buffers_.end() || last_use_.at(input) != static_cast<int>(index)) continue;
    // Still alive under another name, or already taken by an earlier output of this operation.
    if (lifetimes_[buffer->second].last != static_cast<int>(index)) continue;
    const bool once = std::count(operation.inputs.begin(), operation.inputs.end(), input) == 1;
    const bool same_size =
        operation.input_specs[i].bytes() == operation.output_specs[output].bytes();
    const bool taken =
        std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](const Output& other) {
          const auto at = buffers_.find(other);
          return at != buffers_.end() && at->second == buffer->second;
        });
    if (once && same_size && !taken &&
        body_->kernels[index]->canOverwrite(static_cast<int>(output), static_cast<int>(i))) {
      return input;
    }
  }
  return std::nullopt;
}

void StepCompiler::planOutputs(size_t index) {
  const Operation& operation = step_.operations[index];
  const auto now = static_cast<int>(index);
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    const Output& output = operation.outputs[i];
    if (bound_.contains(output)) continue;
    const auto use = last_use_.find(output);
    const int last = use == last_use_.end() ? now : use->second;
    const size_t bytes = allocationOf(operation.output_specs[i]);
    if (const auto input = overwritable(index, i)) {
      const size_t buffer = buffers_.at(*input);
      buffers_[output] = buffer;
      lifetimes_[buffer].last = std::max(last, now);
    } else {
      buffers_[output] = lifetimes_.size();
      lifetimes_.push_back({bytes, now, last});
    }
  }
  const size_t workspace = body_->kernels[index]->workspaceBytes();
  workspaces_.push_back(workspace == 0 ? kNone : lifetimes_.size());
  if (workspace != 0) lifetimes_.push_back({workspace, now, now});
}

void StepCompiler::placeAll() {
  for (const std::unique_ptr<Kernel>& kernel : body_->kernels) kernel->prepare(*body_->device);
  body_->arena = body_->device->allocate(memory_.bytes);
  for (const auto& [tensor, buffer] : buffers_) {
    placed_[tensor] = body_->arena.get() + memory_.offsets[buffer];
  }
  DTF_CHECK(workspaces_.size() == step_.operations.size());
  body_->names.reserve(workspaces_.size());
  for (size_t i = 0; i < workspaces_.size(); ++i) {
    const Operation& operation = step_.operations[i];
    body_->names.push_back(operation.op + " " + operation.name);
    std::byte* const workspace =
        workspaces_[i] == kNone ? nullptr : body_->arena.get() + memory_.offsets[workspaces_[i]];
    Launch launch;
    launch.kernel = body_->kernels[i].get();
    launch.arguments.workspace = workspace;
    launch.name = &body_->names.back();
    body_->launches.push_back(launch);
  }
}

void fill(const Constant& constant, std::byte* to) {
  if (constant.elements != nullptr) {
    std::copy_n(constant.elements->data(), constant.elements->bytes(), to);
    return;
  }
  const auto n = static_cast<size_t>(constant.spec.shape.elements());
  switch (constant.spec.dtype) {
    case DType::kFloat32:
      std::fill_n(reinterpret_cast<float*>(to), n, static_cast<float>(constant.value));
      break;
    case DType::kUInt8:
      std::fill_n(reinterpret_cast<uint8_t*>(to), n, static_cast<uint8_t>(constant.value));
      break;
    case DType::kInt32:
      std::fill_n(reinterpret_cast<int32_t*>(to), n, static_cast<int32_t>(constant.value));
      break;
    case DType::kInt64:
      std::fill_n(reinterpret_cast<int64_t*>(to), n, static_cast<int64_t>(constant.value));
      break;
    case DType::kBFloat16:
      DTF_CHECK_MSG(false, "a constant of bfloat16");
  }
}

// Allocates only constants that are read, each on its own cache line.
void StepCompiler::fillConstants() {
  std::map<Output, size_t> offsets;
  size_t bytes = 0;
  for (const auto& [tensor, constant] : step_.constants) {
    if (!last_use_.contains(tensor)) continue;
    offsets[tensor] = bytes;
    bytes += (allocationOf(constant.spec) + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
  }
  body_->constants = body_->device->allocate(bytes);
  // On the host's memory no copy is needed.
  std::vector<std::byte> host(body_->device->usesHostMemory() ? 0 : bytes);
  std::byte* const made = body_->device->usesHostMemory() ? body_->constants.get() : host.data();
  for (const auto& [tensor, offset] : offsets) {
    fill(step_.constants.at(tensor), made + offset);
    placed_[tensor] = body_->constants.get() + offset;
  }
  if (body_->device->usesHostMemory()) return;
  body_->device->copyToDevice(body_->constants.get(), host.data(), bytes);
  body_->device->synchronise();
}

Location StepCompiler::locate(const Output& tensor) const {
  const auto bound = bound_.find(tensor);
  if (bound != bound_.end()) return bound->second;
  const auto placed = placed_.find(tensor);
  DTF_CHECK(placed != placed_.end());
  return {Kind::kPlanned, 0, placed->second};
}

void StepCompiler::makeLaunches() {
  StepBody& s = *body_;
  for (size_t launch = 0; launch < step_.operations.size(); ++launch) {
    const Operation& operation = step_.operations[launch];
    reader_.insert(reader_.end(), operation.inputs.size(), launch);
    writer_.insert(writer_.end(), operation.outputs.size(), launch);
    for (const Output& input : operation.inputs) {
      const Location from = locate(input);
      s.input_pointers.push_back(from.address);
      if (from.kind != Kind::kPlanned) bindingOf(from).reads.push_back(s.input_pointers.size() - 1);
    }
    for (const Output& output : operation.outputs) {
      const Location to = locate(output);
      s.output_pointers.push_back(to.address);
      if (to.kind != Kind::kPlanned) bindingOf(to).writes.push_back(s.output_pointers.size() - 1);
    }
  }
  // The vectors have their final size: spans into them stay valid.
  size_t next_input = 0, next_output = 0;
  for (size_t i = 0; i < s.launches.size(); ++i) {
    const Operation& operation = step_.operations[i];
    s.launches[i].arguments.inputs = {s.input_pointers.data() + next_input,
                                      operation.inputs.size()};
    s.launches[i].arguments.outputs = {s.output_pointers.data() + next_output,
                                       operation.outputs.size()};
    next_input += operation.inputs.size();
    next_output += operation.outputs.size();
  }
  for (std::vector<Binding>* bindings : {&s.inputs, &s.parameters, &s.gradients}) {
    for (Binding& binding : *bindings) {
      binding.required = binding.bytes > 0 && (!binding.reads.empty() || !binding.writes.empty());
      if (!binding.reads.empty()) binding.first_reader = reader_[binding.reads.front()];
      if (!binding.writes.empty()) binding.last_writer = writer_[binding.writes.back()];
    }
  }
}

void StepCompiler::makeFetches() {
  for (const BoundTensor& fetch : step_.fetches) {
    Fetch made;
    made.location = locate(fetch.tensor);
    made.dtype = fetch.spec.dtype;
    made.bytes = fetch.spec.bytes();
    if (made.location.kind != Kind::kPlanned && made.bytes > 0) {
      bindingOf(made.location).required = true;
    }
    if (!body_->device->usesHostMemory()) made.host.resize(made.bytes);
    body_->fetches.push_back(std::move(made));
  }
  if (body_->device->usesHostMemory()) return;
  StepBody& s = *body_;
  for (std::vector<Binding>* bindings : {&s.inputs, &s.parameters, &s.gradients}) {
    for (Binding& binding : *bindings) {
      if (!binding.required || binding.kept != nullptr) continue;
      binding.staged = body_->device->allocate(binding.bytes);
      for (const size_t read : binding.reads) s.input_pointers[read] = binding.staged.get();
      for (const size_t write : binding.writes) s.output_pointers[write] = binding.staged.get();
    }
  }
}

// Binds kept variables permanently, so that programs of the device may contain their addresses.
void StepCompiler::bindKept() {
  StepBody& s = *body_;
  for (std::vector<Binding>* bindings : {&s.parameters, &s.gradients}) {
    for (Binding& binding : *bindings) {
      if (binding.kept == nullptr) continue;
      binding.bound = binding.kept;
      for (const size_t read : binding.reads) s.input_pointers[read] = binding.kept;
      for (const size_t write : binding.writes) s.output_pointers[write] = binding.kept;
    }
  }
}

// Returns the last launch that writes a fetched tensor; nullopt if all fetches are bound or
// constants.
std::optional<size_t> StepCompiler::lastOfFetches() const {
  std::optional<size_t> last;
  for (size_t launch = 0; launch < step_.operations.size(); ++launch)
    for (const Output& output : step_.operations[launch].outputs)
      for (const BoundTensor& fetch : step_.fetches)
        if (fetch.tensor == output) last = launch;
  return last;
}

void StepCompiler::describe() {
  StepPlan& plan = body_->plan;
  plan.planned_bytes = memory_.bytes;
  for (const std::unique_ptr<Kernel>& kernel : body_->kernels)
    plan.planned_bytes += kernel->preparedBytes();
  for (size_t i = 0; i < step_.operations.size(); ++i) {
    const Operation& operation = step_.operations[i];
    plan.kernels.push_back({operation.op, operation.name, operation.input_specs,
                            operation.output_specs, std::string(body_->kernels[i]->way())});
  }
}

StepCompiler compilerOf(const graph::Graph& part, std::span<const Output> fetches, DeviceType type,
                        const KernelTable& kernels, CompileOptions options) {
  static const KnownValues kNothing;
  LoweredStep step = lower(part, fetches, options.known == nullptr ? kNothing : *options.known);
  inlineFunctions(step, kernels, type);
  if (options.fuse) fuse(step, kernels, type);
  usePrecision(step, options.precision, kernels, type);
  if (options.fuse) fuseProducts(step, kernels, type);
  makeGradientsEarly(step);
  return {std::move(step), type, kernels};
}

}  // namespace

std::unique_ptr<CompiledStep> compile(const graph::Graph& part, std::span<const Output> fetches,
                                      Device& device, const KernelTable& kernels,
                                      CompileOptions options) {
  static const KeptVariables kNone;
  StepCompiler compiler = compilerOf(part, fetches, device.type(), kernels, options);
  const DeviceLock lock(device);
  return std::unique_ptr<CompiledStep>(new CompiledStep(
      compiler.take(device, options.kept == nullptr ? kNone : *options.kept, options.transfers)));
}

StepPlan planStep(const graph::Graph& part, std::span<const Output> fetches, DeviceType type,
                  const KernelTable& kernels, CompileOptions options) {
  return compilerOf(part, fetches, type, kernels, options).plan();
}

}  // namespace dtf::runtime
