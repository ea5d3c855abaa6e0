#include "common/train/graph_saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/verify.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_text.h"
#include "common/train/checkpointer.h"
#include "common/train/one_step_read.h"

namespace dtf::train {

namespace {

using checkpoint::Latest;
using checkpoint::Manifest;
using checkpoint::VariableInfo;
using graph::Node;

// The variables of a graph as a checkpoint has them.
struct SavedVariables {
  std::vector<VariableInfo> variables;  // with their slots
  std::vector<std::string> counters;
  std::vector<cluster::OptimizerSpec> optimizers;  // in the graph, each once
};

void addOptimizer(const Node& node, std::vector<cluster::OptimizerSpec>& known) {
  const auto spec = optimizer::decodeOptimizer(node.attribute<std::string>("optimizer"));
  if (std::find(known.begin(), known.end(), spec) == known.end()) known.push_back(spec);
}

// A slot is saved with its variable if it has the name of one: "w/Adam" of "w".
std::map<std::string, std::vector<std::string>> slotsIn(
    const graph::Graph& graph, std::vector<cluster::OptimizerSpec>& specs) {
  std::map<std::string, std::vector<std::string>> slots;
  for (const Node& node : graph.nodes()) {
    const bool has_version = node.op == "ApplyAccumulated";
    if (!has_version && node.op != "ApplyOptimizer" && node.op != "ApplySparseOptimizer") continue;
    addOptimizer(node, specs);
    const auto variables = graph::variablesOf(node);
    const std::string& name = graph.node(variables[0].node).name;
    for (const graph::Output& slot : variables.subspan(1, variables.size() - 1 - has_version)) {
      const std::string& full = graph.node(slot.node).name;
      const bool is_of_it =
          full.starts_with(name + "/") && full.find('/', name.size() + 1) == std::string::npos;
      std::vector<std::string>& known = slots[name];
      const std::string suffix = is_of_it ? full.substr(name.size() + 1) : std::string();
      if (is_of_it && std::find(known.begin(), known.end(), suffix) == known.end())
        known.push_back(suffix);
    }
  }
  return slots;
}

void wantName(const std::string& name) {
  if (!checkpoint::isVariableName(name))
    throw Error(ErrorCode::kBadConfig,
                "the variable '" + printable(name) +
                    "' can't be saved: a name in a checkpoint has 1 to 512 of letters, digits and "
                    "_ . - /");
}

SavedVariables variablesIn(const graph::Graph& graph) {
  SavedVariables found;
  const auto slots = slotsIn(graph, found.optimizers);
  std::set<std::string> taken;
  for (const auto& [variable, suffixes] : slots)
    for (const std::string& suffix : suffixes) taken.insert(variable + "/" + suffix);
  for (const Node& node : graph.nodes()) {
    if (node.op != "Variable") continue;
    wantName(node.name);
    if (node.outputs[0].dtype == DType::kInt64) {
      found.counters.push_back(node.name);
    } else if (!taken.contains(node.name)) {
      const auto of_it = slots.find(node.name);
      found.variables.push_back(
          {node.name, node.outputs[0].shape,
           of_it == slots.end() ? std::vector<std::string>() : of_it->second});
    }
  }
  if (found.variables.empty() && found.counters.empty())
    throw Error(ErrorCode::kBadConfig, "the graph has no variables to save or restore");
  return found;
}

// Returns the names of the variables and of their slots, in the order of the file.
std::vector<std::string> tensorsOf(const std::vector<VariableInfo>& variables) {
  std::vector<std::string> names;
  for (const VariableInfo& variable : variables) {
    names.push_back(variable.name);
    for (const std::string& slot : variable.slots) names.push_back(variable.name + "/" + slot);
  }
  return names;
}

void wantFinite(const std::string& name, const Tensor& value) {
  if (const auto bad = optimizer::firstNonFinite(value.as<float>()))
    throw Error(ErrorCode::kTrainingFailed,
                fmt::format("the variable '{}' is {} at element {}: nothing was saved; restore the "
                            "checkpoint before",
                            name, value.as<float>()[*bad], *bad));
}

std::string optimizersText(const std::vector<cluster::OptimizerSpec>& optimizers) {
  std::vector<std::string> texts;
  for (const cluster::OptimizerSpec& each : optimizers) {
    std::string text = optimizerText(each);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return texts.empty() ? "none" : join(texts, ", ");
}

std::string countersText(const std::vector<std::string>& names, std::span<const Tensor> values) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += names[i] + "=" + std::to_string(values[i].as<int64_t>()[0]) + "\n";
  return text;
}

// Returns a line for each variable or slot that the checkpoint lacks, or has with another shape.
std::string lacking(const Manifest& saved, const std::vector<VariableInfo>& wanted) {
  std::map<std::string, Shape> known;
  for (const VariableInfo& variable : saved.variables) {
    known.emplace(variable.name, variable.shape);
    for (const std::string& slot : variable.slots)
      known.emplace(variable.name + "/" + slot, variable.shape);
  }
  std::string lines;
  for (const VariableInfo& variable : wanted) {
    for (const std::string& name : tensorsOf({variable})) {
      const auto found = known.find(name);
      if (found == known.end())
        lines += "\n  the checkpoint lacks " + name + " " + variable.shape.str();
      else if (!(found->second == variable.shape))
        lines += "\n  " + name + " has shape " + found->second.str() + " in the checkpoint, " +
                 variable.shape.str() + " in this graph";
    }
  }
  return lines;
}

// Names damaged checkpoints in the log, as a job does.
void warnOfDamaged(const std::vector<checkpoint::Rejected>& rejected) {
  for (const checkpoint::Rejected& one : rejected)
    for (const checkpoint::Problem& problem : one.problems)
      log::warning("event=checkpoint_rejected step={} file={}{} reason=\"{}\"", one.step,
                   problem.file, problem.tensor.empty() ? "" : " tensor=" + problem.tensor,
                   problem.reason);
}

// Warns of a newer checkpoint: of another run, or of this one before it went back.
void warnOfNewer(checkpoint::CheckpointFolder& folder, uint64_t step) {
  const std::vector<uint64_t> steps = folder.steps();
  if (steps.empty() || steps.back() <= step) return;
  log::warning(
      "event=newer_checkpoint saved={} newer={} reason=\"a restore of the folder takes the newer "
      "one: move it away if it is of an abandoned run, or save each run in a folder of its own\"",
      folder.stepFolder(step).string(), folder.stepFolder(steps.back()).string());
}

// Returns the step by which a checkpoint is named.
uint64_t stepIn(const std::string& counter, const Tensor& value) {
  const int64_t step = value.as<int64_t>()[0];
  if (step < 0)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("the counter '{}' is {}, so it can't name a checkpoint: set it to 0 or "
                            "more",
                            counter, step));
  return static_cast<uint64_t>(step);
}

bool haveSameValues(const Manifest& a, const Manifest& b) {
  const auto counters = [](const Manifest& manifest) {
    const auto found = manifest.extra.find(kCountersKey);
    return found == manifest.extra.end() ? std::string() : found->second;
  };
  return a.shards == b.shards && counters(a) == counters(b);
}

// Returns the variables that count the steps of others, and the global step, of a graph with
// synchronous replicas.
std::vector<std::string> versionsIn(const graph::Graph& graph) {
  std::vector<std::string> versions;
  for (const Node& node : graph.nodes()) {
    if (node.op != "ApplyAccumulated" && node.op != graph::kArriveOp) continue;
    const auto variables = graph::variablesOf(node);
    versions.push_back(graph.node(variables.back().node).name);
  }
  return versions;
}

}  // namespace

std::map<std::string, int64_t> countersIn(const Manifest& manifest) {
  std::map<std::string, int64_t> counters;
  const auto text = manifest.extra.find(kCountersKey);
  if (text == manifest.extra.end()) return counters;
  for (const std::string& line : split(text->second, '\n')) {
    if (line.empty()) continue;
    const size_t equals = line.rfind('=');
    int64_t value = 0;
    const char* const end = line.data() + line.size();
    const char* const begin = equals == std::string::npos ? end : line.data() + equals + 1;
    const auto read = std::from_chars(begin, end, value);
    if (read.ec != std::errc() || read.ptr != end)
      throw Error(ErrorCode::kBadData, "the checkpoint's counters have a line '" + printable(line) +
                                           "' that is no NAME=NUMBER");
    counters[line.substr(0, equals)] = value;
  }
  return counters;
}

GraphSaver::GraphSaver(FileSystem& file_system, GraphSaverOptions options)
    : file_system_(file_system),
      options_(std::move(options)),
      incarnation_(options_.incarnation.value_or(Incarnation::ofNow())) {
  DTF_CHECK(!options_.global_step.empty());
}

std::filesystem::path GraphSaver::save(engine::Session& session,
                                       const std::filesystem::path& folder,
                                       std::optional<uint64_t> step) {
  SavedVariables saved = variablesIn(session.graph());
  std::vector<std::string> fetches = tensorsOf(saved.variables);
  const size_t floats = fetches.size();
  fetches.insert(fetches.end(), saved.counters.begin(), saved.counters.end());
  const std::vector<Tensor> values = readOfOneStep(session, fetches, versionsIn(session.graph()),
                                                   {.patience = options_.pause_max,
                                                    .pauses_replicas = options_.pauses_replicas,
                                                    .clock = options_.clock,
                                                    .wait_until = options_.wait_until});
  Manifest manifest;
  std::vector<checkpoint::TensorPart> parts;
  for (size_t i = 0; i < floats; ++i) {
    wantFinite(fetches[i], values[i]);
    const std::span<const float> all = values[i].as<float>();
    parts.push_back({fetches[i], values[i].shape(), 0, all.size(), all.data()});
  }
  const std::span<const Tensor> counts = std::span(values).subspan(floats);
  const auto counter =
      std::find(saved.counters.begin(), saved.counters.end(), options_.global_step);
  if (counter != saved.counters.end())
    step = stepIn(*counter, counts[static_cast<size_t>(counter - saved.counters.begin())]);
  if (!step)
    throw Error(ErrorCode::kBadConfig, "the graph has no counter '" + options_.global_step +
                                           "', by which checkpoints are named: give the step");
  manifest.job = options_.job;
  manifest.global_step = *step;
  manifest.optimizer = optimizersText(saved.optimizers);
  if (!saved.optimizers.empty()) {
    const auto clock = optimizer::OptimizerClock::stateAfter(saved.optimizers[0], *step);
    manifest.clocks = {{clock.applies, clock.beta1_power, clock.beta2_power}};
  }
  manifest.variables = std::move(saved.variables);
  manifest.created = wallTimeText();
  manifest.dtf_version = DTF_VERSION;
  if (!saved.counters.empty()) manifest.extra[kCountersKey] = countersText(saved.counters, counts);
  write(folder, std::move(manifest), parts);
  return folder / fmt::format("step-{}", *step);
}

void GraphSaver::write(const std::filesystem::path& path, Manifest manifest,
                       const std::vector<checkpoint::TensorPart>& parts) {
  checkpoint::CheckpointFolder folder(file_system_, path, incarnation_);
  folder.prepare();
  folder.sweepStale();
  const uint64_t step = manifest.global_step;
  const std::string attempt = folder.beginAttempt(step);
  try {
    manifest.shards = {checkpoint::writeShard(file_system_, path / attempt, 0, 1, parts)};
    const auto outcome = folder.commit(manifest);
    if (outcome == checkpoint::CommitOutcome::kKeptExisting &&
        !haveSameValues(checkpoint::readManifest(file_system_, folder.stepFolder(step)), manifest))
      throw Error(ErrorCode::kCannotWrite,
                  fmt::format("there is a checkpoint {} with other values, which stays: save in "
                              "another folder, or restore that one before you go on",
                              folder.stepFolder(step).string()));
  } catch (const Error&) {
    folder.abandon();
    throw;
  }
  // Newer steps of another run must not take the place of this one.
  folder.prune({.keep = options_.max_to_keep, .also = {step}});
  warnOfNewer(folder, step);
}

std::optional<std::filesystem::path> GraphSaver::latest(const std::filesystem::path& folder) {
  checkpoint::CheckpointFolder checkpoints(file_system_, folder, incarnation_);
  const Latest latest = checkpoints.latestValid();
  warnOfDamaged(latest.rejected);
  return latest.found ? std::optional(latest.found->folder) : std::nullopt;
}

// A checkpoint has a manifest; a folder of checkpoints has none.
Latest::Found GraphSaver::find(const std::filesystem::path& path) {
  if (file_system_.exists(path / checkpoint::kManifestFile)) {
    checkpoint::Verification verified =
        checkpoint::verifyCheckpoint(file_system_, path, checkpoint::VerifyDepth::kFull);
    if (verified.whole()) return {path, std::move(*verified.manifest)};
    const checkpoint::Problem& first = verified.problems.at(0);
    throw Error(first.forbidden ? ErrorCode::kPermission : ErrorCode::kBadData,
                fmt::format("the checkpoint {} can't be used: {}", path.string(), first.reason));
  }
  checkpoint::CheckpointFolder checkpoints(file_system_, path, incarnation_);
  Latest latest = checkpoints.latestValid();
  if (latest.found) {
    warnOfDamaged(latest.rejected);
    return std::move(*latest.found);
  }
  std::string why;
  for (const checkpoint::Rejected& rejected : latest.rejected)
    why += "\n  " + rejected.problems.at(0).reason;
  throw Error(ErrorCode::kBadData,
              why.empty() ? fmt::format("there is no checkpoint in {}: save one first, or name a "
                                        "folder step-N",
                                        path.string())
                          : fmt::format("none of the checkpoints in {} can be used:{}",
                                        path.string(), why));
}

// The global step of synchronous replicas voids each gradient that is under way from the values
// before.
std::vector<std::string> GraphSaver::globalStepsLast(const graph::Graph& graph,
                                                     std::vector<std::string> counters) const {
  std::set<std::string> last = {options_.global_step};
  for (const graph::Node& node : graph.nodes())
    if (node.op == graph::kArriveOp) last.insert(graph.node(node.inputs.at(0).node).name);
  std::stable_partition(counters.begin(), counters.end(),
                        [&](const std::string& counter) { return !last.contains(counter); });
  return counters;
}

uint64_t GraphSaver::restore(engine::Session& session, const std::filesystem::path& path) {
  const SavedVariables wanted = variablesIn(session.graph());
  const Latest::Found found = find(path);
  std::string problems = lacking(found.manifest, wanted.variables);
  std::map<std::string, int64_t> counters = countersIn(found.manifest);
  // A job's checkpoint has its global step alone; without synchronous replicas a graph's has no
  // versions. All variables have taken the steps that it counts.
  const int64_t step =
      counters.emplace(options_.global_step, static_cast<int64_t>(found.manifest.global_step))
          .first->second;
  for (std::string& version : versionsIn(session.graph()))
    counters.emplace(std::move(version), step);
  for (const std::string& counter : wanted.counters)
    if (!counters.contains(counter)) problems += "\n  the checkpoint lacks the counter " + counter;
  if (!problems.empty())
    throw Error(ErrorCode::kBadConfig, fmt::format("{} is a checkpoint of another graph:{}",
                                                   found.folder.string(), problems));
  std::vector<std::pair<std::string, Tensor>> values;
  for (const VariableInfo& variable : wanted.variables)
    for (std::string& name : tensorsOf({variable}))
      values.emplace_back(std::move(name), Tensor(DType::kFloat32, variable.shape));
  std::vector<checkpoint::WantedPart> parts;
  for (auto& [name, value] : values)
    parts.push_back({name, 0, value.as<float>().size(), value.as<float>().data()});
  checkpoint::readParts(file_system_, found.folder, found.manifest, parts);
  for (const auto& [name, value] : values) session.setVariable(name, value);
  for (const std::string& counter : globalStepsLast(session.graph(), wanted.counters)) {
    Tensor value(DType::kInt64, Shape());
    value.as<int64_t>()[0] = counters.at(counter);
    session.setVariable(counter, value);
  }
  return found.manifest.global_step;
}

}  // namespace dtf::train
