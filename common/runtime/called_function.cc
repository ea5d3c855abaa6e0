#include "common/runtime/called_function.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::runtime {

CalledFunction::CalledFunction(graph::FunctionRef function, DeviceType type,
                               const KernelTable& kernels)
    : function_(std::move(function)), kernels_(&kernels) {
  DTF_CHECK(function_ != nullptr);
  bytes_ = planStep(function_->graph(), function_->results(), type, kernels).planned_bytes;
}

void CalledFunction::prepare(Device& device) {
  DTF_CHECK(step_ == nullptr);
  if (!device.usesHostMemory())
    throw Error(ErrorCode::kBadConfig, "There are no branches and loops (If, While) on " +
                                           std::string(device.name()) + "; place them on a CPU.");
  step_ = compile(function_->graph(), function_->results(), device, *kernels_);
  kernels_ = nullptr;
  for (const graph::NodeId parameter : function_->parameters())
    inputs_.push_back(step_->input(function_->graph().node(parameter).name));
  function_ = nullptr;
}

void CalledFunction::bind(size_t parameter, const std::byte* value) {
  DTF_CHECK(step_ != nullptr && parameter < inputs_.size());
  step_->bindInput(inputs_[parameter], value);
}

}  // namespace dtf::runtime
