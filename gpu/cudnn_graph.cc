#include "gpu/cudnn_graph.h"

#include <array>

namespace dtf::gpu {
namespace {

void destroy(void* descriptor) {
  (void)cudnnBackendDestroyDescriptor(static_cast<cudnnBackendDescriptor_t>(descriptor));
}

std::vector<cudnnBackendDescriptor_t> pointersOf(const std::vector<Descriptor>& descriptors) {
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const Descriptor& descriptor : descriptors) pointers.push_back(descriptor.get());
  return pointers;
}

// Returns the configurations of one mode of the heuristics; none if it knows none.
std::vector<Descriptor> configsOf(const Descriptor& graph, const Descriptor& properties,
                                  cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.setDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (properties) heuristics.setDescriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
  int64_t offered = 0;
  if (cudnnBackendFinalize(heuristics.get()) != CUDNN_STATUS_SUCCESS ||
      cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &offered,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> configs;
  for (int64_t i = 0; i < offered; ++i) configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> pointers = pointersOf(configs);
  int64_t given = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, offered, &given, pointers.data()),
        "listing its engines");
  configs.resize(static_cast<size_t>(given));
  return configs;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "describing an operation");
  owned_ = std::shared_ptr<void>(made, destroy);
}

cudnnBackendDescriptor_t Descriptor::get() const {
  return static_cast<cudnnBackendDescriptor_t>(owned_.get());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(get(), name, type, count, values), "describing an operation");
  return *this;
}
Descriptor& Descriptor::setInt(cudnnBackendAttributeName_t name, int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}
Descriptor& Descriptor::setInts(cudnnBackendAttributeName_t name,
                                const std::vector<int64_t>& values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}
Descriptor& Descriptor::setFloat(cudnnBackendAttributeName_t name, float value) {
  return set(name, CUDNN_TYPE_FLOAT, 1, &value);
}
Descriptor& Descriptor::setDescriptor(cudnnBackendAttributeName_t name, const Descriptor& value) {
  refers_to_.push_back(value);
  const cudnnBackendDescriptor_t pointer = value.get();
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer);
}
Descriptor& Descriptor::finalise() {
  check(cudnnBackendFinalize(get()), "describing an operation");
  return *this;
}

std::vector<Descriptor> engineConfigs(const Descriptor& graph, const Descriptor& properties) {
  std::vector<Descriptor> configs = configsOf(graph, properties, CUDNN_HEUR_MODE_A);
  for (Descriptor& config : configsOf(graph, properties, CUDNN_HEUR_MODE_FALLBACK))
    configs.push_back(std::move(config));
  if (configs.empty())
    throw PluginError(DTF_PLUGIN_BAD_CONFIG, "cuDNN has no engine for this convolution.");
  return configs;
}

Plan::Plan(const Descriptor& config, cudnnHandle_t handle)
    : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  plan_.setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
      .set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .finalise();
  int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "asking for a plan's workspace");
  workspace_bytes_ = static_cast<size_t>(bytes);
}

Descriptor Plan::bind(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                      std::byte* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(pointers.size()), pointers.data())
      .setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finalise();
  return pack;
}

void Plan::execute(cudnnHandle_t handle, const Descriptor& bound) const {
  check(cudnnBackendExecute(handle, plan_.get(), bound.get()), "running a convolution");
}

}  // namespace dtf::gpu
