#pragma once

// The values of a model's variables before the first step, and the way from the placer's
// decisions to the arenas of the ps.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/arena/parameter_layout.h"
#include "common/cluster/spec.h"
#include "common/graph/placer.h"
#include "common/model/model_graph.h"
#include "common/tensor/buffer.h"

namespace dtf::train {

// Returns the graph that a job's workers train: buildTrainingGraph(), with sparse gradients if the
// optimizer supports them.
model::ModelGraph trainingGraphOf(const cluster::TrainSpec& train);

// Returns the placement of the model's variables as a layout, as ps and workers need it.
// Errors: kBadConfig if a variable is placed on a worker.
arena::ParameterLayout layoutOf(const model::ModelGraph& model, const graph::Placement& placement);

// Receives the variable that is being drawn, and the share of all elements drawn so far.
using InitialProgress = std::function<void(const std::string& variable, double share)>;

// Returns the initial values of all variables, laid out as one arena for each ps, with padding 0.
// Calls `progress` some hundred times a second.
std::vector<Buffer> initialArenas(const model::ModelGraph& model,
                                  const arena::ParameterLayout& layout, uint64_t seed,
                                  const InitialProgress& progress = nullptr);

// Returns the job's declaration to its ps. Replica counts that the file leaves open follow from the
// number of workers.
arena::ModelDeclaration declarationOf(const cluster::TrainSpec& train,
                                      arena::ParameterLayout layout, uint32_t workers);

// Returns the number of shards of a job's variables: one for each ps, or one for a job in a single
// process.
uint32_t shardsOf(const cluster::ClusterSpec& cluster);

// Returns train.placement; for lars and lamb with whole variables, which they need.
cluster::PlacementSpec placementOf(const cluster::TrainSpec& train);

// Places `graph` for worker `rank` of a cluster with `ps_tasks` ps. `one_process`: as in
// graph::PlacerOptions.
graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            uint32_t ps_tasks, uint32_t rank, bool one_process = false);
graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            const cluster::ClusterSpec& cluster, uint32_t rank);

}  // namespace dtf::train
