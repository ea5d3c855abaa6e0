#include "common/model/read_graph.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/model/graph_file_schema.h"
#include "common/model/graph_reader.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

using graph::Output;
using yaml::MapReader;
using yaml::Report;
using yaml::YamlNode;

namespace {

void readFeeds(const MapReader& run, GraphReader& ops, GraphSpec& spec, Report& report) {
  const YamlNode* const data = run.find("data");
  if (data != nullptr) spec.data = *data;
  bool is_read = false;
  if (const YamlNode* const feeds = run.find("feeds")) {
    for (const YamlNode& node : feeds->children) {
      const std::optional<Output> output = ops.findTensor(node.key, node.key_place);
      if (!output) continue;
      auto feed = readGraphFeed(node, ops.graph().spec(*output), report);
      if (!feed) continue;
      is_read = is_read || !feed->part.empty();
      if (!feed->part.empty() && data == nullptr)
        report.error(node.where(), fmt::format("'{}' is fed {} of 'data', which 'run' doesn't have",
                                               node.key, feed->part));
      spec.feeds.push_back(*std::move(feed));
    }
  }
  if (data != nullptr && !is_read && report.empty())
    report.error(data->key_place, "nothing is fed features or labels of 'data'");
}

// Either key is a decision; with `every_steps` alone the default time doesn't count.
void readInterval(const MapReader& reader, GraphInterval& when) {
  if (reader.find("every_steps") != nullptr) when.every_seconds = 0;
  reader.number("every_seconds", when.every_seconds);
  reader.whole("every_steps", when.every_steps);
}

// Reports what a checkpoint needs and the file lacks.
void checkCounted(const YamlNode& node, const GraphReader& ops, Report& report) {
  if (ops.hasGaps()) return;
  const graph::Node* const counter = ops.graph().find(kGraphGlobalStep);
  const bool is_counter = counter != nullptr && counter->op == "Variable" &&
                          counter->outputs[0].dtype == DType::kInt64 &&
                          counter->outputs[0].shape.rank() == 0;
  if (!is_counter)
    report.error(node.key_place,
                 fmt::format("checkpoints are named by the steps that the variable '{}' has "
                             "counted, and {}: add 'minimize', which counts, or a Variable of "
                             "dtype int64 and shape [] that each step increments",
                             kGraphGlobalStep,
                             counter == nullptr ? "there is none" : "it is no int64 scalar"));
}

std::optional<GraphCheckpoint> readCheckpoint(const MapReader& run, const GraphReader& ops,
                                              GraphSpec& spec, Report& report) {
  const YamlNode* const node = run.find("checkpoint");
  const YamlNode* const log_dir = run.find("log_dir");
  if (node == nullptr) {
    if (log_dir != nullptr)
      report.error(log_dir->key_place,
                   "'log_dir' is the folder of checkpoints, and the file asks for none: add "
                   "'checkpoint: {}', or leave it out");
    return std::nullopt;
  }
  GraphCheckpoint checkpoint;
  const MapReader reader(*node, kGraphCheckpointTable, "checkpoint", report);
  readInterval(reader, checkpoint.when);
  reader.whole("keep", checkpoint.keep);
  checkpoint.mark = report.markOf(node->key_place);
  std::string folder;
  if (run.path("log_dir", folder) && !folder.empty())
    // Its text is the mark of the run, which is the same from every working directory.
    spec.log_dir =
        std::filesystem::absolute(report.folderOf(log_dir->place) / folder).lexically_normal();
  else if (log_dir == nullptr || folder.empty())
    report.error(
        node->key_place,
        "'log_dir' is missing: name the folder of the checkpoints, such as 'log_dir: log'");
  checkCounted(*node, ops, report);
  return checkpoint;
}

std::optional<GraphSummaries> readSummaries(const MapReader& run, GraphReader& ops,
                                            Report& report) {
  const YamlNode* const node = run.find("summaries");
  if (node == nullptr) return std::nullopt;
  if (run.find("checkpoint") == nullptr)
    report.error(node->key_place,
                 "'summaries' are written by the global steps of 'checkpoint', and into the same "
                 "folder: add 'checkpoint: {}' and 'log_dir'");
  GraphSummaries summaries;
  const MapReader reader(*node, kGraphSummariesTable, "summaries", report);
  readInterval(reader, summaries.when);
  for (const YamlNode& scalar : reader.list("scalars")) {
    const auto name = yaml::readText(scalar, "scalars", report);
    const std::optional<Output> output =
        name ? ops.findTensor(*name, scalar.where()) : std::nullopt;
    if (!output) continue;
    const graph::TensorSpec& spec = ops.graph().spec(*output);
    if (spec.dtype != DType::kFloat32 || spec.shape.elements() != 1)
      report.error(scalar.where(),
                   fmt::format("'{}' is {}{}, and a scalar is one float32: name its Mean, or Cast "
                               "it first",
                               *name, dtypeName(spec.dtype), spec.shape.str()));
    summaries.scalars.push_back(*name);
  }
  return summaries;
}

void readRun(const YamlNode& node, GraphReader& ops, GraphSpec& spec, Report& report) {
  const MapReader reader(node, kGraphRunTable, "run", report);
  reader.whole("steps", spec.steps);
  reader.whole("seed", spec.seed);
  readFeeds(reader, ops, spec, report);
  const auto names = [&](std::string_view key, const auto& isThere) {
    std::vector<std::string> found;
    for (const YamlNode& each : reader.list(key))
      if (const auto name = yaml::readText(each, key, report); name && isThere(*name, each.where()))
        found.push_back(*name);
    return found;
  };
  spec.targets = names("targets", [&](const std::string& name, const yaml::Place& place) {
    return ops.findNode(name, place).has_value();
  });
  spec.fetches = names("fetches", [&](const std::string& name, const yaml::Place& place) {
    return ops.findTensor(name, place).has_value();
  });
  spec.checkpoint = readCheckpoint(reader, ops, spec, report);
  spec.summaries = readSummaries(reader, ops, report);
}

}  // namespace

GraphSpec readGraphFile(const std::filesystem::path& path, Report& report, Minimize minimize) {
  const std::optional<YamlNode> file = yaml::parseYamlFile(path, nullptr, report);
  report.throwIfAny();
  DTF_CHECK(file.has_value());
  const MapReader reader(*file, kGraphFileTable, "", report);
  GraphReader ops(report);
  if (minimize) ops.setMinimize(std::move(minimize));
  if (const YamlNode* const pins = reader.find("pins")) ops.setPins(*pins);
  ops.read(reader);
  GraphSpec spec{.graph = graph::Graph(graph::standardOps()),
                 .marks = {},
                 .targets = {},
                 .fetches = {},
                 .feeds = {},
                 .data = {}};
  reader.boolean("soft_placement", spec.soft_placement);
  if (const YamlNode* const run = reader.find("run")) readRun(*run, ops, spec, report);
  DTF_CHECK(!report.empty() || !ops.hasGaps());  // gaps were reported
  report.throwIfAny();
  spec.graph = ops.takeGraph();
  spec.marks = ops.takeMarks();
  return spec;
}

}  // namespace dtf::model
