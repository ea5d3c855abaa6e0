#include "common/train/saved_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "common/arena/initial_value.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/checkpoint/former_variables.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/verify.h"
#include "common/data/read_signature.h"
#include "common/model/model_graph.h"
#include "common/model/model_text.h"
#include "common/optimizer/optimizer.h"
#include "common/train/checkpointer.h"
#include "common/train/initial_values.h"
#include "common/train/trained_split.h"

namespace dtf::train {

namespace {

using checkpoint::CheckpointFolder;
using checkpoint::Latest;
using checkpoint::Manifest;
using checkpoint::VariableInfo;

// Largest number of problems in an error.
constexpr size_t kProblemsNamedMax = 10;

std::string problemsText(const std::vector<checkpoint::Problem>& problems) {
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kProblemsNamedMax); ++i)
    text += "\n  " + problems[i].reason;
  if (problems.size() > kProblemsNamedMax)
    text += fmt::format("\n  and {} more", problems.size() - kProblemsNamedMax);
  return text;
}

[[noreturn]] void failNone(const CheckpointFolder& folder, const Latest& latest) {
  if (latest.rejected.empty())
    throw Error(ErrorCode::kBadData,
                fmt::format("there is no checkpoint in {}: train first, without 'checkpoint: "
                            "none'; or name one with --checkpoint, or its run with --run-dir",
                            folder.path().string()));
  std::vector<checkpoint::Problem> problems;
  for (const checkpoint::Rejected& one : latest.rejected) problems.push_back(one.problems.at(0));
  throw Error(ErrorCode::kBadData, fmt::format("none of the checkpoints in {} can be used:{}",
                                               folder.path().string(), problemsText(problems)));
}

// "7" -> 7
std::optional<uint64_t> stepOf(std::string_view text) {
  uint64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, step);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return step;
}

Latest findNamed(FileSystem& file_system, CheckpointFolder& folder, std::string_view which) {
  const std::optional<uint64_t> step = stepOf(which);
  const std::filesystem::path path = step ? folder.stepFolder(*step) : std::filesystem::path(which);
  if (!file_system.exists(path)) {
    const std::vector<uint64_t> steps = folder.steps();
    throw Error(
        ErrorCode::kBadData,
        fmt::format("there is no checkpoint {}{}", path.string(),
                    steps.empty() || !step ? ""
                                           : fmt::format("; there are checkpoints of the steps {}",
                                                         fmt::join(steps, ", "))));
  }
  checkpoint::Verification verified =
      checkpoint::verifyCheckpoint(file_system, path, checkpoint::VerifyDepth::kFull);
  if (!verified.whole())
    throw Error(verified.problems.at(0).forbidden ? ErrorCode::kPermission : ErrorCode::kBadData,
                fmt::format("the checkpoint {} can't be used:{}", path.string(),
                            problemsText(verified.problems)));
  Latest named;
  named.found = Latest::Found{path, std::move(*verified.manifest)};
  return named;
}

Latest find(FileSystem& file_system, CheckpointFolder& folder, std::string_view which) {
  if (!which.empty()) return findNamed(file_system, folder, which);
  Latest latest = folder.latestValid();
  if (!latest.found) failNone(folder, latest);
  return latest;
}

std::vector<std::string> variableNames(const model::ModelGraph& graph) {
  std::vector<std::string> names;
  for (const model::ModelVariable& variable : graph.variables)
    names.push_back(graph.graph.node(variable.value.node).name);
  return names;
}

// Returns the manifest that a job of this model would save. Takes the optimizer and the slots from
// `saved`, as they don't matter here.
Manifest wantedOf(const model::ModelGraph& graph, const Manifest& saved) {
  Manifest wanted;
  wanted.optimizer = saved.optimizer;
  for (const model::ModelVariable& variable : graph.variables) {
    VariableInfo info{
        graph.graph.node(variable.value.node).name, graph.graph.spec(variable.value).shape, {}};
    const auto same =
        std::find_if(saved.variables.begin(), saved.variables.end(),
                     [&info](const VariableInfo& each) { return each.name == info.name; });
    if (same != saved.variables.end()) info.slots = same->slots;
    wanted.variables.push_back(std::move(info));
  }
  return wanted;
}

// The model's text has a list of words as its digest alone.
std::string preparationDifference(const Manifest& saved, const cluster::DatasetSpec* data) {
  if (data == nullptr) return {};
  const std::optional<data::DataSignature> signature = signatureOf(saved);
  return signature ? data::preparationDifference(*data, *signature) : std::string();
}

void checkModel(const Latest::Found& found, const Manifest& wanted, const model::ModelSpec& model,
                const cluster::DatasetSpec* data) {
  std::string difference = checkpoint::manifestDifference(found.manifest, wanted);
  if (difference.empty()) difference = preparationDifference(found.manifest, data);
  const auto text = found.manifest.extra.find(kModelKey);
  if (difference.empty() && text != found.manifest.extra.end())
    difference = model::modelTextDifference(text->second, model::modelText(model));
  if (!difference.empty())
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format("{} is a checkpoint of another model:\n{}\nDescribe the model as it was "
                    "trained, name another run with --run-dir, or train this one with "
                    "dtf-launch up --fresh",
                    found.folder.string(), difference));
}

bool hasAverage(const VariableInfo& variable) {
  return std::find(variable.slots.begin(), variable.slots.end(), optimizer::kMovingAverageSlot) !=
         variable.slots.end();
}

SavedModel read(FileSystem& file_system, const Latest::Found& found, const Manifest& wanted) {
  SavedModel result;
  result.checkpoint = found.folder;
  result.step = found.manifest.global_step;
  result.signature = signatureOf(found.manifest);
  result.eval_split = trainedSplit(found.manifest);
  result.class_names = classNamesOf(found.manifest);
  std::vector<checkpoint::WantedPart> parts;
  for (const VariableInfo& variable : wanted.variables) {
    Tensor value(DType::kFloat32, variable.shape);
    std::string name = variable.name;
    if (hasAverage(variable)) name += std::string("/") + optimizer::kMovingAverageSlot;
    result.moving_averages = result.moving_averages || hasAverage(variable);
    const std::span<float> all = value.as<float>();
    parts.push_back({std::move(name), 0, all.size(), all.data()});
    result.variables.push_back({variable.name, std::move(value)});
  }
  checkpoint::readParts(file_system, found.folder, found.manifest, parts);
  return result;
}

SavedModel loadOnce(FileSystem& file_system, CheckpointFolder& folder, std::string_view which,
                    const model::ModelSpec& model, const cluster::DatasetSpec* data,
                    const model::ModelGraph& graph) {
  Latest latest = find(file_system, folder, which);
  DTF_CHECK(latest.found.has_value());
  latest.found->manifest =
      checkpoint::underNames(std::move(latest.found->manifest), variableNames(graph));
  const Manifest wanted = wantedOf(graph, latest.found->manifest);
  checkModel(*latest.found, wanted, model, data);
  SavedModel result = read(file_system, *latest.found, wanted);
  DTF_CHECK(result.variables.size() == graph.variables.size());
  result.rejected = std::move(latest.rejected);
  return result;
}

}  // namespace

std::vector<const float*> SavedModel::values() const {
  std::vector<const float*> all;
  for (const model_files::NamedTensor& variable : variables)
    all.push_back(variable.value.as<float>().data());
  return all;
}

SavedModel loadSavedModel(FileSystem& file_system, const std::filesystem::path& folder,
                          std::string_view which, const model::ModelSpec& model,
                          const cluster::DatasetSpec* data) {
  constexpr int kTriesMax = 5;
  const model::ModelGraph graph = model::buildEvaluationGraph(model, 1);
  CheckpointFolder checkpoints(file_system, folder, Incarnation::ofNow());
  for (int tries = 1;; ++tries) {
    const std::vector<uint64_t> before = checkpoints.steps();
    try {
      return loadOnce(file_system, checkpoints, which, model, data, graph);
    } catch (const Error& error) {
      // A running job has saved another checkpoint meanwhile, and removed the one that was read.
      const bool moved = checkpoints.steps() != before;
      if (error.code() != ErrorCode::kBadData || !moved || tries == kTriesMax) throw;
    }
  }
}

SavedModel initialModel(const model::ModelSpec& model, uint64_t seed) {
  const model::ModelGraph built = model::buildEvaluationGraph(model, 1);
  SavedModel initial;
  for (uint32_t i = 0; i < built.variables.size(); ++i) {
    const graph::Node& node = built.graph.node(built.variables[i].value.node);
    initial.variables.push_back(
        {node.name, arena::initialValue(node.attribute<std::string>("initializer"),
                                        node.attribute<Shape>("shape"), seed, i)});
  }
  return initial;
}

}  // namespace dtf::train
