#pragma once

// The feeds of a graph file (read_graph.h): the tensors that each step is fed, and their values.

#include <optional>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/yaml/mark.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// Value type.
struct GraphFeed {
  std::string tensor;  // its name: "op" or "op:1"
  graph::TensorSpec spec;
  yaml::Mark mark;    // of the value
  std::string part;   // "features" or "labels": a batch of the file's data in each step; or
  int64_t tower = 0;  // whose batch it is: a step has one for each tower
  std::vector<double> numbers;  // the same in each step: one for all elements, or one for each
};

// Reads a feed: `node`'s key names a tensor of `spec`. Returns nullopt for a value that can't be
// fed, which is reported.
std::optional<GraphFeed> readGraphFeed(const yaml::YamlNode& node, const graph::TensorSpec& spec,
                                       yaml::Report& report);

}  // namespace dtf::model
