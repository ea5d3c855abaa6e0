#include "common/ps/declaration.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/error.h"
#include "common/ps/optimizer_check.h"
#include "common/ps/replication_rules.h"

namespace dtf::ps {

namespace {

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

void validateWhole(const ModelDeclaration& declaration) {
  for (const ShardLayout& shard : declaration.layout.shards)
    for (const Slice& slice : shard.slices) {
      const VariableInfo& variable = declaration.layout.variables[slice.variable];
      if (slice.count != static_cast<uint64_t>(variable.shape.elements()))
        bad(fmt::format("'{}' is split over several ps, but {} needs the norms of whole variables",
                        variable.name, cluster::optimizerName(declaration.optimizer.kind)));
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

void compareOptimizers(const cluster::OptimizerSpec& ours, const cluster::OptimizerSpec& theirs,
                       Differences& out) {
  out.compare("optimizer", cluster::optimizerName(ours.kind), cluster::optimizerName(theirs.kind));
  out.compare("optimizer: learning_rate's schedule", cluster::scheduleName(ours.schedule.kind),
              cluster::scheduleName(theirs.schedule.kind));
  std::vector<std::string> values;  // of ours, in the order of the visit
  cluster::visitSettings(ours, [&](std::string_view, const auto& value) {
    values.push_back(fmt::format("{}", value));
  });
  size_t next = 0;
  cluster::visitSettings(theirs, [&](std::string_view name, const auto& value) {
    out.compare(fmt::format("optimizer: {}", name), values[next++], fmt::format("{}", value));
  });
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
  if (cluster::needsWholeVariables(declaration.optimizer.kind)) validateWhole(declaration);
  if (const auto fault = replicationFault(declaration.replication, workers)) bad(*fault);
  if (declaration.steps == 0) bad("steps is 0, but must be at least 1");
}

std::string declarationDifference(const ModelDeclaration& ours, const ModelDeclaration& theirs) {
  Differences out;
  compareLayouts(ours.layout, theirs.layout, out);
  compareOptimizers(ours.optimizer, theirs.optimizer, out);
  const cluster::ReplicationSpec& r = ours.replication;
  const cluster::ReplicationSpec& q = theirs.replication;
  out.compare("replication: mode", replicationName(r), replicationName(q));
  out.compare("replication: replicas_to_aggregate", r.replicas_to_aggregate,
              q.replicas_to_aggregate);
  out.compare("replication: total_num_replicas", r.total_num_replicas, q.total_num_replicas);
  out.compare("steps", ours.steps, theirs.steps);
  return out.text();
}

}  // namespace dtf::ps
