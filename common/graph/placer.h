#pragma once

// Decides where every node runs: variables on ps tasks, everything else on the worker. A pure
// function of the graph and the options, so that workers that build the same graph agree without
// talking.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/device_name.h"
#include "common/graph/graph.h"

namespace dtf::graph {

enum class PlacementStrategy : uint8_t {
  // TensorFlow's replica_device_setter: a counter over the ps tasks, in the order in which
  // variables were created, blind to their size.
  kRoundRobin,
  // TensorFlow's GreedyLoadBalancingStrategy by bytes: in creation order, each variable to the ps
  // with the fewest bytes, the lowest of equals. A large variable that comes last still tips the
  // balance; that is what splitting is for.
  kGreedy,
};

struct PlacerOptions {
  uint32_t ps_tasks = 0;  // 0: variables stay on the worker, as without a ps job in TensorFlow
  DeviceName worker;      // every field set
  // Whatever ps a pin or a variable names is ps/0, or, without any, the worker: so the same file
  // trains with one ps, in one process, and is applied without a cluster.
  bool one_process = false;
  PlacementStrategy strategy = PlacementStrategy::kRoundRobin;
  // Variable -> device; merged over the variable's own device constraint.
  std::map<std::string, std::string> pins;
  // A variable of at least this many bytes is split over all ps tasks, unless it is pinned to one.
  // 0: none.
  uint64_t partition_min_bytes = 0;
};

// Elements [begin, begin + count) of the flattened variable.
struct VariablePart {
  uint32_t ps_task = 0;
  uint64_t begin = 0;  // a multiple of kPartAlignment; of a sparse variable, of a row
  uint64_t count = 0;
  bool operator==(const VariablePart&) const = default;
};

inline constexpr uint64_t kPartAlignment = 16;  // elements: one cache line of float32

struct PlacedVariable {
  NodeId node;
  std::string name;
  Shape shape;
  // In order, covering every element once; one part when it is whole, none when it is on a worker.
  std::vector<VariablePart> parts;
  // Of a sparse variable: how many rows a step looks up, at most.
  std::optional<uint64_t> gradient_rows_max = std::nullopt;
  uint64_t bytes() const { return static_cast<uint64_t>(shape.elements()) * sizeof(float); }
  // What a worker pushes of it in a step, at most: of a sparse one rows, with their ids.
  uint64_t gradientBytesMax() const;
};

struct Placement {
  uint32_t ps_tasks = 0;
  std::vector<DeviceName>
      devices;  // by NodeId, every field set; a split variable: its first part's
  std::vector<PlacedVariable> variables;  // in creation order

  const DeviceName& device(NodeId node) const { return devices[static_cast<size_t>(node.value)]; }
  const PlacedVariable* variable(NodeId node) const;  // nullptr: not a variable
};

// A variable without a constraint, or constrained to "/job:ps" alone, is dealt by the strategy. One
// that is pinned to a task stays there and is left out of the deal: it doesn't advance the round
// robin (in TensorFlow it does), and under kGreedy its bytes count from the start. Splitting deals
// even runs of whole 16-element blocks, in ps order; of a sparse variable, one that an
// ApplySparseGradient updates, whole rows. Both of them go where their variable is,
// whatever it asks for. Any other node's constraint is merged over the worker's device; one that
// names another task and no device there gets the first CPU, one that names another job and no task
// gets task 0.
// Errors: kBadConfig for a pin of an unknown variable, a device that is not understood, a ps task
// that doesn't exist, or an ApplyGradient whose first input is not a Variable.
Placement place(const Graph& graph, const PlacerOptions& options);

// The table printed to users: each variable's shape, bytes and device(s), each ps task's share, and
// totals; where some variable is sparse, also what the gradient of each has.
std::string placementTable(const Placement& placement);

}  // namespace dtf::graph
