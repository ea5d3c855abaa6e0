#include "common/train/device_operations.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::train {

void DeviceOperations::add(std::string_view op, graph::Attributes attributes,
                           const std::vector<DeviceTensor>& inputs,
                           const std::vector<DeviceTensor>& outputs) {
  DTF_CHECK(program_ == nullptr);
  runtime::Operation operation;
  operation.name = operation.op = op;
  operation.attributes = std::move(attributes);
  Step step;
  step.name = op;
  int32_t next = 0;  // tensor names, which nothing reads
  for (const DeviceTensor& input : inputs) {
    DTF_CHECK(input.memory != nullptr);
    operation.inputs.push_back({0, next++});
    operation.input_specs.push_back(input.spec);
    step.inputs.push_back(input.memory);
  }
  for (const DeviceTensor& output : outputs) {
    DTF_CHECK(output.memory != nullptr);
    operation.outputs.push_back({0, next++});
    operation.output_specs.push_back(output.spec);
    step.outputs.push_back(output.memory);
  }
  step.kernel = on_.kernels->make(operation, on_.device->type());
  steps_.push_back(std::move(step));
}

void DeviceOperations::prepare() {
  DTF_CHECK(program_ == nullptr);
  for (Step& step : steps_) {
    step.kernel->prepare(*on_.device);
    step.workspace = on_.device->allocate(step.kernel->workspaceBytes());
    launches_.push_back(
        {step.kernel.get(), {step.inputs, step.outputs, step.workspace.get()}, &step.name});
  }
  if (!empty()) program_ = on_.device->prepare(launches_);
}

void DeviceOperations::run() {
  DTF_CHECK(empty() || program_ != nullptr);
  if (program_ != nullptr) program_->run();
}

}  // namespace dtf::train
