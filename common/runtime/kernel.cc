#include "common/runtime/kernel.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::runtime {

std::string_view deviceTypeName(DeviceType type) {
  return type == DeviceType::kCpu ? "CPU" : "GPU";
}

void KernelTable::add(std::string op, DeviceType device, KernelFactory factory) {
  addCalling(std::move(op), device,
             [factory = std::move(factory)](const Operation& operation, const KernelTable&) {
               return factory(operation);
             });
}

void KernelTable::addCalling(std::string op, DeviceType device, CallingKernelFactory factory) {
  const bool added = factories_.try_emplace({device, op}, std::move(factory)).second;
  DTF_CHECK_MSG(added, op);
}

bool KernelTable::has(std::string_view op, DeviceType device) const {
  return factories_.contains({device, std::string(op)});
}

std::unique_ptr<Kernel> KernelTable::make(const Operation& operation, DeviceType device) const {
  const auto at = factories_.find({device, operation.op});
  if (at == factories_.end()) {
    throw Error(ErrorCode::kBadConfig, "There is no " + std::string(deviceTypeName(device)) +
                                           " kernel for the op " + operation.op + " of node '" +
                                           operation.name +
                                           "'; place the node on another kind of device.");
  }
  return at->second(operation, *this);
}

std::vector<std::string> KernelTable::ops(DeviceType device) const {
  std::vector<std::string> ops;
  for (const auto& [key, factory] : factories_) {
    if (key.first == device) ops.push_back(key.second);
  }
  return ops;
}

}  // namespace dtf::runtime
