#include "common/runtime/compiled_step.h"

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/runtime/step_state.h"

namespace dtf::runtime {
namespace {

int find(const std::vector<Slot>& slots, std::string_view name) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int findOrThrow(const std::vector<Slot>& slots, std::string_view name, const char* what) {
  const int index = find(slots, name);
  if (index >= 0) return index;
  std::vector<std::string_view> names;
  for (const Slot& slot : slots) names.push_back(slot.name);
  const std::string nearest = nearestWord(name, names);
  throw Error(ErrorCode::kBadConfig,
              "The compiled step has no " + std::string(what) + " '" + std::string(name) + "'" +
                  (nearest.empty() ? "." : " - did you mean '" + nearest + "'?"));
}

Slot& at(std::vector<Slot>& slots, int index) {
  DTF_CHECK(index >= 0 && static_cast<size_t>(index) < slots.size());
  return slots[static_cast<size_t>(index)];
}

void requireBound(const std::vector<Slot>& slots, const char* what) {
  for (const Slot& slot : slots) {
    if (!slot.required || slot.bound != nullptr) continue;
    throw Error(ErrorCode::kBadConfig, "A step was run before its " + std::string(what) + " '" +
                                           slot.name + "' was bound.");
  }
}

}  // namespace

CompiledStep::CompiledStep(std::unique_ptr<StepState> state) : state_(std::move(state)) {}
CompiledStep::~CompiledStep() = default;

int CompiledStep::findInput(std::string_view name) const {
  return find(state_->inputs, name);
}
int CompiledStep::findParameter(std::string_view name) const {
  return find(state_->parameters, name);
}
int CompiledStep::findGradient(std::string_view name) const {
  return find(state_->gradients, name);
}
int CompiledStep::input(std::string_view name) const {
  return findOrThrow(state_->inputs, name, "input");
}
int CompiledStep::parameter(std::string_view name) const {
  return findOrThrow(state_->parameters, name, "parameter");
}
int CompiledStep::gradient(std::string_view name) const {
  return findOrThrow(state_->gradients, name, "gradient");
}

void CompiledStep::bindInput(int input, const std::byte* data) {
  Slot& slot = at(state_->inputs, input);
  slot.bound = data;
  if (slot.staged) return;
  for (const size_t read : slot.reads) state_->input_pointers[read] = data;
}

void CompiledStep::bindParameter(int parameter, const float* data) {
  Slot& slot = at(state_->parameters, parameter);
  slot.bound = reinterpret_cast<const std::byte*>(data);
  if (slot.staged) return;
  for (const size_t read : slot.reads) state_->input_pointers[read] = slot.bound;
}

void CompiledStep::bindGradient(int gradient, float* data) {
  Slot& slot = at(state_->gradients, gradient);
  const auto bytes = reinterpret_cast<std::byte*>(data);
  slot.bound = bytes;
  if (slot.staged) return;
  for (const size_t read : slot.reads) state_->input_pointers[read] = bytes;
  for (const size_t write : slot.writes) state_->output_pointers[write] = bytes;
}

void CompiledStep::run() {
  StepState& s = *state_;
  requireBound(s.inputs, "input");
  requireBound(s.parameters, "parameter");
  requireBound(s.gradients, "gradient");
  for (std::vector<Slot>* slots : {&s.inputs, &s.parameters}) {
    for (Slot& slot : *slots) {
      if (slot.staged) s.device.copyToDevice(slot.staged.get(), slot.bound, slot.bytes);
    }
  }
  s.device.run(s.launches);
  for (Slot& slot : s.gradients) {
    if (!slot.staged) continue;
    s.device.copyToHost(const_cast<std::byte*>(slot.bound), slot.staged.get(), slot.bytes);
  }
  if (!s.device.usesHostMemory()) {
    for (Fetch& fetch : s.fetches) {
      const Location& from = fetch.location;
      const std::byte* source = from.kind == Location::Kind::kPlanned
                                    ? from.address
                                    : s.slots(from.kind)[from.index].staged.get();
      s.device.copyToHost(reinterpret_cast<std::byte*>(fetch.host.data()), source,
                          fetch.elements * sizeof(float));
    }
  }
  s.device.synchronise();
}

std::span<const float> CompiledStep::fetch(int i) const {
  StepState& s = *state_;
  DTF_CHECK(i >= 0 && static_cast<size_t>(i) < s.fetches.size());
  const Fetch& fetch = s.fetches[static_cast<size_t>(i)];
  if (!s.device.usesHostMemory()) return fetch.host;
  const Location& from = fetch.location;
  const std::byte* address =
      from.kind == Location::Kind::kPlanned ? from.address : s.slots(from.kind)[from.index].bound;
  return {reinterpret_cast<const float*>(address), fetch.elements};
}

size_t CompiledStep::plannedBytes() const {
  return state_->planned_bytes;
}
size_t CompiledStep::unsharedBytes() const {
  return state_->unshared_bytes;
}
std::string CompiledStep::describe() const {
  return state_->description;
}

}  // namespace dtf::runtime
