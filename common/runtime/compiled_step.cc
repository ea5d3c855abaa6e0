#include "common/runtime/compiled_step.h"

#include <exception>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/runtime/step_body.h"

namespace dtf::runtime {
namespace {

int find(const std::vector<Binding>& bindings, std::string_view name, const char* what) {
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].name == name) return static_cast<int>(i);
  std::vector<std::string_view> names;
  for (const Binding& binding : bindings) names.push_back(binding.name);
  const std::string nearest = nearestWord(name, names);
  throw Error(ErrorCode::kBadConfig,
              "The compiled step has no " + std::string(what) + " '" + std::string(name) + "'" +
                  (nearest.empty() ? "." : " - did you mean '" + nearest + "'?"));
}

Binding& at(std::vector<Binding>& bindings, int index) {
  DTF_CHECK(index >= 0 && static_cast<size_t>(index) < bindings.size());
  return bindings[static_cast<size_t>(index)];
}

void requireBound(const std::vector<Binding>& bindings, const char* what) {
  for (const Binding& binding : bindings) {
    if (binding.kept != nullptr || !binding.required || binding.bound != nullptr) continue;
    throw Error(ErrorCode::kBadConfig, "A step was run before its " + std::string(what) + " '" +
                                           binding.name + "' was bound.");
  }
}

}  // namespace

CompiledStep::CompiledStep(std::unique_ptr<StepBody> body) : body_(std::move(body)) {
  DTF_CHECK(body_ != nullptr && body_->device != nullptr);
  DTF_CHECK(body_->launches.size() == body_->kernels.size() && !body_->segments.empty());
}
CompiledStep::~CompiledStep() = default;

int CompiledStep::input(std::string_view name) const {
  return find(body_->inputs, name, "input");
}
int CompiledStep::parameter(std::string_view name) const {
  return find(body_->parameters, name, "parameter");
}
int CompiledStep::gradient(std::string_view name) const {
  return find(body_->gradients, name, "gradient");
}

void CompiledStep::bindInput(int input, const std::byte* data) {
  Binding& binding = at(body_->inputs, input);
  binding.bound = data;
  if (binding.staged) return;
  for (const size_t read : binding.reads) body_->input_pointers[read] = data;
}

void CompiledStep::bindParameter(int parameter, const float* data) {
  DTF_CHECK(reinterpret_cast<uintptr_t>(data) % alignof(float) == 0);
  Binding& binding = at(body_->parameters, parameter);
  binding.bound = reinterpret_cast<const std::byte*>(data);
  binding.is_new = true;
  if (binding.staged) return;
  for (const size_t read : binding.reads) body_->input_pointers[read] = binding.bound;
}

void CompiledStep::bindGradient(int gradient, float* data) {
  DTF_CHECK(reinterpret_cast<uintptr_t>(data) % alignof(float) == 0);
  Binding& binding = at(body_->gradients, gradient);
  const auto bytes = reinterpret_cast<std::byte*>(data);
  binding.bound = bytes;
  if (binding.staged) return;
  for (const size_t read : binding.reads) body_->input_pointers[read] = bytes;
  for (const size_t write : binding.writes) body_->output_pointers[write] = bytes;
}

namespace {

// Uploads small tensors and tensors that belong to no segment.
void uploadAhead(StepBody& s) {
  for (const Binding& binding : s.inputs)
    if (binding.staged) s.device->copyToDevice(binding.staged.get(), binding.bound, binding.bytes);
  for (const Binding& binding : s.parameters)
    if (binding.staged && binding.is_new && !binding.is_beside)
      s.device->copyToDevice(binding.staged.get(), binding.bound, binding.bytes);
}

void moveBeside(StepBody& s, const std::vector<size_t>& gradients) {
  for (const size_t i : gradients) {
    const Binding& binding = s.gradients[i];
    s.device->copyToHostBeside(const_cast<std::byte*>(binding.bound), binding.staged.get(),
                               binding.bytes);
  }
}

const std::byte* sourceOf(StepBody& s, const Fetch& fetch) {
  const Location& from = fetch.location;
  return from.kind == Location::Kind::kPlanned ? from.address
                                               : s.bindings(from.kind)[from.index].onDevice();
}

// `hears`: a listener waits for its results.
void runSegment(StepBody& s, const Segment& segment, bool hears) {
  for (const size_t i : segment.uploads) {
    const Binding& binding = s.parameters[i];
    if (binding.is_new)
      s.device->copyToDeviceBeside(binding.staged.get(), binding.bound, binding.bytes);
  }
  segment.program->run();
  if (!hears || s.device->usesHostMemory()) return moveBeside(s, segment.downloads);
  if (segment.makes_fetches)
    for (Fetch& fetch : s.fetches)
      s.device->copyToHostBeside(fetch.host.data(), sourceOf(s, fetch), fetch.bytes);
  moveBeside(s, segment.made);
}

// Reports results of a segment on a device that uses the host's memory.
void tell(StepBody& s, const Segment& segment, StepListener& listener) {
  if (!segment.makes_fetches && segment.made.empty()) return;
  s.device->synchronise();
  if (segment.makes_fetches) listener.onFetches();
  if (!segment.made.empty()) listener.onGradients(segment.made);
}

// Reports results as the copies arrive, on a device with its own memory that has received all
// segments.
void tellOfCopies(StepBody& s, StepListener& listener) {
  size_t copies = 0;
  for (const Segment& segment : s.segments) {
    if (segment.makes_fetches) {
      for (const Fetch& fetch : s.fetches) copies += fetch.bytes > 0 ? 1 : 0;
      s.device->awaitHost(copies);
      listener.onFetches();
    }
    if (segment.made.empty()) continue;
    copies += segment.made.size();
    s.device->awaitHost(copies);
    listener.onGradients(segment.made);
  }
}

void downloadRest(StepBody& s) {
  for (const Binding& binding : s.gradients)
    if (binding.staged && !binding.is_beside)
      s.device->copyToHost(const_cast<std::byte*>(binding.bound), binding.staged.get(),
                           binding.bytes);
  if (s.device->usesHostMemory()) return;
  for (Fetch& fetch : s.fetches)
    s.device->copyToHost(fetch.host.data(), sourceOf(s, fetch), fetch.bytes);
}

// Waits for copies to the caller's memory, which the caller may free. The first error explains more
// than later ones.
[[noreturn]] void failStep(Device& device) {
  const std::exception_ptr failure = std::current_exception();
  try {
    device.synchronise();
  } catch (const Error&) {
  }
  std::rethrow_exception(failure);
}

}  // namespace

void CompiledStep::run(StepListener* listener) {
  StepBody& s = *body_;
  requireBound(s.inputs, "input");
  requireBound(s.parameters, "parameter");
  requireBound(s.gradients, "gradient");
  const DeviceLock lock(*s.device);
  try {
    uploadAhead(s);
    const bool hears = listener != nullptr && s.tells_early;
    for (const Segment& segment : s.segments) {
      runSegment(s, segment, hears);
      if (hears && s.device->usesHostMemory()) tell(s, segment, *listener);
    }
    if (!hears)
      downloadRest(s);
    else if (!s.device->usesHostMemory())
      tellOfCopies(s, *listener);
  } catch (...) {
    failStep(*s.device);
  }
  s.device->synchronise();
  if (listener != nullptr && !s.tells_early) {
    listener->onFetches();
    listener->onGradients(s.told_at_end);
  }
  for (Binding& binding : s.parameters) binding.is_new = false;  // its value is on the device now
}

std::optional<double> CompiledStep::deviceSeconds() const {
  const DeviceLock lock(*body_->device);
  double sum = 0;
  for (const Segment& segment : body_->segments) {
    const std::optional<double> seconds = segment.program->deviceSeconds();
    if (!seconds) return std::nullopt;
    sum += *seconds;
  }
  return sum;
}

std::vector<double> CompiledStep::profile() {
  const DeviceLock lock(*body_->device);
  std::vector<double> all;
  for (const Segment& segment : body_->segments) {
    const std::vector<double> some = segment.program->profile();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::span<const float> CompiledStep::fetch(int i) const {
  const std::span<const std::byte> bytes = fetchBytes(i);
  DTF_CHECK(body_->fetches[static_cast<size_t>(i)].dtype == DType::kFloat32);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const std::byte> CompiledStep::fetchBytes(int i) const {
  StepBody& s = *body_;
  DTF_CHECK(i >= 0 && static_cast<size_t>(i) < s.fetches.size());
  const Fetch& fetch = s.fetches[static_cast<size_t>(i)];
  if (!s.device->usesHostMemory()) return fetch.host;
  const Location& from = fetch.location;
  const std::byte* address = from.kind == Location::Kind::kPlanned
                                 ? from.address
                                 : s.bindings(from.kind)[from.index].bound;
  return {address, fetch.bytes};
}

const StepPlan& CompiledStep::plan() const {
  return body_->plan;
}

std::string StepPlan::str() const {
  std::string text;
  const auto add = [&text](const std::vector<graph::TensorSpec>& specs) {
    for (const graph::TensorSpec& spec : specs)
      text += " " + std::string(dtypeName(spec.dtype)) + spec.shape.str();
  };
  for (const Row& row : kernels) {
    text += row.op + " " + row.name;
    add(row.inputs);
    text += " ->";
    add(row.outputs);
    text += (row.way.empty() ? "" : " by " + row.way) + "\n";
  }
  return text;
}

}  // namespace dtf::runtime
