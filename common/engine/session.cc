#include "common/engine/session.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/engine/executor.h"
#include "common/graph/prune.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::TensorSpec;

Bytes bytesOf(const Tensor& tensor) {
  return {tensor.data(), tensor.bytes()};
}

Tensor toTensor(const TensorSpec& spec, Bytes bytes) {
  Tensor tensor(spec.dtype, spec.shape);
  DTF_CHECK(tensor.bytes() == bytes.size());
  std::copy(bytes.begin(), bytes.end(), tensor.data());
  return tensor;
}

// "worker/0 cpu:1": a thread's name.
std::string threadName(const graph::DeviceName& device) {
  DTF_CHECK(device.taskId() && device.type && device.index);
  std::string type = *device.type;
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return device.taskId()->name() + " " + type + ":" + std::to_string(*device.index);
}

std::string text(DType dtype, const Shape& shape) {
  return std::string(dtypeName(dtype)) + shape.str();
}

void checkFits(const std::string& what, const TensorSpec& spec, const Tensor& value) {
  if (value.dtype() == spec.dtype && value.shape() == spec.shape) return;
  throw Error(ErrorCode::kBadConfig, what + " is " + text(spec.dtype, spec.shape) +
                                         ", but was given " + text(value.dtype(), value.shape()));
}

graph::DevicePlacerOptions placerOptions(const std::vector<SessionDevice>& devices,
                                         const SessionOptions& options) {
  DTF_CHECK(!devices.empty());
  graph::DevicePlacerOptions placer{.devices = {},
                                    .preferred = devices[0].name,
                                    .soft = options.soft_placement,
                                    .colocations = options.colocations,
                                    .lines = options.lines,
                                    .can_run = {}};
  for (const SessionDevice& device : devices) placer.devices.push_back(device.name);
  placer.can_run = [&devices](const graph::Node& node, const graph::DeviceName& name) {
    // What a compiled step does without a kernel; placeholders and variables are bound.
    static const std::vector<std::string_view> kFree = {
        "Placeholder", "Const", "Variable", "NoOp", "Identity", "Reshape", "ZerosLike"};
    if (std::find(kFree.begin(), kFree.end(), node.op) != kFree.end()) return true;
    if (graph::appliesGradient(node)) return true;  // refused when a step needs it
    const auto device = std::find_if(devices.begin(), devices.end(),
                                     [&](const SessionDevice& each) { return each.name == name; });
    DTF_CHECK(device != devices.end());
    return device->kernels->has(node.op, device->device->type());
  };
  return placer;
}

// What a session inserts itself may not be in a graph that somebody gives it.
void refuseInternal(const Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op[0] != '_') continue;
    throw Error(ErrorCode::kBadConfig, "node '" + node.name + "': " + node.op +
                                           " is dtf's own op, which partitions insert");
  }
}

Graph placed(const Graph& graph, const std::vector<SessionDevice>& devices,
             const SessionOptions& options) {
  refuseInternal(graph);
  return graph::withDevices(graph, placeOnDevices(graph, placerOptions(devices, options)));
}

}  // namespace

Session::Session(const Graph& graph, std::vector<SessionDevice> devices, SessionOptions options)
    : options_(std::move(options)),
      graph_(placed(graph, devices, options_)),
      process_(Incarnation::ofNow()) {
  DTF_CHECK(options_.plans_max > 0);
  for (const SessionDevice& device : devices) {
    queues_.push_back(std::make_unique<DeviceQueue>(threadName(device.name)));
    const bool is_new =
        devices_.emplace(device.name.str(), PlanDevice{device, queues_.back().get()}).second;
    DTF_CHECK_MSG(is_new, device.name.str());
  }
}
Session::~Session() = default;

std::vector<Tensor> Session::run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                 std::span<const std::string> targets) {
  std::vector<Feed> sorted(feeds.begin(), feeds.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Feed& a, const Feed& b) { return a.tensor < b.tensor; });
  Signature signature;
  for (const Feed& feed : sorted) signature.feeds.push_back(feed.tensor);
  signature.fetches.assign(fetches.begin(), fetches.end());
  signature.targets.assign(targets.begin(), targets.end());
  std::sort(signature.targets.begin(), signature.targets.end());
  const std::shared_ptr<Plan> plan = planOf(signature);
  return runPlan(*plan, sorted);
}

std::shared_ptr<Plan> Session::planOf(const Signature& signature) {
  MutexLock lock(plans_mutex_);
  const auto known = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const Entry& entry) { return entry.signature == signature; });
  if (known != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, known);
    return known->plan;
  }
  auto plan = std::make_shared<Plan>();
  makePlan(graph_, signature, devices_, *plan);
  plans_.push_front({signature, plan});
  if (plans_.size() > options_.plans_max) plans_.pop_back();
  MutexLock counting(counts_mutex_);
  ++counts_.plans;
  return plan;
}

std::vector<Tensor> Session::runPlan(Plan& plan, std::span<const Feed> feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    DTF_CHECK(feeds[i].value != nullptr);
    checkFits("'" + feeds[i].tensor + "'", plan.feed_specs[i], *feeds[i].value);
  }
  MutexLock running(plan.running);
  std::vector<std::shared_ptr<const Tensor>> held;  // variables as this step sees them
  std::vector<StepPart> parts;
  for (Plan::Part& part : plan.parts) {
    StepPart step{&part.program, part.queue, {}};
    for (size_t i = 0; i < part.feeds.size(); ++i) {
      const Tensor& value = part.feeds[i] == Plan::Part::kFolded
                                ? plan.folded.at(part.program.feeds()[i].name)
                                : *feeds[part.feeds[i]].value;
      step.inputs.feeds.push_back(bytesOf(value));
    }
    for (const PartProgram::Named& variable : part.program.variables()) {
      held.push_back(valueOf(variable.name));
      step.inputs.variables.push_back(bytesOf(*held.back()));
    }
    parts.push_back(std::move(step));
  }
  uint64_t number = 0;
  {
    MutexLock lock(counts_mutex_);
    number = next_step_++;
  }
  const uint64_t kernels = runParts({number, process_}, parts, rendezvous_);
  std::vector<Tensor> values;
  for (const Plan::Fetch& fetch : plan.fetches) {
    const StepPart& part = parts[fetch.part];
    values.push_back(toTensor(fetch.spec, part.program->fetch(fetch.index, part.inputs)));
  }
  MutexLock lock(counts_mutex_);
  ++counts_.steps;
  counts_.kernels += kernels;
  return values;
}

void Session::setVariable(std::string_view name, const Tensor& value) {
  const graph::Node& node = graph_.node(graph::findNode(graph_, name));
  if (node.op != "Variable") {
    throw Error(ErrorCode::kBadConfig, "'" + node.name + "' is a " + node.op + ", not a Variable");
  }
  checkFits("the variable '" + node.name + "'", node.outputs[0], value);
  auto kept = std::make_shared<const Tensor>(toTensor(node.outputs[0], bytesOf(value)));
  MutexLock lock(variables_mutex_);
  variables_[node.name] = std::move(kept);
}

std::shared_ptr<const Tensor> Session::valueOf(const std::string& variable) const {
  MutexLock lock(variables_mutex_);
  const auto known = variables_.find(variable);
  if (known != variables_.end()) return known->second;
  throw Error(ErrorCode::kBadConfig, "the variable '" + variable + "' has no value yet");
}

SessionCounts Session::counts() const {
  MutexLock lock(counts_mutex_);
  return counts_;
}

}  // namespace dtf::engine
