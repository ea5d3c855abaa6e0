#pragma once

// Reads a list of ops into a graph: of a graph file (read_graph.h), or of a model's layer `graph`
// (layers/graph.cc). common/api/USING.md describes the format.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/graph/builder.h"
#include "common/graph/function.h"
#include "common/graph/graph.h"
#include "common/graph/op_def.h"
#include "common/yaml/key_table.h"
#include "common/yaml/map_reader.h"
#include "common/yaml/mark.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// A `minimize` of a file. Value type; borrows the file's node.
struct MinimizeRequest {
  graph::Output loss;
  std::vector<graph::Output> variables{};     // empty: all that the loss depends on
  std::string prefix{};                       // of the scope
  std::string global_step{};                  // the name of the counter; empty: the default one
  const yaml::YamlNode* optimizer = nullptr;  // null: the default one
};

// The nodes that it adds. Value type.
struct MinimizeNodes {
  graph::Output train;                  // runs one step; int64: the global step after it
  std::optional<graph::Output> norm{};  // of the gradients, before they are clipped
};

// Adds the training of variables to a graph; the libraries above this one have the optimizers.
// Returns nullopt after a reported mistake.
// Errors: kBadConfig for a mistake that has no place of its own.
using Minimize = std::function<std::optional<MinimizeNodes>(
    graph::Graph& graph, const MinimizeRequest& request, yaml::Report& report)>;

// Owns: the graph, until it is taken, and the place of each node in the file.
// Borrows: the report.
// Threads: thread-compatible.  Never blocks.
// Errors: mistakes go into the report; only addInput() throws. An op that reads a mistaken one is
// left out without a report of its own.
class GraphReader {
 public:
  // `batch`: the value of the word `batch` in a shape; nullopt: a file can't use the word.
  explicit GraphReader(yaml::Report& report, std::optional<int64_t> batch = std::nullopt);

  // Adds a Placeholder that the ops read as `name`. Errors: see Graph::addNode.
  graph::Output addInput(std::string_view name, const graph::TensorSpec& spec);

  // Sets a map of ops to devices, which override the ops' own. Call it before read().
  void setPins(const yaml::YamlNode& pins);
  // Makes the ops `minimize` possible, which a model and a function can't have. Call it before
  // read().
  void setMinimize(Minimize minimize) { minimize_ = std::move(minimize); }
  // Reads the keys `functions` and `ops`.
  void read(const yaml::MapReader& reader);

  // Find the tensor `name` ("op" or "op:1"), the node `name`, and all that a list names. nullopt:
  // it is missing, which is reported unless an op that could not be read may have been it.
  std::optional<graph::Output> findTensor(const std::string& name, const yaml::Place& place);
  std::optional<graph::NodeId> findNode(const std::string& name, const yaml::Place& place);
  std::optional<std::vector<graph::Output>> tensors(const yaml::MapReader& reader,
                                                    std::string_view key);
  std::optional<std::vector<graph::NodeId>> nodes(const yaml::MapReader& reader,
                                                  std::string_view key);

  const graph::Graph& graph() const { return graph_; }
  using Marks = std::map<std::string, yaml::Mark, std::less<>>;  // by the node's name
  const Marks& marks() const { return marks_; }
  // Don't use the reader afterwards.
  graph::Graph takeGraph() { return std::move(graph_); }
  Marks takeMarks() { return std::move(marks_); }
  bool hasGaps() const { return has_gaps_; }  // some op could not be read, which was reported

 private:
  using Functions = std::map<std::string, graph::FunctionRef, std::less<>>;
  // Reads the body of a function in the file that `outer` reads.
  explicit GraphReader(GraphReader& outer);

  void checkPins();
  void readFunction(const yaml::YamlNode& node);
  graph::FunctionRef takeFunction(const yaml::YamlNode& node, const yaml::MapReader& reader);
  void readParameter(const yaml::YamlNode& node, std::vector<graph::NodeId>& parameters);
  void readOps(const yaml::MapReader& reader, int depth);
  void readScope(const yaml::YamlNode& node, int depth);
  void readOp(const std::string& op, const yaml::YamlNode& node);
  bool readAttribute(const graph::AttributeDef& attribute, const yaml::MapReader& reader,
                     const yaml::Key& key, const Shape* reshaped, graph::Attributes& attributes);
  void addOp(const std::string& op, const yaml::YamlNode& node, const yaml::MapReader& reader,
             std::vector<graph::Output> inputs, graph::Attributes attributes,
             std::vector<graph::NodeId> after);
  void readGradients(const yaml::YamlNode& node);
  void readMinimize(const yaml::YamlNode& node);
  std::optional<MinimizeRequest> readRequest(const yaml::MapReader& reader);
  std::optional<Shape> readShape(const yaml::MapReader& reader, const yaml::Key& key,
                                 const Shape* reshaped);
  void reportOpenSize(const yaml::Key& key, const yaml::YamlNode& node);
  graph::FunctionRef findFunction(const yaml::YamlNode& node);

  template <class Find>
  auto look(bool is_there, const yaml::Place& place, const Find& find)
      -> std::optional<std::invoke_result_t<Find>>;
  template <class Action>
  void attempt(const yaml::YamlNode& node, const Action& action);
  void leaveGap() { has_gaps_ = true; }

  yaml::Report& report_;
  const std::optional<int64_t> batch_;
  const std::shared_ptr<Functions> functions_;  // of the file, read so far
  graph::Graph graph_;
  graph::Builder builder_;
  Minimize minimize_;  // empty: none here
  Marks marks_;
  std::vector<yaml::YamlNode> pins_;  // op: device
  size_t ops_ = 0;                    // of the file, read so far
  bool has_gaps_ = false;
};

}  // namespace dtf::model
