#pragma once

// Reads a graph file: a graph written op by op, with devices. common/api/USING.md describes it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/model/graph_feed.h"
#include "common/yaml/mark.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// Value type.
struct GraphSpec {
  graph::Graph graph;                                    // with the devices that the file asks for
  std::map<std::string, yaml::Mark, std::less<>> marks;  // where the file has a node, by its name
  std::vector<std::string> targets, fetches;             // of each step; all exist
  std::vector<GraphFeed> feeds;                          // likewise
  std::optional<yaml::YamlNode> data;  // like train.data.train of a job; some feed uses it
  int64_t steps = 1;
  uint64_t seed = 1;  // of the initial values and the order of the data
  bool soft_placement = false;
};

// Errors: one dtf::Error with all mistakes of the keys and of the graph, in compiler form, at the
// op's line, with the nearest name. Ops after a mistaken one are read unless they depend on it.
GraphSpec readGraphFile(const std::filesystem::path& path, yaml::Report& report);

}  // namespace dtf::model
