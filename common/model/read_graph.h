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
#include "common/model/graph_reader.h"
#include "common/yaml/mark.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// The variable that counts the steps of a graph with checkpoints, as TensorFlow calls it.
inline constexpr char kGraphGlobalStep[] = "global_step";

// When something is done: at multiples of a number of steps, or after a time. Value type.
struct GraphInterval {
  double every_seconds = 0;  // 0: not by time
  int64_t every_steps = 0;   // 0: not by steps
};

// Value type.
struct GraphCheckpoint {
  GraphInterval when{.every_seconds = 600};
  uint32_t keep = 5;  // number of newest checkpoints to keep; 0: all
  yaml::Mark mark;
};

// Value type.
struct GraphSummaries {
  GraphInterval when{.every_seconds = 120};
  std::vector<std::string> scalars;  // tensors; all exist
};

// Value type.
struct GraphSpec {
  graph::Graph graph;                                    // with the devices that the file asks for
  std::map<std::string, yaml::Mark, std::less<>> marks;  // where the file has a node, by its name
  std::vector<std::string> targets, fetches;             // of each step; all exist
  std::vector<GraphFeed> feeds;                          // likewise
  std::optional<yaml::YamlNode> data;  // like train.data.train of a job; some feed uses it
  int64_t steps = 1;                   // with a checkpoint: up to this global step
  uint64_t seed = 1;                   // of the initial values and the order of the data
  bool soft_placement = false;
  std::filesystem::path
      log_dir{};  // absolute; of checkpoints and events; empty without a checkpoint
  std::optional<GraphCheckpoint> checkpoint{};  // the graph has a counter then
  std::optional<GraphSummaries> summaries{};    // only with a checkpoint
};

// Errors: one dtf::Error with all mistakes of the keys and of the graph, in compiler form, at the
// op's line, with the nearest name. Ops after a mistaken one are read unless they depend on it.
// `minimize` makes the ops of that name.
GraphSpec readGraphFile(const std::filesystem::path& path, yaml::Report& report,
                        Minimize minimize = nullptr);

}  // namespace dtf::model
