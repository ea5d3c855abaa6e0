#pragma once

// A model as an ONNX file, and its contents.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/model/layer_builder.h"
#include "common/model/model_graph.h"
#include "common/model_files/onnx_file.h"
#include "tests/unit/model/models.h"

namespace dtf::model_files {

inline std::vector<NamedTensor> zerosFor(const model::ModelSpec& model) {
  std::vector<NamedTensor> variables;
  const model::ModelGraph built = model::buildEvaluationGraph(model, 1);
  for (const model::ModelVariable& variable : built.variables)
    variables.push_back({built.graph.node(variable.value.node).name,
                         Tensor(DType::kFloat32, built.graph.spec(variable.value).shape)});
  return variables;
}

inline std::string onnxOf(const model::ModelSpec& model) {
  const std::vector<NamedTensor> variables = zerosFor(model);
  return encodeOnnx({"job", 7, false, model, variables});
}

// Returns the texts under `path`, a chain of field numbers, in a message.
inline std::vector<std::string> textsAt(const std::string& bytes, std::vector<uint32_t> path) {
  std::vector<std::string> found;
  const uint32_t field = path.front();
  path.erase(path.begin());
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    if (reader.tag() != field || reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
      reader.skip();
      continue;
    }
    const std::string inner = reader.get_string();
    if (path.empty()) {
      found.push_back(inner);
      continue;
    }
    for (std::string& text : textsAt(inner, path)) found.push_back(std::move(text));
  }
  return found;
}

// Counts ModelProto.graph.node.op_type.
inline std::map<std::string, int> opsOf(const std::string& onnx) {
  std::map<std::string, int> ops;
  for (const std::string& op : textsAt(onnx, {7, 1, 4})) ++ops[op];
  return ops;
}

// Returns the values of the initializer of that name.
inline std::vector<float> initializer(const std::string& onnx, const std::string& name) {
  for (const std::string& tensor : textsAt(onnx, {7, 5})) {
    if (textsAt(tensor, {8}) != std::vector{name}) continue;
    const std::string raw = textsAt(tensor, {9}).at(0);
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
    return values;
  }
  ADD_FAILURE() << "no initializer " << name;
  return {};
}

// Their scales and offsets are constants of the graph, no variables.

}  // namespace dtf::model_files
