#include "common/train/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "common/arena/codec.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/graph/initializer.h"
#include "common/optimizer/sparse_update.h"
#include "common/replication/replication_rules.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

float truncatedNormal(Random& random) {
  float value = random.normal();
  while (value < -2 || value > 2) value = random.normal();
  return value;
}

// Fills `values` with results of `draw`, and calls `progress` after each block with the number of
// elements drawn.
template <class Draw>
void fill(std::span<float> values, const BlockDone& progress, Draw draw) {
  for (size_t begin = 0; begin < values.size();) {
    const size_t end = std::min<size_t>(values.size(), begin + kInitialBlockElements);
    for (size_t i = begin; i < end; ++i) values[i] = draw();
    begin = end;
    if (progress) progress(begin);
  }
}

// The numbers of inputs and outputs that a variable connects. Value type.
struct Fans {
  double inputs = 1, outputs = 1;
};

Fans fansOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank <= 2)
    return {static_cast<double>(shape.dim(0)), rank == 1 ? 1.0 : static_cast<double>(shape.dim(1))};
  const auto channels = static_cast<double>(shape.dim(rank - 2));
  const auto filters = static_cast<double>(shape.dim(rank - 1));
  const double window = static_cast<double>(shape.elements()) / (channels * filters);
  return {window * channels, window * filters};
}

double varianceOf(std::string_view initializer, const Fans& fans) {
  if (initializer.starts_with("glorot_")) return 2 / (fans.inputs + fans.outputs);
  if (initializer.starts_with("he_")) return 2 / fans.inputs;
  DTF_CHECK_MSG(initializer.starts_with("lecun_"), std::string(initializer));
  return 1 / fans.inputs;
}

// The standard deviation of a standard normal distribution that is truncated at two.
constexpr double kTruncatedDeviation = 0.87962566103423978;

// Uses eight independent sums, always in the same order.
double dot(const double* a, const double* b, size_t n) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) lanes[0] += a[i] * b[i];
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

// Fills `rows` with as many orthonormal rows of `length` elements as fit. Draws normal numbers, and
// orthogonalises them by the modified Gram-Schmidt method twice, as one pass loses digits (Giraud,
// Langou and Rozloznik, 2005).
void drawOrthonormalRows(Random& random, std::vector<double>& rows, size_t length,
                         const BlockDone& progress) {
  DTF_CHECK(length > 0 && rows.size() % length == 0 && rows.size() / length <= length);
  for (size_t begin = 0; begin < rows.size(); begin += length) {
    const std::span<double> row(rows.data() + begin, length);
    for (double& element : row) element = random.normal();
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t other = 0; other < begin; other += length) {
        const double* const q = rows.data() + other;
        const double along = dot(row.data(), q, length);
        for (size_t i = 0; i < length; ++i) row[i] -= along * q[i];
      }
    }
    const double norm = std::sqrt(dot(row.data(), row.data(), length));
    for (double& element : row) element /= norm;
    if (progress) progress(begin + length);
  }
}

void drawOrthogonal(Random& random, Tensor& tensor, const BlockDone& progress) {
  const std::span<float> values = tensor.as<float>();
  const Shape& shape = tensor.shape();
  const size_t columns = shape.rank() == 0 ? 1 : static_cast<size_t>(shape.dim(shape.rank() - 1));
  if (values.empty()) return;
  const size_t rows = values.size() / columns;
  std::vector<double> drawn(values.size());
  drawOrthonormalRows(random, drawn, std::max(rows, columns), progress);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      values[row * columns + column] = static_cast<float>(
          rows < columns ? drawn[row * columns + column] : drawn[column * rows + row]);
}

// Copies one arena's part of a variable.
void copySlice(const Tensor& value, const arena::Slice& slice, Buffer& arena) {
  const std::span<const float> from = value.as<float>().subspan(slice.begin, slice.count);
  std::copy(from.begin(), from.end(), arena.as<float>() + slice.offset);
}

}  // namespace

Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress) {
  Tensor tensor(DType::kFloat32, shape);
  if (initializer == "zeros") return tensor;
  if (initializer == "ones") {
    std::ranges::fill(tensor.as<float>(), 1.0F);
    return tensor;
  }
  if (const std::optional<double> constant = graph::constantOf(initializer)) {
    std::ranges::fill(tensor.as<float>(), static_cast<float>(*constant));
    return tensor;
  }
  Random random(seed, streamOf(RandomStream::kInitialValues, index));
  if (initializer == "orthogonal") {
    drawOrthogonal(random, tensor, progress);
    return tensor;
  }
  const Fans fans = fansOf(shape);
  if (initializer == "truncated_normal") {
    const auto deviation = static_cast<float>(1.0 / std::sqrt(fans.inputs));
    fill(tensor.as<float>(), progress, [&] { return deviation * truncatedNormal(random); });
    return tensor;
  }
  if (initializer == "random_uniform") {
    constexpr float kLimit = 0.05F;
    fill(tensor.as<float>(), progress, [&] { return random.uniform(-kLimit, kLimit); });
    return tensor;
  }
  const double variance = varianceOf(initializer, fans);
  if (initializer.ends_with("_uniform")) {
    const auto limit = static_cast<float>(std::sqrt(3 * variance));
    fill(tensor.as<float>(), progress, [&] { return random.uniform(-limit, limit); });
    return tensor;
  }
  DTF_CHECK_MSG(initializer.ends_with("_normal"), std::string(initializer));
  const auto deviation = static_cast<float>(std::sqrt(variance) / kTruncatedDeviation);
  fill(tensor.as<float>(), progress, [&] { return deviation * truncatedNormal(random); });
  return tensor;
}

model::ModelGraph trainingGraphOf(const cluster::TrainSpec& train) {
  return model::buildTrainingGraph(train.model, train.data.batch_size,
                                   optimizer::updatesRows(train.optimizer)
                                       ? model::TableGradient::kSparse
                                       : model::TableGradient::kDense);
}

arena::ParameterLayout layoutOf(const model::ModelGraph& model, const graph::Placement& placement) {
  DTF_CHECK(placement.variables.size() == model.variables.size());
  std::vector<arena::VariableParts> variables;
  for (size_t i = 0; i < placement.variables.size(); ++i) {
    const graph::PlacedVariable& placed = placement.variables[i];
    DTF_CHECK_MSG(placed.node == model.variables[i].value.node, placed.name);
    if (placed.parts.empty())
      throw Error(ErrorCode::kBadConfig,
                  "variable '" + placed.name + "' is placed on " +
                      placement.device(placed.node).str() +
                      ", but variables live on ps tasks: remove its pin, or pin it to one");
    arena::VariableParts parts{placed.name,
                               placed.shape,
                               {},
                               model.variables[i].momentum,
                               model.variables[i].indices.has_value()};
    for (const graph::VariablePart& part : placed.parts)
      parts.parts.push_back({part.ps_task, part.begin, part.count});
    variables.push_back(std::move(parts));
  }
  return arena::makeLayout(variables, placement.ps_tasks);
}

std::vector<Buffer> initialArenas(const model::ModelGraph& model,
                                  const arena::ParameterLayout& layout, uint64_t seed,
                                  const InitialProgress& progress) {
  DTF_CHECK(model.variables.size() == layout.variables.size());
  uint64_t total = 0;
  for (const arena::VariableInfo& variable : layout.variables)
    total += static_cast<uint64_t>(variable.shape.elements());
  uint64_t before = 0;  // elements of the variables that are done
  std::vector<Buffer> arenas;
  for (const arena::ShardLayout& shard : layout.shards)
    arenas.emplace_back(shard.elements * sizeof(float));
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    const graph::Node& node = model.graph.node(model.variables[i].value.node);
    const arena::VariableInfo& variable = layout.variables[i];
    BlockDone block_done;
    if (progress)
      block_done = [&](uint64_t done) {
        progress(variable.name, static_cast<double>(before + done) / static_cast<double>(total));
      };
    const Tensor value = initialValue(node.attribute<std::string>("initializer"), variable.shape,
                                      seed, i, block_done);
    before += static_cast<uint64_t>(variable.shape.elements());
    for (size_t shard = 0; shard < arenas.size(); ++shard)
      for (const arena::Slice& slice : layout.shards[shard].slices)
        if (slice.variable == i) copySlice(value, slice, arenas[shard]);
  }
  return arenas;
}

uint32_t shardsOf(const cluster::ClusterSpec& cluster) {
  return cluster.shardHosts().size();
}

arena::ModelDeclaration declarationOf(const cluster::TrainSpec& train,
                                      arena::ParameterLayout layout, uint32_t workers) {
  arena::ModelDeclaration declaration{std::move(layout), train.optimizer,
                                      replication::completeReplication(train.replication, workers),
                                      train.steps};
  return declaration;
}

cluster::PlacementSpec placementOf(const cluster::TrainSpec& train) {
  cluster::PlacementSpec placement = train.placement;
  if (cluster::needsWholeVariables(train.optimizer.kind)) placement.whole_variables = true;
  if (replication::isLossy(train.replication)) placement.part_alignment = arena::kCodecBlock;
  return placement;
}

namespace {

graph::PlacementStrategy strategyOf(cluster::PlacementSpec::Strategy strategy) {
  using Strategy = cluster::PlacementSpec::Strategy;
  switch (strategy) {
    case Strategy::kRoundRobin:
      return graph::PlacementStrategy::kRoundRobin;
    case Strategy::kGreedy:
      return graph::PlacementStrategy::kGreedy;
    case Strategy::kEven:
    case Strategy::kAuto:  // as long as nothing is chosen
      return graph::PlacementStrategy::kEven;
    case Strategy::kHybrid:
      return graph::PlacementStrategy::kHybrid;
  }
  DTF_CHECK_MSG(false, "an unknown strategy");
  return {};
}

// Checks that the ps of a hybrid placement have something to host.
void requireSparse(const graph::Graph& graph, const yaml::Mark& mark) {
  if (std::ranges::any_of(graph.nodes(),
                          [](const auto& node) { return node.op == "ApplySparseGradient"; }))
    return;
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, mark,
      "'strategy: hybrid' places the sparse variables on the ps, and this job has none: these are "
      "the tables of embeddings, with an optimizer that updates single rows. Write strategy: even, "
      "or leave 'ps' out of the cluster");
}

}  // namespace

graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            uint32_t ps_tasks, uint32_t rank, bool one_process) {
  graph::PlacerOptions options;
  options.ps_tasks = ps_tasks;
  options.one_process = one_process;
  options.worker = graph::fullDevice({JobKind::kWorker, rank});
  options.strategy = strategyOf(placement.strategy);
  options.pins = placement.pins;
  options.partition_min_bytes = placement.partition_min_bytes;
  options.whole_variables = placement.whole_variables;
  if (placement.part_alignment > 0) options.part_alignment = placement.part_alignment;
  // One process has one shard, whatever the cluster is.
  if (!one_process) options.shares = placement.shares;
  options.sparse_shards = placement.sparse_shards;
  if (options.sparse_shards > 0) requireSparse(graph, placement.strategy_mark);
  return graph::place(graph, options);
}

graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            const cluster::ClusterSpec& cluster, uint32_t rank) {
  return placeModel(graph, placement, shardsOf(cluster), rank, cluster.isOneProcess());
}

}  // namespace dtf::train
