#pragma once

// What variables hold before the first step, and the way from the placer's decisions to the arenas
// of the ps.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/spec.h"
#include "common/graph/placer.h"
#include "common/model/model_graph.h"
#include "common/ps/parameter_client.h"
#include "common/ps/parameter_layout.h"
#include "common/tensor/tensor.h"

namespace dtf::train {

// The value of one variable, a pure function of all arguments. `index` is its place among the
// model's variables, so that equal shapes get different numbers.
//   glorot_uniform, _normal  variance 2 / (inputs + outputs): Glorot and Bengio, AISTATS 2010
//   he_uniform, _normal      variance 2 / inputs: He et al., ICCV 2015
//   lecun_uniform, _normal   variance 1 / inputs: LeCun et al., Neural Networks: Tricks of the
//                            Trade
//   random_uniform           from -0.05 to 0.05, Keras's default
//   truncated_normal         normal with standard deviation 1/sqrt(inputs), drawn again beyond two
//   orthogonal               orthonormal columns, or rows where there are fewer of them: Saxe et
//                            al., ICLR 2014; the matrix is [all dimensions but the last, the last]
//   zeros, ones; constant=0.1: that number
// Inputs and outputs are those of a [inputs, outputs] matrix, or of the filters
// [height, width, channels, filters] of a convolution, times height * width. A *_normal is
// truncated at two standard deviations, and widened so that what is left has the variance, as Keras
// has it. DTF_CHECKs that the initializer is one of these: the graph has validated it. `progress`
// hears after every block how many elements are drawn.
inline constexpr uint64_t kInitialBlockElements = uint64_t{1} << 20;
using BlockDone = std::function<void(uint64_t elements)>;
Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress = nullptr);

// What a job's workers train: buildTrainingGraph(), with sparse gradients where the optimizer takes
// them.
model::ModelGraph trainingGraphOf(const cluster::TrainSpec& train);

// Where the placer put each variable of the model, as the ps and the wire need it.
// Errors: kBadConfig for a variable that is placed on a worker.
ps::ParameterLayout layoutOf(const model::ModelGraph& model, const graph::Placement& placement);

// Which variable is being drawn, and which share of all elements is drawn.
using InitialProgress = std::function<void(const std::string& variable, double share)>;

// The initial values of all variables, laid out as one arena per ps task, padding zero. `progress`
// is called some hundred times a second.
std::vector<Buffer> initialArenas(const model::ModelGraph& model, const ps::ParameterLayout& layout,
                                  uint64_t seed, const InitialProgress& progress = nullptr);

// What this job declares to its ps: the replicas that the file leaves open are filled in with the
// number of workers.
ps::ModelDeclaration declarationOf(const cluster::TrainSpec& train, ps::ParameterLayout layout,
                                   uint32_t workers);

// Into how many shards a job's variables are dealt out: one for each ps, or the one of a job that
// runs in one process.
uint32_t shardsOf(const cluster::ClusterSpec& cluster);

// Where the optimizer allows variables to be split: train.placement. lars and lamb need whole ones:
// train.placement without its partition threshold.
cluster::PlacementSpec placementOf(const cluster::TrainSpec& train);

// As the placement says, for worker `rank` of a cluster with `ps_tasks` parameter servers;
// `one_process`: as in graph::PlacerOptions.
graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            uint32_t ps_tasks, uint32_t rank, bool one_process = false);
graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            const cluster::ClusterSpec& cluster, uint32_t rank);

}  // namespace dtf::train
