#include "common/train/initial_values.h"

#include <algorithm>
#include <span>

#include "common/arena/codec.h"
#include "common/arena/initial_value.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/optimizer/sparse_update.h"
#include "common/replication/replication_rules.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

// Copies one arena's part of a variable.
void copySlice(const Tensor& value, const arena::Slice& slice, Buffer& arena) {
  const std::span<const float> from = value.as<float>().subspan(slice.begin, slice.count);
  std::copy(from.begin(), from.end(), arena.as<float>() + slice.offset);
}

}  // namespace

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
    arena::BlockDone block_done;
    if (progress)
      block_done = [&](uint64_t done) {
        progress(variable.name, static_cast<double>(before + done) / static_cast<double>(total));
      };
    const Tensor value = arena::initialValue(node.attribute<std::string>("initializer"),
                                             variable.shape, seed, i, block_done);
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
