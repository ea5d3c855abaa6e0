#include "common/shard/declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/optimizer_settings.h"
#include "common/model/former_names.h"
#include "common/optimizer/optimizer_check.h"
#include "common/optimizer/sparse_update.h"
#include "common/replication/replication_rules.h"

namespace dtf::shard {

namespace {

[[noreturn]] void bad(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is refused: " + what);
}

// Refuses a variable that is not a trained table of rows.
void validateTable(const arena::VariableInfo& variable) {
  if (variable.shape.rank() == 0 || variable.shape.elements() == 0 || variable.momentum)
    bad(fmt::format("'{}' {} cannot be sparse: it is not a trained table of rows", variable.name,
                    variable.shape.str()));
}

// Refuses a slice that isn't whole rows of `variable`, which passed validateTable().
void validateRows(const arena::VariableInfo& variable, const arena::Slice& slice) {
  const uint64_t row = arena::rowElements(variable.shape);
  if (slice.begin % row != 0 || slice.count % row != 0 || slice.count / row > UINT32_MAX)
    bad(fmt::format(
        "elements [{}, +{}) of the sparse '{}' are not whole rows of {} elements, or too many",
        slice.begin, slice.count, variable.name, row));
}

// Refuses slices that don't lie one behind the other, with gaps only for alignment: a shard must
// allocate no more than its variables need.
void validateShard(const arena::ParameterLayout& layout, const arena::ShardLayout& shard) {
  if (shard.elements > kShardElementsMax) {
    bad(fmt::format(
        "a shard of {} elements, more than the {} (120 GiB) that one task can serve; use "
        "more ps, or without ps more workers, or split large variables with "
        "placement.partition",
        shard.elements, kShardElementsMax));
  }
  uint64_t free_from = 0;
  bool behind_sparse = false;
  for (const arena::Slice& slice : shard.slices) {
    if (slice.variable >= layout.variables.size()) {
      bad(fmt::format("a slice of variable {} of {}", slice.variable, layout.variables.size()));
    }
    const arena::VariableInfo& variable = layout.variables[slice.variable];
    const auto elements = static_cast<uint64_t>(variable.shape.elements());
    const bool inside_variable = slice.begin <= elements && slice.count <= elements - slice.begin;
    const bool inside_shard =
        slice.offset <= shard.elements && slice.count <= shard.elements - slice.offset;
    const bool in_order = slice.offset >= free_from && slice.offset % arena::kSliceAlignment == 0 &&
                          slice.offset - free_from < arena::kSliceAlignment;
    if (!inside_variable || !inside_shard || !in_order) {
      bad(fmt::format("elements [{}, +{}) of '{}' at {} don't fit their variable or their shard",
                      slice.begin, slice.count, variable.name, slice.offset));
    }
    if (variable.is_sparse) validateRows(variable, slice);
    if (behind_sparse && !variable.is_sparse)
      bad(fmt::format("'{}' lies behind a sparse variable, but is dense", variable.name));
    behind_sparse = variable.is_sparse;
    free_from = slice.offset + slice.count;
  }
  DTF_CHECK(free_from <= shard.elements);
  if (shard.elements % arena::kSliceAlignment != 0) {
    bad(fmt::format("a shard of {} elements, not a multiple of {}", shard.elements,
                    arena::kSliceAlignment));
  }
  if (shard.elements - free_from >= arena::kSliceAlignment) {
    bad(fmt::format("a shard of {} elements, of which only {} belong to variables", shard.elements,
                    free_from));
  }
}

// Refuses a shard with a gradient too large for one message. It passed validateShard().
void validateGradient(const arena::ParameterLayout& layout, uint32_t ps_task) {
  const uint64_t most = arena::GradientLayout(layout, ps_task).elementsMax();
  if (most > kShardElementsMax)
    bad(fmt::format(
        "a gradient of shard {} that names all rows of its tables has {} elements, row ids "
        "included, more than the {} (120 GiB) that one message carries; use more ps, or without ps "
        "more workers, or split the tables with placement.partition",
        ps_task, most, kShardElementsMax));
}

void validateSparse(const arena::ModelDeclaration& declaration) {
  for (const arena::VariableInfo& variable : declaration.layout.variables)
    if (variable.is_sparse && !optimizer::updatesRows(declaration.optimizer))
      bad(fmt::format("'{}' is sparse, but {} with these settings updates whole variables",
                      variable.name, cluster::optimizerName(declaration.optimizer.kind)));
}

void validateWhole(const arena::ModelDeclaration& declaration) {
  for (const arena::ShardLayout& shard : declaration.layout.shards)
    for (const arena::Slice& slice : shard.slices) {
      const arena::VariableInfo& variable = declaration.layout.variables[slice.variable];
      if (slice.count != static_cast<uint64_t>(variable.shape.elements()))
        bad(fmt::format("'{}' is split over several ps, but {} needs the norms of whole variables",
                        variable.name, cluster::optimizerName(declaration.optimizer.kind)));
    }
}

// Collects differences, "name is X, the job's is Y": the first ones, and their number.
class Differences {
 public:
  static constexpr size_t kNamedMax = 8;
  explicit Differences(std::string_view whose) : whose_(whose) {}
  template <class T>
  void compare(std::string_view name, const T& job, const T& other) {
    if (job == other) return;
    if (++count_ > kNamedMax) return;
    text_ +=
        fmt::format("{}{} is {}, {} is {}", text_.empty() ? "" : "; ", name, other, whose_, job);
  }
  bool empty() const { return count_ == 0; }
  std::string text() const {
    return count_ <= kNamedMax ? text_ : fmt::format("{}; and {} more", text_, count_ - kNamedMax);
  }

 private:
  const std::string_view whose_;
  std::string text_;
  size_t count_ = 0;
};

std::string ruleText(const arena::VariableInfo& variable) {
  if (variable.is_sparse) return "trained, with a gradient of single rows";
  return variable.momentum ? fmt::format("a moving average with momentum {}", *variable.momentum)
                           : "trained";
}

void compareLayouts(const arena::ParameterLayout& job, const arena::ParameterLayout& other,
                    Differences& out) {
  if (job == other) return;
  out.compare("the number of variables", job.variables.size(), other.variables.size());
  out.compare("the number of ps", job.shards.size(), other.shards.size());
  if (!out.empty()) return;
  for (size_t i = 0; i < job.variables.size() && out.empty(); ++i) {
    out.compare(fmt::format("variable {}", i),
                job.variables[i].name + " " + job.variables[i].shape.str(),
                other.variables[i].name + " " + other.variables[i].shape.str());
    if (out.empty())
      out.compare(job.variables[i].name, ruleText(job.variables[i]), ruleText(other.variables[i]));
  }
  if (!out.empty()) return;
  out.compare("the placement of the same variables (fingerprint)",
              fmt::format("{:016x}", job.fingerprint()),
              fmt::format("{:016x}", other.fingerprint()));
}

arena::ModelDeclaration inTodaysNames(arena::ModelDeclaration declaration) {
  for (arena::Setting& setting : declaration.settings)
    setting.value = model::todaysText(setting.value);
  return declaration;
}

void compareSettings(const std::vector<arena::Setting>& job,
                     const std::vector<arena::Setting>& other, Differences& out) {
  std::map<std::string_view, std::string_view> rest;
  for (const arena::Setting& setting : other) rest.emplace(setting.name, setting.value);
  for (const arena::Setting& setting : job) {
    const auto found = rest.find(setting.name);
    if (found == rest.end() || model::todaysText(setting.value) != model::todaysText(found->second))
      out.compare(setting.name, std::string_view(setting.value),
                  found == rest.end() ? "not set" : found->second);
    if (found != rest.end()) rest.erase(found);
  }
  for (const auto& [name, value] : rest) out.compare(name, std::string_view("not set"), value);
}

void validateEpochs(const arena::EpochData& data) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if ((data.examples == 0) != (data.batch_size == 0) || data.examples > kMost ||
      data.batch_size > kMost)
    bad(fmt::format("epochs of {} examples in batches of {}", data.examples, data.batch_size));
}

}  // namespace

void validateLayout(const arena::ParameterLayout& layout) {
  for (const arena::VariableInfo& variable : layout.variables)
    if (variable.momentum && !(*variable.momentum >= 0 && *variable.momentum < 1))
      bad(fmt::format("the moving average '{}' has momentum {}, but it must be from 0 to below 1",
                      variable.name, *variable.momentum));
  for (const arena::VariableInfo& variable : layout.variables)
    if (variable.is_sparse) validateTable(variable);
  for (const arena::ShardLayout& shard : layout.shards) validateShard(layout, shard);
  for (uint32_t ps = 0; ps < layout.shards.size(); ++ps) validateGradient(layout, ps);
}

void validateDeclaration(const arena::ModelDeclaration& declaration, uint32_t ps_tasks,
                         uint32_t workers) {
  if (declaration.layout.shards.size() != ps_tasks) {
    bad(
        fmt::format("a layout of {} shards, but the cluster here has {}: start all tasks, the ps "
                    "too, with the same cluster and train files",
                    declaration.layout.shards.size(), ps_tasks));
  }
  validateLayout(declaration.layout);
  optimizer::validateOptimizer(declaration.optimizer);
  if (cluster::needsWholeVariables(declaration.optimizer.kind)) validateWhole(declaration);
  validateSparse(declaration);
  if (const auto fault = replication::replicationFault(declaration.replication, workers))
    bad(*fault);
  if (declaration.steps == 0) bad("steps is 0, but must be at least 1");
  validateEpochs(declaration.epochs);
}

std::vector<arena::Setting> settingsOf(const arena::ModelDeclaration& declaration) {
  const cluster::ReplicationSpec& replication = declaration.replication;
  std::vector<arena::Setting> all = {
      {"steps", fmt::format("{}", declaration.steps)},
      {"replication.mode", std::string(replication::replicationName(replication))}};
  // Only settings that have an effect in this mode.
  if (replication::sharesSteps(replication)) {
    all.push_back({"replication.replicas_to_aggregate",
                   fmt::format("{}", replication.replicas_to_aggregate)});
    all.push_back(
        {"replication.total_num_replicas", fmt::format("{}", replication.total_num_replicas)});
  }
  if (const std::string topology = replication::topologyText(replication); !topology.empty())
    all.push_back({"replication.topology.hosts", "sum, by " + topology});
  if (const std::optional<uint64_t> steps = replication::staleness(replication))
    all.push_back({"replication.staleness", fmt::format("{}", *steps)});
  const std::vector<arena::Setting> others = {
      {"replication.overlap", replication.overlap ? "true" : "false"},
      {"replication.transfer_dtype", replication::transferText(replication)},
      {"optimizer", std::string(cluster::optimizerName(declaration.optimizer.kind))},
      {"optimizer.schedule",
       std::string(cluster::scheduleName(declaration.optimizer.schedule.kind))}};
  all.insert(all.end(), others.begin(), others.end());
  for (const auto& [name, key] : cluster::optimizerSettings(declaration.optimizer))
    all.push_back(
        {fmt::format("optimizer.{}", name), cluster::settingText(declaration.optimizer, *key)});
  all.insert(all.end(), declaration.settings.begin(), declaration.settings.end());
  if (declaration.epochs.examples > 0)
    all.push_back(
        {"epochs", fmt::format("each of {} examples once an epoch", declaration.epochs.examples)});
  return all;
}

bool declareTheSame(const arena::ModelDeclaration& a, const arena::ModelDeclaration& b) {
  return a == b || inTodaysNames(a) == inTodaysNames(b);
}

std::string declarationDifference(const arena::ModelDeclaration& job,
                                  const arena::ModelDeclaration& other, std::string_view whose) {
  Differences out(whose);
  std::vector<arena::Setting> ours = settingsOf(job);
  std::vector<arena::Setting> theirs = settingsOf(other);
  if (job.optimizer.kind != other.optimizer.kind) {  // each has its own settings
    const auto is_optimizers = [](const arena::Setting& s) {
      return s.name.starts_with("optimizer.");
    };
    std::erase_if(ours, is_optimizers);
    std::erase_if(theirs, is_optimizers);
  }
  if (job.replication.mode != other.replication.mode) {  // and each mode
    const auto is_modes = [](const arena::Setting& s) {
      return s.name.starts_with("replication.") && s.name != "replication.mode";
    };
    std::erase_if(ours, is_modes);
    std::erase_if(theirs, is_modes);
  }
  compareSettings(ours, theirs, out);
  compareLayouts(job.layout, other.layout, out);
  return out.text();
}

}  // namespace dtf::shard
