// Synchronous replicas: gradients of several clients wait beside a variable until a step has
// enough of them, as in TensorFlow's ConditionalAccumulator and SyncReplicasOptimizer. The engine
// computes them (engine/gradient_accumulator.h, engine/replica_barrier.h). All are stateful.
//
//   op                        inputs                attributes       outputs
//   SyncReplicasTicket        global step           rank int         int64[2]: a number for this
//                                                                    gradient, and the last one of
//                                                                    the rank that has arrived
//   AccumulatorApplyGradient  version, gradient,    rank int         int64[]: the local step; -1 if
//                             local step int64[],                    the gradient was dropped
//                             ticket                                 because it is stale
//   SparseAccumulator-        version, gradient,    rank int         likewise, of rows, as of
//   ApplyGradient             indices, local step,                   Gather
//                             ticket
//   SyncReplicasArrive        global step, ticket,  rank int,        once the step is decided, or
//                             local steps ..        replicas_to_-    at once if the gradient is
//                                                   aggregate int N, stale: int64[1+N], the decided
//                                                   total_num_-      step and its tickets; int64[],
//                                                   replicas int,    1 if they have this gradient;
//                                                   [variables       int64[], the global step
//                                                   string]
//   ApplyAccumulated          variable,             optimizer        int64[]: the version after it;
//                             its slots ..,         string,          takes the decided step, unless
//                             version, decision     [sparse bool]    the variable has it already
//   SyncReplicasFinish        global step           -                none; nothing arrives any more
//   SyncReplicasPause         global step           -                none; no step is decided until
//                                                                    it ends, with the next resume
//   SyncReplicasResume        global step           -                none
//
// `variables` describes the optimizer and the variables in lines: all clients must have the same.
//
// The version of a variable is an int64 variable beside it, the number of steps that it has taken.
// It is read in the same instant as the variable, so it dates the gradient.

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

const TensorSpec kCounter{DType::kInt64, Shape()};
const TensorSpec kTicket{DType::kInt64, Shape{2}};

void wantSpec(const TensorSpec& spec, const char* name, const TensorSpec& wanted) {
  if (!(spec == wanted))
    throw Error(ErrorCode::kBadConfig,
                std::string(name) + " " + specText(spec) + " must be " + specText(wanted));
}

void wantRank(const Attributes& attributes) {
  const int64_t rank = get<int64_t>(attributes, "rank");
  if (rank < 0 || rank >= kReplicasMax)
    throw Error(ErrorCode::kBadConfig, "rank must be from 0 to " +
                                           std::to_string(kReplicasMax - 1) + ", it is " +
                                           std::to_string(rank));
}

Specs inferTicket(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantSpec(inputs[0], "global step", kCounter);
  wantRank(attributes);
  return {kTicket};
}

Specs inferAccumulate(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantSpec(inputs[0], "version", kCounter);
  wantFloat(inputs[1], "gradient");
  wantSpec(inputs[inputs.size() - 2], "local step", kCounter);
  wantSpec(inputs.back(), "ticket", kTicket);
  wantRank(attributes);
  return {kCounter};
}

Specs inferSparseAccumulate(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantGradientOfRows(inputs[1], inputs[2]);
  return inferAccumulate(inputs, attributes);
}

Specs inferArrive(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  if (inputs.size() < 3)
    throw Error(ErrorCode::kBadConfig,
                "takes at least 3 inputs, got " + std::to_string(inputs.size()));
  wantSpec(inputs[0], "global step", kCounter);
  wantSpec(inputs[1], "ticket", kTicket);
  for (const TensorSpec& step : inputs.subspan(2)) wantSpec(step, "local step", kCounter);
  wantRank(attributes);
  const int64_t wanted = get<int64_t>(attributes, "replicas_to_aggregate");
  const int64_t total = get<int64_t>(attributes, "total_num_replicas");
  if (wanted < 1 || wanted > kReplicasMax || total < 1 || total > kReplicasMax)
    throw Error(ErrorCode::kBadConfig,
                "replicas_to_aggregate and total_num_replicas must be from 1 to " +
                    std::to_string(kReplicasMax) + ", they are " + std::to_string(wanted) +
                    " and " + std::to_string(total));
  if (get<int64_t>(attributes, "rank") >= total)
    throw Error(ErrorCode::kBadConfig, "rank " + std::to_string(get<int64_t>(attributes, "rank")) +
                                           " is none of the " + std::to_string(total) +
                                           " replicas");
  return {{DType::kInt64, Shape{1 + wanted}}, kCounter, kCounter};
}

Specs inferApplyAccumulated(std::span<const TensorSpec> inputs, const Attributes&) {
  if (inputs.size() < 3)
    throw Error(ErrorCode::kBadConfig,
                "takes at least 3 inputs, got " + std::to_string(inputs.size()));
  wantFloat(inputs[0], "variable");
  for (size_t i = 1; i + 2 < inputs.size(); ++i)
    wantSame(inputs[0], "variable", inputs[i], ("slot " + std::to_string(i - 1)).c_str());
  wantSpec(inputs[inputs.size() - 2], "version", kCounter);
  const TensorSpec& decision = inputs.back();
  if (decision.dtype != DType::kInt64 || decision.shape.rank() != 1 || decision.shape.dim(0) < 2 ||
      decision.shape.dim(0) > 1 + kReplicasMax)
    throw Error(ErrorCode::kBadConfig, "decision " + specText(decision) +
                                           " must be int64[1 + gradients], of at most " +
                                           std::to_string(kReplicasMax) + " gradients");
  return {kCounter};
}

Specs inferFinish(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSpec(inputs[0], "global step", kCounter);
  return {};
}

}  // namespace

void addSyncOps(OpCatalog& catalog) {
  const AttributeDef rank{"rank", Type::kInt};
  catalog.add({"SyncReplicasTicket", 1, {rank}, inferTicket, true});
  catalog.add({"AccumulatorApplyGradient", 4, {rank}, inferAccumulate, true});
  catalog.add({"SparseAccumulatorApplyGradient", 5, {rank}, inferSparseAccumulate, true});
  catalog.add({"SyncReplicasArrive",
               -1,
               {rank,
                {"replicas_to_aggregate", Type::kInt},
                {"total_num_replicas", Type::kInt},
                {"variables", Type::kString, false}},
               inferArrive,
               true});
  catalog.add({"ApplyAccumulated",
               -1,
               {{"optimizer", Type::kString}, {"sparse", Type::kBool, false}},
               inferApplyAccumulated,
               true});
  catalog.add({"SyncReplicasFinish", 1, {}, inferFinish, true});
  catalog.add({"SyncReplicasPause", 1, {}, inferFinish, true});
  catalog.add({"SyncReplicasResume", 1, {}, inferFinish, true});
}

}  // namespace dtf::graph
