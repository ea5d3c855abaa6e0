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
}

}  // namespace

GraphSpec readGraphFile(const std::filesystem::path& path, Report& report) {
  const std::optional<YamlNode> file = yaml::parseYamlFile(path, nullptr, report);
  report.throwIfAny();
  DTF_CHECK(file.has_value());
  const MapReader reader(*file, kGraphFileTable, "", report);
  GraphReader ops(report);
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
