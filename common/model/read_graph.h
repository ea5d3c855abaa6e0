#pragma once

// A graph that somebody wrote op by op, with the device of each: the low-level door.
// common/api/USING.md describes the file.

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
  graph::Graph graph;                                    // devices as asked for
  std::map<std::string, yaml::Mark, std::less<>> marks;  // where each node was written, by its name
  std::vector<std::string> targets, fetches;             // of each step; they are there
  std::vector<GraphFeed> feeds;                          // likewise
  std::optional<yaml::YamlNode> data;  // as train.data.train of a job; some feed is of it
  int64_t steps = 1;
  uint64_t seed = 1;  // of the variables' first values and the order of the data
  bool soft_placement = false;
};

// Errors: all mistakes, in compiler form, in one dtf::Error: what no file may say, and what no
// graph can have, at the op's line, with the nearest name. Ops after a mistaken one are read as far
// as they don't need it.
GraphSpec readGraphFile(const std::filesystem::path& path, yaml::Report& report);

}  // namespace dtf::model
