#include "gpu/operation.h"

#include <functional>
#include <numeric>

#include "gpu/error.h"

namespace dtf::gpu {
namespace {

int64_t productOf(const std::vector<int64_t>& dims, size_t from) {
  return std::accumulate(dims.begin() + static_cast<ptrdiff_t>(from), dims.end(), int64_t{1},
                         std::multiplies<>());
}

std::vector<TensorSpec> copyOf(const dtf_plugin_tensor* tensors, size_t size) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < size; ++i) {
    const auto type = static_cast<Type>(tensors[i].dtype);
    (void)bytesOf(type);
    specs.push_back({type, {tensors[i].dims, tensors[i].dims + tensors[i].rank}});
  }
  return specs;
}

template <class T>
T valueOf(const std::map<std::string, T, std::less<>>& values, std::string_view key, T fallback) {
  const auto at = values.find(key);
  return at == values.end() ? fallback : at->second;
}

}  // namespace

int64_t bytesOf(Type type) {
  switch (type) {
    case Type::kFloat32:
    case Type::kInt32:
      return 4;
    case Type::kUInt8:
      return 1;
    case Type::kBFloat16:
      return 2;
    case Type::kInt64:
      return 8;
  }
  throw PluginError(DTF_PLUGIN_INTERNAL, "The GPU plug-in was given an unknown dtype, " +
                                             std::to_string(static_cast<int>(type)) + ".");
}

int64_t TensorSpec::elements() const {
  return productOf(dims, 0);
}
int64_t TensorSpec::lastDim() const {
  return dims.empty() ? 1 : dims.back();
}
int64_t TensorSpec::rows() const {
  return lastDim() == 0 ? 0 : elements() / lastDim();
}
int64_t TensorSpec::rowWidth() const {
  return dims.empty() ? 1 : productOf(dims, 1);
}

Operation::Operation(const dtf_plugin_operation& given)
    : name(given.name),
      op(given.op),
      inputs(copyOf(given.inputs, given.inputs_size)),
      outputs(copyOf(given.outputs, given.outputs_size)) {
  for (size_t i = 0; i < given.attributes_size; ++i) {
    const dtf_plugin_attribute& attribute = given.attributes[i];
    if (attribute.type == DTF_PLUGIN_NUMBER) numbers_[attribute.key] = attribute.number;
    if (attribute.type == DTF_PLUGIN_INTEGER) integers_[attribute.key] = attribute.integer;
    if (attribute.type == DTF_PLUGIN_LIST)
      lists_[attribute.key] = {attribute.list, attribute.list + attribute.list_size};
  }
}

double Operation::number(std::string_view key, double fallback) const {
  return valueOf(numbers_, key, fallback);
}
int64_t Operation::integer(std::string_view key, int64_t fallback) const {
  return valueOf(integers_, key, fallback);
}
std::vector<int64_t> Operation::list(std::string_view key) const {
  return valueOf(lists_, key, {});
}

}  // namespace dtf::gpu
