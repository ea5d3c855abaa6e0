#include "common/engine/local_tasks.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/engine/executor.h"
#include "common/engine/host_act.h"
#include "common/engine/local_step.h"
#include "common/graph/queue.h"

namespace dtf::engine {
namespace {

// Returns "worker/0 cpu:1": a thread's name.
std::string threadName(const graph::DeviceName& device) {
  DTF_CHECK(device.taskId() && device.type && device.index);
  std::string type = *device.type;
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return device.taskId()->name() + " " + type + ":" + std::to_string(*device.index);
}

}  // namespace

Tensor toTensor(const graph::TensorSpec& spec, Bytes bytes) {
  Tensor tensor(spec.dtype, spec.shape);
  DTF_CHECK(tensor.bytes() == bytes.size());
  std::copy(bytes.begin(), bytes.end(), tensor.data());
  return tensor;
}

bool needsNoKernel(const graph::Node& node) {
  static const std::vector<std::string_view> kFree = {"Placeholder",  "Const",    "Variable",
                                                      "ReadVariable", "NoOp",     "Identity",
                                                      "Reshape",      "ZerosLike"};
  if (std::find(kFree.begin(), kFree.end(), node.op) != kFree.end()) return true;
  if (graph::isQueue(node) || graph::actsOnQueue(node) || isHostAct(node) ||
      graph::waitsForReplicas(node))
    return true;
  return graph::appliesGradient(node);  // rejected when a step needs it
}

DeviceThreads::DeviceThreads(const std::vector<SessionDevice>& devices,
                             const MakeDeviceQueue& make_queue) {
  DTF_CHECK(!devices.empty());
  for (const SessionDevice& device : devices) {
    names_.push_back(device.name);
    queues_.push_back(make_queue(threadName(device.name)));
    const bool is_new =
        devices_.emplace(device.name.str(), PlanDevice{device, queues_.back().get()}).second;
    DTF_CHECK_MSG(is_new, device.name.str());
  }
}

bool DeviceThreads::canRun(const graph::Node& node, const graph::DeviceName& device) const {
  if (needsNoKernel(node)) return true;
  const SessionDevice& on = devices_.at(device.str()).device;
  return on.kernels->has(node.op, on.device->type());
}

LocalTasks::LocalTasks(std::shared_ptr<LocalProcess> process, Duration step_max)
    : incarnation_(Incarnation::ofNow()), process_(std::move(process)), step_max_(step_max) {
  DTF_CHECK(process_ != nullptr);
}
LocalTasks::~LocalTasks() = default;

bool LocalTasks::canRun(const graph::Node& node, const graph::DeviceName& device) const {
  return process_->threads.canRun(node, device);
}

bool LocalTasks::withCpu(const UseCpu& use) {
  for (const auto& [name, each] : process_->threads.devices()) {
    if (each.device.device->type() != runtime::DeviceType::kCpu) continue;
    const PlanDevice& cpu = each;
    cpu.queue->runHere([&] { use(*cpu.device.device, *cpu.device.kernels); });
    return true;
  }
  return false;
}

// All tasks' parts in one step of this process, regardless of the devices' tasks.
class LocalTasks::Plan final : public PlanParts {
 public:
  Plan(LocalTasks& tasks, std::vector<TaskPart> parts) : tasks_(tasks) {
    uint32_t next_edge = parts.at(0).edges_total;
    for (TaskPart& part : parts) {
      names_.push_back(part.task);
      parts_.push_back(std::make_unique<RegisteredPart>(
          std::move(part), tasks.process_->threads.devices(), next_edge, tasks.process_->variables,
          tasks.process_->queues));
      next_edge += parts_.back()->ownEdges();
    }
  }

  StepResult run(uint64_t step, const StepFeeds& feeds, bool is_traced) override {
    DTF_CHECK(feeds.size() == parts_.size());
    std::vector<StepPart> running;
    std::vector<size_t> begins;  // by part: its first index in `running`
    std::vector<std::shared_ptr<trace::StepTrace>> traces;
    for (size_t p = 0; p < parts_.size(); ++p) {
      begins.push_back(running.size());
      std::vector<Bytes> fed;
      for (const Tensor* feed : feeds[p]) fed.emplace_back(feed->data(), feed->bytes());
      if (is_traced) traces.push_back(std::make_shared<trace::StepTrace>(names_[p]));
      parts_[p]->addStep(fed, running, is_traced ? traces.back() : nullptr);
    }
    begins.push_back(running.size());
    StepResult result;
    result.kernels = runParts({step, tasks_.incarnation_}, running, tasks_.rendezvous_,
                              tasks_.watch_, tasks_.step_max_);
    for (const auto& trace : traces) result.traces.push_back(trace->finish());
    const std::span<const StepPart> ran(running);
    for (size_t p = 0; p < parts_.size(); ++p) {
      const auto own = ran.subspan(begins[p], begins[p + 1] - begins[p]);
      result.fetches.emplace_back();
      for (size_t i = 0; i < parts_[p]->fetches().size(); ++i) {
        result.fetches.back().push_back(
            toTensor(parts_[p]->fetches()[i], parts_[p]->fetch(i, own)));
      }
    }
    return result;
  }

 private:
  LocalTasks& tasks_;
  std::vector<TaskId> names_;  // parallel to parts_
  std::vector<std::unique_ptr<RegisteredPart>> parts_;
};

std::unique_ptr<PlanParts> LocalTasks::registerPlan(std::vector<TaskPart> parts) {
  return std::make_unique<Plan>(*this, std::move(parts));
}

void LocalTasks::setVariable(const graph::Node& variable, const Tensor& value) {
  process_->variables.use(ResourceKey::of(variable), variable.outputs[0], variable.name)
      ->set({value.data(), value.bytes()});
}

void LocalTasks::reset(const std::string& container) {
  process_->variables.reset(container);
  process_->queues.reset(container);
}

}  // namespace dtf::engine
