#pragma once

// Models for tests, read as from their files.

#include <string>
#include <utility>

#include "common/model/activation.h"
#include "common/model/layer.h"
#include "common/model/layer_table.h"
#include "common/model/model_spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// A layer of `type` at job.yaml:LINE:7. `settings` is the text below its name in the file.
// Errors: as for a file.
inline LayerSpec layerOf(const std::string& type, const std::string& settings, std::string name,
                         int line = 0) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> node =
      yaml::parseYaml(settings, report.addFile("settings", settings), report);
  report.throwIfAny();
  const LayerType& row = layerType(type);
  const yaml::MapReader reader(*node, *row.keys, type, report);
  LayerSpec layer{type, std::move(name), {}, row.read(row, reader), {"job.yaml", line, 7}};
  report.throwIfAny();
  return layer;
}

inline LayerSpec flatten(int line = 0) {
  return layerOf("flatten", "{}", "flatten", line);
}

inline LayerSpec dense(std::string name, int64_t units, Activation activation = Activation::kNone,
                       int line = 0, const std::string& more = "") {
  return layerOf("dense",
                 "units: " + std::to_string(units) +
                     "\nactivation: " + std::string(nameOf(activation)) + "\n" + more,
                 std::move(name), line);
}

inline LayerSpec activation(std::string name, Activation kind) {
  return layerOf(std::string(nameOf(kind)), "{}", std::move(name));
}

inline LayerSpec dropout(std::string name, double rate) {
  return layerOf("dropout", "rate: " + std::to_string(rate), std::move(name));
}

// The model of a first job: softmax regression on digits.
inline ModelSpec softmaxModel() {
  ModelSpec model;
  model.input_shape = {28, 28, 1};
  model.layers = {flatten(), dense("softmax", 10)};
  model.accuracy = true;
  model.mark = {"job.yaml", 3, 1};
  model.shape_mark = {"job.yaml", 4, 10};
  return model;
}

}  // namespace dtf::model
