#include "common/ps/declaration.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/error.h"

namespace dtf::ps {

namespace {

using Kind = cluster::OptimizerSpec::Kind;
using Mode = cluster::ReplicationSpec::Mode;

[[noreturn]] void bad(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is refused: " + what);
}

void validateShard(const ParameterLayout& layout, const ShardLayout& shard) {
  if (shard.elements > kShardElementsMax) {
    bad(fmt::format("a shard of {} elements, more than {}; use more parameter servers",
                    shard.elements, kShardElementsMax));
  }
  uint64_t free_from = 0;
  for (const Slice& slice : shard.slices) {
    if (slice.variable >= layout.variables.size()) {
      bad(fmt::format("a slice of variable {} of {}", slice.variable, layout.variables.size()));
    }
    const VariableInfo& variable = layout.variables[slice.variable];
    const auto elements = static_cast<uint64_t>(variable.shape.elements());
    const bool inside_variable = slice.begin <= elements && slice.count <= elements - slice.begin;
    const bool inside_shard =
        slice.offset <= shard.elements && slice.count <= shard.elements - slice.offset;
    const bool in_order = slice.offset >= free_from && slice.offset % kSliceAlignment == 0;
    if (!inside_variable || !inside_shard || !in_order) {
      bad(fmt::format("elements [{}, +{}) of '{}' at {} don't fit their variable or their shard",
                      slice.begin, slice.count, variable.name, slice.offset));
    }
    free_from = slice.offset + slice.count;
  }
  if (shard.elements % kSliceAlignment != 0) {
    bad(fmt::format("a shard of {} elements, not a multiple of {}", shard.elements,
                    kSliceAlignment));
  }
}

void validateOptimizer(const cluster::OptimizerSpec& spec) {
  const bool known = spec.kind == Kind::kGradientDescent || spec.kind == Kind::kAdagrad ||
                     spec.kind == Kind::kAdam;
  if (!known) bad(fmt::format("optimizer kind {}", static_cast<int>(spec.kind)));
  if (!std::isfinite(spec.learning_rate)) bad("learning_rate is not a finite number");
  if (spec.kind == Kind::kAdagrad &&
      !(std::isfinite(spec.initial_accumulator_value) && spec.initial_accumulator_value > 0)) {
    bad(fmt::format("initial_accumulator_value is {}, but must be positive",
                    spec.initial_accumulator_value));
  }
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (spec.kind == Kind::kAdam && !(is_beta(spec.beta1) && is_beta(spec.beta2))) {
    bad(fmt::format("beta1 is {} and beta2 {}, but both must be in [0, 1)", spec.beta1,
                    spec.beta2));
  }
  if (spec.kind == Kind::kAdam && !(std::isfinite(spec.epsilon) && spec.epsilon > 0)) {
    bad(fmt::format("epsilon is {}, but must be positive", spec.epsilon));
  }
}

void validateReplication(const cluster::ReplicationSpec& spec, uint32_t workers) {
  if (spec.mode == Mode::kAsync) return;
  if (spec.mode != Mode::kSync)
    bad(fmt::format("replication mode {}", static_cast<int>(spec.mode)));
  if (spec.total_num_replicas != workers) {
    bad(fmt::format("total_num_replicas is {}, but the cluster has {} workers",
                    spec.total_num_replicas, workers));
  }
  if (spec.replicas_to_aggregate == 0 || spec.replicas_to_aggregate > kReplicasToAggregateMax) {
    bad(fmt::format("replicas_to_aggregate is {}, but must be from 1 to {}",
                    spec.replicas_to_aggregate, kReplicasToAggregateMax));
  }
}

// Collects "name: ours here, theirs there".
class Differences {
 public:
  template <class T>
  void compare(std::string_view name, const T& ours, const T& theirs) {
    if (ours == theirs) return;
    text_ += fmt::format("{}{} is {} for the job, but {} there", text_.empty() ? "" : "; ", name,
                         ours, theirs);
  }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string_view modeName(Mode mode) {
  return mode == Mode::kSync ? "sync" : "async";
}

void compareLayouts(const ParameterLayout& ours, const ParameterLayout& theirs, Differences& out) {
  if (ours == theirs) return;
  out.compare("layout: the number of variables", ours.variables.size(), theirs.variables.size());
  out.compare("layout: the number of ps", ours.shards.size(), theirs.shards.size());
  if (!out.empty()) return;
  for (size_t i = 0; i < ours.variables.size() && out.empty(); ++i) {
    out.compare(fmt::format("layout: variable {}", i),
                ours.variables[i].name + " " + ours.variables[i].shape.str(),
                theirs.variables[i].name + " " + theirs.variables[i].shape.str());
  }
  if (!out.empty()) return;
  out.compare("layout: the placement of the same variables (fingerprint)",
              fmt::format("{:016x}", ours.fingerprint()),
              fmt::format("{:016x}", theirs.fingerprint()));
}

}  // namespace

void validateDeclaration(const ModelDeclaration& declaration, uint32_t ps_tasks, uint32_t workers) {
  if (declaration.layout.shards.size() != ps_tasks) {
    bad(fmt::format("a layout for {} parameter servers, but the cluster has {}",
                    declaration.layout.shards.size(), ps_tasks));
  }
  for (const ShardLayout& shard : declaration.layout.shards) {
    validateShard(declaration.layout, shard);
  }
  validateOptimizer(declaration.optimizer);
  validateReplication(declaration.replication, workers);
  if (declaration.steps == 0) bad("steps is 0, but must be at least 1");
}

std::string declarationDifference(const ModelDeclaration& ours, const ModelDeclaration& theirs) {
  Differences out;
  compareLayouts(ours.layout, theirs.layout, out);
  const cluster::OptimizerSpec& a = ours.optimizer;
  const cluster::OptimizerSpec& b = theirs.optimizer;
  out.compare("optimizer", cluster::optimizerName(a.kind), cluster::optimizerName(b.kind));
  out.compare("optimizer: learning_rate", a.learning_rate, b.learning_rate);
  out.compare("optimizer: initial_accumulator_value", a.initial_accumulator_value,
              b.initial_accumulator_value);
  out.compare("optimizer: beta1", a.beta1, b.beta1);
  out.compare("optimizer: beta2", a.beta2, b.beta2);
  out.compare("optimizer: epsilon", a.epsilon, b.epsilon);
  const cluster::ReplicationSpec& r = ours.replication;
  const cluster::ReplicationSpec& q = theirs.replication;
  out.compare("replication: mode", modeName(r.mode), modeName(q.mode));
  out.compare("replication: replicas_to_aggregate", r.replicas_to_aggregate,
              q.replicas_to_aggregate);
  out.compare("replication: total_num_replicas", r.total_num_replicas, q.total_num_replicas);
  out.compare("steps", ours.steps, theirs.steps);
  return out.text();
}

}  // namespace dtf::ps
