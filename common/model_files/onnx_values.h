#pragma once

// The tensors of a model on their way to ONNX. dtf's images are [batch, height, width, channels];
// ONNX's convolutions and poolings want [batch, channels, height, width]. Each tensor is made in
// the order in which it falls, and transposed when, and only when, somebody needs the other.

#include <map>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/model_files/onnx_proto.h"

namespace dtf::model_files {

// Stands for the batch, whose size is open: no other dimension is likely to be equal to it.
inline constexpr int64_t kAnyBatch = 7919;

enum class Layout { kRows, kImages };  // channels last, as in the graph; channels first

// What a variable, or a constant made of one, holds. A view.
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
  void setWeight(graph::Output x, Weight weight) {
    weights_.insert_or_assign(x, std::move(weight));
  }
  // nullptr: it depends on the input.
  const Weight* weight(graph::Output x) const;

  // The name of `x` in that layout; made when it isn't there yet. kImages is for four dimensions.
  std::string in(Layout layout, graph::Output x);
  bool isImages(graph::Output x) const;  // there already, channels first
  // kImages where one of them is there like that and all have four dimensions.
  Layout layoutFor(std::span<const graph::Output> all) const;

  // Adds a node; its output is `y` in that layout, or has a name of its own.
  void add(graph::Output y, Layout layout, std::string_view op, std::span<const std::string> inputs,
           std::span<const OnnxAttribute> attributes = {});
  std::string add(std::string_view op, std::span<const std::string> inputs,
                  std::span<const OnnxAttribute> attributes = {});
  // `y` is what has that name already.
  void alias(graph::Output y, Layout layout, const std::string& name);

  std::string constant(std::string_view name, std::span<const int64_t> dims,
                       std::span<const float> values);
  std::string scalar(float value);
  std::string integers(std::span<const int64_t> values);

 private:
  std::string uniqueName(std::string_view wanted);

  const graph::Graph& graph_;
  OnnxProto proto_;
  std::map<graph::Output, std::string> names_[2];  // by layout
  std::map<graph::Output, Weight> weights_;
  std::map<std::string, int, std::less<>> used_;
};

}  // namespace dtf::model_files
