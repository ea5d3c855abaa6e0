#pragma once

// Placement: variables on ps tasks, everything else on the worker. A pure function of the graph and
// the options, so that workers with equal graphs agree without communication.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/graph/graph.h"

namespace dtf::graph {

enum class PlacementStrategy : uint8_t {
  // TensorFlow's replica_device_setter: a counter over the ps tasks, in the variables' creation
  // order, regardless of size.
  kRoundRobin,
  // TensorFlow's GreedyLoadBalancingStrategy by bytes: in creation order, each variable goes to the
  // ps with the fewest bytes, the lowest index of equals. A large variable at the end still tips
  // the balance; splitting avoids that.
  kGreedy,
  // The same number of bytes on each ps, up to one block a variable: small variables follow each
  // other, in creation order, and are cut where a ps is full.
  kEven,
  // Sparse variables lie on the first `sparse_shards` shards, the others on the other shards, each
  // as with kEven.
  kHybrid,
};

inline constexpr uint64_t kPartAlignment = 16;  // elements: one cache line of float32

struct PlacerOptions {
  uint32_t ps_tasks = 0;  // 0: variables stay on the worker, as without a ps job in TensorFlow
  DeviceName worker;      // every field set
  // Maps every ps in a pin or a variable to ps/0, or, without any ps, to the worker. So one file
  // trains with one ps or in one process, and is applied without a cluster.
  bool one_process = false;
  PlacementStrategy strategy = PlacementStrategy::kRoundRobin;
  // Variable -> device; merged over the variable's own device constraint.
  std::map<std::string, std::string> pins;
  // A variable of at least this many bytes is split over all ps tasks, unless it is pinned to one.
  // 0: never.
  uint64_t partition_min_bytes = 0;
  // Parts of a variable begin at multiples of so many elements; of a sparse one, at rows.
  uint64_t part_alignment = kPartAlignment;
  // No variable is cut; kEven then deals them as kGreedy does.
  bool whole_variables = false;
  // kEven, kHybrid: the weight of each ps, more than 0: twice the weight, twice the bytes. Empty:
  // all equal.
  std::vector<double> shares{};
  // kHybrid: see there. As kEven if it is 0, or the number of all shards.
  uint32_t sparse_shards = 0;
};

// Elements [begin, begin + count) of the flattened variable.
struct VariablePart {
  uint32_t ps_task = 0;
  uint64_t begin = 0;  // a multiple of part_alignment; for a sparse variable, of a row
  uint64_t count = 0;
  bool operator==(const VariablePart&) const = default;
};

struct PlacedVariable {
  NodeId node;
  std::string name;
  Shape shape;
  // In order, each element once; one part if the variable is whole, none if it is on a worker.
  std::vector<VariablePart> parts;
  // For a sparse variable: the largest number of rows looked up in a step.
  std::optional<uint64_t> gradient_rows_max = std::nullopt;
  uint64_t bytes() const { return static_cast<uint64_t>(shape.elements()) * sizeof(float); }
  // Returns the largest gradient a worker pushes per step; for a sparse variable, rows with their
  // ids.
  uint64_t gradientBytesMax() const;
};

struct Placement {
  uint32_t ps_tasks = 0;
  std::vector<DeviceName>
      devices;  // by NodeId, every field set; a split variable: its first part's
  std::vector<PlacedVariable> variables;  // in creation order

  const DeviceName& device(NodeId node) const { return devices[static_cast<size_t>(node.value)]; }
  const PlacedVariable* variable(NodeId node) const;  // nullptr if it is no variable
};

// Places all nodes.
// The strategy distributes variables without a constraint, or with the constraint "/job:ps" alone.
// A variable pinned to a task stays there and is skipped: it doesn't advance the round robin (in
// TensorFlow it does), and under kGreedy its bytes count from the start. Splitting distributes even
// runs of whole 16-element blocks, in ps order; a sparse variable, one updated by an
// ApplySparseGradient, is split at rows. kEven counts pinned variables, and cuts at such blocks.
// Its shares divide large variables and all others alike. ApplyGradient and ApplySparseGradient are
// placed with their variable, regardless of their own constraint. Any other node's constraint is
// merged over the worker's device. If it names another task but no device, the node gets that
// task's first CPU; if it names another job but no task, task 0. Errors: kBadConfig for a pin of an
// unknown variable, a malformed device, a ps task that doesn't exist, or an ApplyGradient whose
// first input is not a Variable.
Placement place(const Graph& graph, const PlacerOptions& options);

// Returns the table printed to users: shape, bytes and devices of each variable, each ps task's
// share, and totals; with sparse variables, also the sizes of gradients.
// `hosts`: the tasks that host the shards.
std::string placementTable(const Placement& placement, const ShardHosts& hosts = {});

}  // namespace dtf::graph
