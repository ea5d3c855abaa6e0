#pragma once

// Variables on the parameter servers, all other nodes on a worker: TensorFlow's
// replica_device_setter.
//
//   const auto devices = graph.device(dtf::replicaDeviceSetter(cluster, "/job:worker/task:1"));

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "graph.h"
#include "server.h"

namespace dtf {
inline namespace v1 {

// Where the next variable goes.
enum class PsStrategy {
  kRoundRobin,           // to each ps in turn
  kGreedyLoadBalancing,  // to the ps with the fewest bytes of variables
};

// Returns the bytes of a Variable with these attributes; without a shape it is a scalar.
inline uint64_t bytesOfVariable(const std::vector<Attribute>& attributes) {
  uint64_t bytes = sizeof(float);
  for (const Attribute& attribute : attributes) {
    if (const auto* const dims = std::get_if<Dims>(&attribute.value); dims != nullptr)
      for (const int64_t dim : *dims) bytes *= static_cast<uint64_t>(dim);
    if (const auto* const type = std::get_if<dtf_dtype>(&attribute.value); type != nullptr)
      bytes = *type == DTF_INT64 ? bytes * 2 : bytes;
  }
  return bytes;
}

// Returns the function for Graph::device(): each Variable is on a ps, by `strategy`, every other
// node on `worker_device`. Without ps, all nodes are on the worker. Programs that share the
// variables make them in the same order, with the same strategy. Copies share the state; use it for
// one graph.
inline DeviceFunction replicaDeviceSetter(size_t ps_tasks,
                                          const std::string& worker_device = "/job:worker",
                                          PsStrategy strategy = PsStrategy::kRoundRobin) {
  struct State {
    std::vector<uint64_t> bytes;  // on each ps
    size_t next = 0;
  };
  const auto state = std::make_shared<State>();
  state->bytes.resize(ps_tasks);
  return [state, worker_device, strategy](const std::string& op,
                                          const std::vector<Attribute>& attributes) {
    if (op != "Variable" || state->bytes.empty()) return worker_device;
    std::vector<uint64_t>& bytes = state->bytes;
    const size_t ps =
        strategy == PsStrategy::kRoundRobin
            ? state->next++ % bytes.size()
            : static_cast<size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    bytes[ps] += bytesOfVariable(attributes);
    return "/job:ps/task:" + std::to_string(ps);
  };
}

inline DeviceFunction replicaDeviceSetter(const ClusterSpec& cluster,
                                          const std::string& worker_device = "/job:worker",
                                          PsStrategy strategy = PsStrategy::kRoundRobin) {
  return replicaDeviceSetter(cluster.numTasks("ps"), worker_device, strategy);
}

}  // namespace v1
}  // namespace dtf
