#pragma once

// The tensors of a model during its conversion to ONNX. dtf's images are [batch, height, width,
// channels]; ONNX's convolutions and poolings read [batch, channels, height, width]. Each tensor
// keeps the order of the node that computes it, and is transposed only when a node needs the other
// order.

#include <map>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/model_files/onnx_proto.h"

namespace dtf::model_files {

// Stands for the batch, whose size is open: no other dimension is likely to equal it.
inline constexpr int64_t kAnyBatch = 7919;

enum class Layout { kRows, kImages };  // channels last, as in the graph; channels first

// The values of a variable or constant. A view.
struct Weight {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

// Owns: the nodes and constants so far.
// Borrows: `graph`, and the values of the weights.
// Threads: thread-compatible.
class OnnxValues {
 public:
  explicit OnnxValues(const graph::Graph& graph) : graph_(graph) {}

  OnnxProto& proto() { return proto_; }
  const graph::Graph& graph() const { return graph_; }
  const Shape& shapeOf(graph::Output x) const { return graph_.spec(x).shape; }

  void setInput(graph::Output x, const std::string& name);
  // Returns `wanted`, or a name like it that no other tensor has.
  std::string newName(std::string_view wanted) { return uniqueName(wanted); }
  void setWeight(graph::Output x, Weight weight) {
    weights_.insert_or_assign(x, std::move(weight));
  }
  // Returns nullptr if `x` depends on the input.
  const Weight* weight(graph::Output x) const;

  // Returns the name of `x` in that layout; transposes it if needed. kImages requires four
  // dimensions.
  std::string in(Layout layout, graph::Output x);
  bool isImages(graph::Output x) const;  // it exists with channels first
  // Returns kImages if one of them exists so, and all have four dimensions and are no weights.
  Layout layoutFor(std::span<const graph::Output> all) const;

  // Adds a node; its output is `y` in that layout, or has a name of its own.
  void add(graph::Output y, Layout layout, std::string_view op, std::span<const std::string> inputs,
           std::span<const OnnxAttribute> attributes = {});
  std::string add(std::string_view op, std::span<const std::string> inputs,
                  std::span<const OnnxAttribute> attributes = {});
  // Declares `y` to be the existing tensor `name`.
  void alias(graph::Output y, Layout layout, const std::string& name);

  std::string constant(std::string_view name, std::span<const int64_t> dims,
                       std::span<const float> values);
  std::string scalar(float value);
  std::string integers(std::span<const int64_t> values);
  // Returns the tensors that constant() and integers() have added: their names in the file, each
  // with the name that was asked for.
  const std::map<std::string, std::string>& constants() const { return constants_; }

 private:
  std::string uniqueName(std::string_view wanted);

  const graph::Graph& graph_;
  OnnxProto proto_;
  std::map<graph::Output, std::string> names_[2];  // by layout
  std::map<graph::Output, Weight> weights_;
  std::map<std::string, int, std::less<>> used_;
  std::map<std::string, std::string> constants_;
};

}  // namespace dtf::model_files
