#pragma once

// The graph of a replica, its batches, and the values of an undisturbed training.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include "tests/session_sim/replicas_plan.h"

namespace dtf::sim {

struct ReplicaGraph {
  graph::Graph graph;
  std::string train;               // the output that takes a step
  std::string accepted;            // 1 if the step has the client's gradient
  std::vector<std::string> names;  // of the variables
};

// One variable on each ps, and another one on the last. The loss is the sum of their squares, each
// times a factor that is fed, so a gradient follows from the batch and from the values: 2 x factor
// x value.
ReplicaGraph replicaGraph(const ReplicasPlan& plan, uint32_t rank);
// The factors of the variable of this number, as the batch of a step. With backups they are always
// the same: a step may begin while a client prepares the batch of the one before.
Tensor factorOf(const ReplicasPlan& plan, int64_t step, uint32_t rank, size_t variable);

// The values after each step if nothing goes wrong, by a parameter server's own update.
// Owns: the values so far. Borrows: the plan. Threads: one.
class UndisturbedValues {
 public:
  explicit UndisturbedValues(const ReplicasPlan& plan);
  ~UndisturbedValues();

  // Returns the variable's value after `steps` steps.
  const std::vector<float>& after(int64_t steps, size_t variable);

 private:
  struct Store;
  void takeStep();

  const ReplicasPlan& plan_;
  std::vector<std::unique_ptr<Store>> stores_;           // by variable
  std::vector<std::vector<std::vector<float>>> values_;  // by step, variable
};

}  // namespace dtf::sim
