#pragma once

// What a layer is to the rest of dtf: keys of its own in the file, and a part of the graph. Each
// layer or family has one file in layers/, which holds its keys, its check, its graph and its text;
// layer_table.cc joins them.

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

  // Adds the layer to the graph that `layers` builds, and returns its output. `x` is what the layer
  // before gives, the batch first.
  // Errors: LayerBuilder::fail() for an input that doesn't fit.
  virtual graph::Output build(LayerBuilder& layers, graph::Output x) const = 0;

  // Whether the layer draws random numbers in a training step: then the step is fed a key.
  virtual bool drawsRandomNumbers() const { return false; }

  // Whether the features name rows of a table of it: then they are whole numbers, all the way from
  // the file.
  virtual bool looksUpFeatures() const { return false; }

  // The settings that give its variables their meaning, which a checkpoint keeps; empty for a layer
  // that may come and go. `name` is the layer's.
  virtual std::string meaning(std::string_view name) const = 0;
  // All settings, in which the tasks of a job must agree.
  virtual std::string text(std::string_view name) const { return meaning(name); }
};

// One row of the layer table. A view of what lives as long as the process.
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
