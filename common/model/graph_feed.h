#pragma once

// What a file of ops feeds its steps with.

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
  std::string tensor;  // as a session takes it
  graph::TensorSpec spec;
  yaml::Mark mark;   // of what it is fed
  std::string part;  // "features" or "labels" of the file's data, a batch of them in each step; or
  std::vector<double> numbers;  // the same in all steps: one for all elements, or one for each
};

// `node`'s key is the tensor, which is one of `spec`. nullopt: what it says can't be fed, which is
// reported.
std::optional<GraphFeed> readGraphFeed(const yaml::YamlNode& node, const graph::TensorSpec& spec,
                                       yaml::Report& report);

}  // namespace dtf::model
