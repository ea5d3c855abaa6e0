#include "common/train/initial_values.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/ps/replication_rules.h"

namespace dtf::train {

namespace {

float truncatedNormal(Random& random) {
  float value = random.normal();
  while (value < -2 || value > 2) value = random.normal();
  return value;
}

// Fills `values` with what `draw` returns, and calls `progress` with the number done after each
// block.
template <class Draw>
void fill(std::span<float> values, const BlockDone& progress, Draw draw) {
  for (size_t begin = 0; begin < values.size();) {
    const size_t end = std::min<size_t>(values.size(), begin + kInitialBlockElements);
    for (size_t i = begin; i < end; ++i) values[i] = draw();
    begin = end;
    if (progress) progress(begin);
  }
}

// One arena's part of one variable.
void copySlice(const Tensor& value, const ps::Slice& slice, Buffer& arena) {
  const std::span<const float> from = value.as<float>().subspan(slice.begin, slice.count);
  std::copy(from.begin(), from.end(), arena.as<float>() + slice.offset);
}

}  // namespace

Tensor initialValue(std::string_view initializer, const Shape& shape, uint64_t seed, uint32_t index,
                    const BlockDone& progress) {
  Tensor tensor(DType::kFloat32, shape);
  if (initializer == "zeros") return tensor;
  Random random(seed, streamOf(RandomStream::kInitialValues, index));
  const auto inputs = static_cast<double>(shape.rank() > 0 ? shape.dim(0) : 1);
  const double outputs = static_cast<double>(shape.elements()) / inputs;
  if (initializer == "glorot_uniform") {
    const auto limit = static_cast<float>(std::sqrt(6.0 / (inputs + outputs)));
    fill(tensor.as<float>(), progress, [&] { return random.uniform(-limit, limit); });
    return tensor;
  }
  DTF_CHECK_MSG(initializer == "truncated_normal", std::string(initializer));
  const auto deviation = static_cast<float>(1.0 / std::sqrt(inputs));
  fill(tensor.as<float>(), progress, [&] { return deviation * truncatedNormal(random); });
  return tensor;
}

ps::ParameterLayout layoutOf(const graph::Placement& placement) {
  std::vector<ps::VariableParts> variables;
  for (const graph::PlacedVariable& placed : placement.variables) {
    if (placed.parts.empty())
      throw Error(ErrorCode::kBadConfig,
                  "variable '" + placed.name + "' is placed on " +
                      placement.device(placed.node).str() +
                      ", but variables live on ps tasks: remove its pin, or pin it to one");
    ps::VariableParts parts{placed.name, placed.shape, {}};
    for (const graph::VariablePart& part : placed.parts)
      parts.parts.push_back({part.ps_task, part.begin, part.count});
    variables.push_back(std::move(parts));
  }
  return ps::makeLayout(variables, placement.ps_tasks);
}

std::vector<Buffer> initialArenas(const model::ModelGraph& model, const ps::ParameterLayout& layout,
                                  uint64_t seed, const InitialProgress& progress) {
  DTF_CHECK(model.variables.size() == layout.variables.size());
  uint64_t total = 0;
  for (const ps::VariableInfo& variable : layout.variables)
    total += static_cast<uint64_t>(variable.shape.elements());
  uint64_t before = 0;  // elements of the variables that are done
  std::vector<Buffer> arenas;
  for (const ps::ShardLayout& shard : layout.shards)
    arenas.emplace_back(shard.elements * sizeof(float));
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    const graph::Node& node = model.graph.node(model.variables[i].value.node);
    const ps::VariableInfo& variable = layout.variables[i];
    BlockDone block_done;
    if (progress)
      block_done = [&](uint64_t done) {
        progress(variable.name, static_cast<double>(before + done) / static_cast<double>(total));
      };
    const Tensor value = initialValue(node.attribute<std::string>("initializer"), variable.shape,
                                      seed, i, block_done);
    before += static_cast<uint64_t>(variable.shape.elements());
    for (size_t shard = 0; shard < arenas.size(); ++shard)
      for (const ps::Slice& slice : layout.shards[shard].slices)
        if (slice.variable == i) copySlice(value, slice, arenas[shard]);
  }
  return arenas;
}

ps::ModelDeclaration declarationOf(const cluster::TrainSpec& train, ps::ParameterLayout layout,
                                   uint32_t workers) {
  ps::ModelDeclaration declaration{std::move(layout), train.optimizer,
                                   ps::completeReplication(train.replication, workers),
                                   train.steps};
  return declaration;
}

cluster::PlacementSpec placementOf(const cluster::TrainSpec& train) {
  cluster::PlacementSpec placement = train.placement;
  if (cluster::needsWholeVariables(train.optimizer.kind)) placement.partition_min_bytes = 0;
  return placement;
}

graph::Placement placeModel(const graph::Graph& graph, const cluster::PlacementSpec& placement,
                            uint32_t ps_tasks, uint32_t rank) {
  graph::PlacerOptions options;
  options.ps_tasks = ps_tasks;
  options.worker = graph::fullDevice({JobKind::kWorker, rank});
  options.strategy = placement.strategy == cluster::PlacementSpec::Strategy::kGreedy
                         ? graph::PlacementStrategy::kGreedy
                         : graph::PlacementStrategy::kRoundRobin;
  options.pins = placement.pins;
  options.partition_min_bytes = placement.partition_min_bytes;
  return graph::place(graph, options);
}

}  // namespace dtf::train
