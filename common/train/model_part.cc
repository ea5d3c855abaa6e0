#include "common/train/model_part.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/engine/plan.h"
#include "common/graph/device_placer.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::train {

namespace {

engine::WithCpu cpuOf(const ComputeDevice& on) {
  return [on](const engine::Tasks::UseCpu& use) {
    if (on.device->type() == runtime::DeviceType::kCpu) {
      use(*on.device, *on.kernels);
      return true;
    }
    runtime::CpuDevice cpu;
    runtime::KernelTable kernels;
    runtime::registerCpuKernels(kernels);
    use(cpu, kernels);
    return true;
  };
}

engine::Signature modelSignature(const model::ModelGraph& model,
                                 std::span<const graph::Output> fetches) {
  engine::Signature signature;
  for (const graph::Node& node : model.graph.nodes())
    if (node.op == "Placeholder") signature.feeds.push_back(node.name);
  std::sort(signature.feeds.begin(), signature.feeds.end());
  for (const graph::Output& fetch : fetches)
    signature.fetches.push_back(model.graph.node(fetch.node).name + ":" +
                                std::to_string(fetch.index));
  for (const model::ModelVariable& variable : model.variables)
    if (variable.update) signature.targets.push_back(model.graph.node(*variable.update).name);
  std::sort(signature.targets.begin(), signature.targets.end());
  return signature;
}

// Throws if another task has nodes to compute. It may have variables, and nodes that the
// partitioning inserts.
void refuseOthers(const engine::Plan& plan, TaskId self) {
  for (const engine::TaskPart& part : plan.parts) {
    if (part.task == self) continue;
    for (const graph::Node& node : part.graph.nodes())
      if (node.op != "Variable" && node.op[0] != '_')
        throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                               ") is placed on " + part.task.device() + ", but " +
                                               self.name() + " computes its whole model itself");
  }
}

engine::TaskPart partOf(const model::ModelGraph& model, std::span<const graph::Output> fetches,
                        const graph::Placement& placement, TaskId self, const ComputeDevice& on) {
  engine::Plan plan =
      engine::makePlan(graph::withDevices(model.graph, placement), modelSignature(model, fetches),
                       cpuOf(on), placement.variables);
  refuseOthers(plan, self);
  const auto own = std::find_if(plan.parts.begin(), plan.parts.end(),
                                [self](const auto& part) { return part.task == self; });
  DTF_CHECK(own != plan.parts.end() && own->fetches.size() == fetches.size());
  return std::move(*own);
}

}  // namespace

engine::TaskPart trainingPart(const model::ModelGraph& model, const graph::Placement& placement,
                              uint32_t rank, const ComputeDevice& on) {
  return partOf(model, std::array{model.loss}, placement, {JobKind::kWorker, rank}, on);
}

engine::TaskPart localPart(const model::ModelGraph& model, std::span<const graph::Output> fetches,
                           const ComputeDevice& on) {
  const TaskId self{JobKind::kWorker, 0};
  const graph::PlacerOptions here{.worker = graph::fullDevice(self), .one_process = true};
  return partOf(model, fetches, graph::place(model.graph, here), self, on);
}

std::unique_ptr<runtime::CompiledStep> compilePart(const engine::TaskPart& part,
                                                   const ComputeDevice& on,
                                                   const runtime::KeptVariables* kept) {
  return runtime::compile(part.graph, part.fetches, *on.device, *on.kernels,
                          {.precision = on.precision,
                           .known = &part.folded,
                           .kept = kept,
                           .transfers = {.told_bytes = on.told_bytes}});
}

}  // namespace dtf::train
