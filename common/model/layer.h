#pragma once

// The interface of a layer: its keys in the file, and its part of the graph. Each layer or family
// has one file in layers/ with its keys, checks, graph and text; layer_table.cc lists them.

#include <memory>
#include <string>
#include <string_view>

#include "common/graph/graph.h"
#include "common/yaml/key_table.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

class LayerBuilder;

// One layer with its settings.
// Threads: immutable, hence thread-safe.  Never blocks.
class Layer {
 public:
  virtual ~Layer() = default;

  // Adds the layer to the graph that `layers` builds, and returns its output. `x` is the output of
  // the layer before, batch first.
  // Errors: LayerBuilder::fail() for an input that doesn't fit.
  virtual graph::Output build(LayerBuilder& layers, graph::Output x) const = 0;

  // Whether the layer draws random numbers in a training step, which is then fed a key.
  virtual bool drawsRandomNumbers() const { return false; }

  // Whether the layer looks up the features as row numbers: then they are read and fed as whole
  // numbers.
  virtual bool looksUpFeatures() const { return false; }

  // Returns the settings that give its variables their meaning, for checkpoints; empty for a layer
  // that a later run may add or drop. `name` is the layer's.
  virtual std::string meaning(std::string_view name) const = 0;
  // Returns all settings; the tasks of a job must agree on them.
  virtual std::string text(std::string_view name) const { return meaning(name); }
};

// One row of the layer table. Its views point to static data.
struct LayerType {
  std::string_view name;  // its word in the file: "conv2d"
  std::string_view help;
  const yaml::Table* keys = nullptr;
  // Mistakes go into the reader's report; the result is only used when there are none.
  std::shared_ptr<const Layer> (*read)(const LayerType& type,
                                       const yaml::MapReader& settings) = nullptr;
};

// The keys that every layer has.
extern const yaml::Table kAnyLayerTable;

}  // namespace dtf::model
