#pragma once

// The values of variables before the first step, and the way from the placer's decisions to the
// arenas of the ps.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/arena/parameter_layout.h"
#include "common/cluster/spec.h"
#include "common/graph/placer.h"
#include "common/model/model_graph.h"
#include "common/tensor/tensor.h"

namespace dtf::train {

// Returns the initial value of a variable, a pure function of all arguments. `index` is its place
// among the model's variables, so that equal shapes get different numbers.
//   glorot_uniform, _normal  variance 2 / (inputs + outputs): Glorot and Bengio, AISTATS 2010
//   he_uniform, _normal      variance 2 / inputs: He et al., ICCV 2015
//   lecun_uniform, _normal   variance 1 / inputs: LeCun et al., Neural Networks: Tricks of the
//                            Trade
//   random_uniform           from -0.05 to 0.05, Keras's default
//   truncated_normal         normal with standard deviation 1/sqrt(inputs), drawn again beyond two
//   orthogonal               orthonormal columns, or rows if there are fewer of them: Saxe et
//                            al., ICLR 2014; the matrix is [all dimensions but the last, the last]
//   zeros, ones; constant=0.1: that number
// For a matrix [inputs, outputs] these are the numbers of inputs and outputs. For the filters
// [height, width, channels, filters] of a convolution, they are channels and filters, times height
// * width. A *_normal is truncated at two standard deviations, and widened so that it has the
// variance, as in Keras. DTF_CHECKs that the initializer is one of these, as the graph has
// validated it. Calls `progress` after every block with the number of elements drawn.
inline constexpr uint64_t kInitialBlockElements = uint64_t{1} << 20;
using BlockDone = std::function<void(uint64_t elements)>;
Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress = nullptr);

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
