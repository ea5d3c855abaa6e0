#pragma once

// One layer in a graph of its own.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/graph/op_def.h"
#include "common/model/layer_builder.h"
#include "tests/unit/model/models.h"

namespace dtf::model {

// A layer after an input of `example`, in a batch of two. Throws the layer's errors.
struct BuiltLayer {
  BuiltLayer(const std::vector<LayerSpec>& layers, const std::vector<int64_t>& example,
             bool training = true)
      : model{graph::Graph(graph::standardOps()), {}, {}, {}, {}, {}, {}, {}, {}, {}} {
    const ModelSpec without_categories;
    LayerBuilder builder(without_categories, model, 2,
                         training ? LayerBuilder::Use::kTraining : LayerBuilder::Use::kEvaluation);
    std::vector<int64_t> dims = {2};
    dims.insert(dims.end(), example.begin(), example.end());
    input = builder.ops().placeholder("x", DType::kFloat32, Shape(dims));
    if (training)
      model.random_key = builder.ops().placeholder("random_key", DType::kInt64, Shape{2});
    output = builder.add(layers, input);
    shape = builder.exampleShape(output);
  }

  const graph::Node& node(std::string_view name) const {
    const graph::Node* found = model.graph.find(name);
    DTF_CHECK_MSG(found != nullptr, std::string(name));
    return *found;
  }
  // "conv/weights [3, 3, 1, 8], conv/biases [8]"
  std::string variables() const {
    std::string text;
    for (const ModelVariable& variable : model.variables)
      text += (text.empty() ? "" : ", ") + model.graph.node(variable.value.node).name + " " +
              model.graph.spec(variable.value).shape.str();
    return text;
  }

  ModelGraph model;
  graph::Output input, output;
  Shape shape;  // of the output, without the batch
};

// Returns the message with which building fails; "no error".
inline std::string buildFailure(const std::vector<LayerSpec>& layers,
                                const std::vector<int64_t>& example) {
  try {
    const BuiltLayer built(layers, example);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "no error";
}

// Returns the message with which reading the settings fails.
inline std::string readFailure(const std::string& type, const std::string& settings) {
  try {
    layerOf(type, settings, "layer");
  } catch (const Error& error) {
    return error.message().substr(0, error.message().find('\n'));
  }
  return "no error";
}

}  // namespace dtf::model
