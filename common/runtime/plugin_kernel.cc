#include "common/runtime/plugin_kernel.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/runtime/plugin_device.h"
#include "common/runtime/stands_for.h"

namespace dtf::runtime {
namespace {

static_assert(static_cast<int>(DType::kFloat32) == DTF_PLUGIN_FLOAT32 &&
              static_cast<int>(DType::kUInt8) == DTF_PLUGIN_UINT8 &&
              static_cast<int>(DType::kInt32) == DTF_PLUGIN_INT32 &&
              static_cast<int>(DType::kInt64) == DTF_PLUGIN_INT64 &&
              static_cast<int>(DType::kBFloat16) == DTF_PLUGIN_BFLOAT16);

std::vector<dtf_plugin_tensor> toPlugin(const std::vector<graph::TensorSpec>& specs) {
  std::vector<dtf_plugin_tensor> tensors;
  for (const graph::TensorSpec& spec : specs)
    tensors.push_back({static_cast<int32_t>(spec.dtype), static_cast<uint32_t>(spec.shape.rank()),
                       spec.shape.dims().data()});
  return tensors;
}

// Refers to its arguments. Texts and functions can't be passed: no op of a GPU has them.
dtf_plugin_attribute toPlugin(const std::string& key, const graph::Attribute& value) {
  dtf_plugin_attribute made = {};
  made.key = key.c_str();
  made.type = DTF_PLUGIN_INTEGER;
  if (const auto* number = std::get_if<double>(&value)) {
    made.type = DTF_PLUGIN_NUMBER;
    made.number = *number;
  } else if (const auto* list = std::get_if<Shape>(&value)) {
    made.type = DTF_PLUGIN_LIST;
    made.list = list->dims().data();
    made.list_size = list->dims().size();
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    made.integer = *flag ? 1 : 0;
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    made.integer = *integer;
  } else if (const auto* dtype = std::get_if<DType>(&value)) {
    made.integer = static_cast<int64_t>(*dtype);
  } else {
    throw Error(ErrorCode::kBadConfig, "The attribute '" + key + "' can't be given to a GPU.");
  }
  return made;
}

}  // namespace

PluginKernel::PluginKernel(std::shared_ptr<const PluginLibrary> plugin, const Operation& operation)
    : plugin_(std::move(plugin)) {
  std::vector<dtf_plugin_attribute> attributes;
  for (const auto& [key, value] : operation.attributes) attributes.push_back(toPlugin(key, value));
  const std::vector<dtf_plugin_tensor> inputs = toPlugin(operation.input_specs);
  const std::vector<dtf_plugin_tensor> outputs = toPlugin(operation.output_specs);
  const dtf_plugin_operation given = {
      operation.name.c_str(), operation.op.c_str(), attributes.data(), attributes.size(),
      inputs.data(),          inputs.size(),        outputs.data(),    outputs.size()};
  dtf_plugin_status status = {};
  kernel_ = plugin_->calls().make_kernel(&given, &status);
  throwIfFailed(status);
  DTF_CHECK(kernel_ != nullptr);
}

PluginKernel::~PluginKernel() {
  plugin_->calls().destroy_kernel(kernel_);
}

void PluginKernel::run(const KernelArguments& arguments) {
  DTF_CHECK_MSG(false, "a plug-in's kernel runs in a program");
}

size_t PluginKernel::workspaceBytes() const {
  return plugin_->calls().kernel_workspace_bytes(kernel_);
}

void PluginKernel::prepare(Device& device) {
  if (auto* const proxy = dynamic_cast<StandsFor*>(&device)) return prepare(proxy->actual());
  auto* const of_plugin = dynamic_cast<PluginDevice*>(&device);
  DTF_CHECK(of_plugin != nullptr);
  dtf_plugin_status status = {};
  plugin_->calls().prepare_kernel(kernel_, of_plugin->handle(), &status);
  throwIfFailed(status);
}

std::string_view PluginKernel::way() const {
  return plugin_->calls().kernel_way(kernel_);
}

bool PluginKernel::canOverwrite(int output, int input) const {
  return plugin_->calls().kernel_can_overwrite(kernel_, output, input) != 0;
}

void registerPluginKernels(KernelTable& table, std::shared_ptr<const PluginLibrary> plugin) {
  size_t size = 0;
  const char* const* const ops = plugin->calls().ops(&size);
  for (size_t i = 0; i < size; ++i) {
    if (table.has(ops[i], DeviceType::kGpu)) continue;
    table.add(ops[i], DeviceType::kGpu, [plugin](const Operation& operation) {
      return std::make_unique<PluginKernel>(plugin, operation);
    });
  }
}

}  // namespace dtf::runtime
