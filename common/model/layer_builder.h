#pragma once

// The interface through which a layer adds itself to the graph.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/builder.h"
#include "common/model/model_graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// Owns: the names, the penalties and the counters of the layers added so far.
// Borrows: the model's spec, its graph under construction, and the current layer.
// Threads: thread-compatible.  Never blocks.
class LayerBuilder {
 public:
  // The purpose of the graph. kShortTraining: a step on an epoch's short last batch
  // (short_batch.h).
  enum class Use : uint8_t { kEvaluation, kTraining, kShortTraining };
  LayerBuilder(const ModelSpec& spec, ModelGraph& model, int64_t batch_size, Use use)
      : spec_(spec), model_(model), ops_(model.graph), batch_size_(batch_size), use_(use) {}

  // Adds the layers in order and returns the last one's output. Each reads the output of the layer
  // before, or of the layer in `from`. Later layers of the list, and the layers within them, can
  // refer to it by name. `x` is the first one's input.
  graph::Output add(std::span<const LayerSpec> layers, graph::Output x);

  // Returns the output of the layer `name`.
  // Errors: fail() when the current layer can't see one of that name.
  graph::Output outputOf(const std::string& name) const;

  graph::Builder& ops() { return ops_; }
  const Shape& shape(graph::Output x) const { return model_.graph.spec(x).shape; }
  // Returns the shape of one example, without the batch.
  Shape exampleShape(graph::Output x) const;
  int64_t batchSize() const { return batch_size_; }
  bool training() const { return use_ != Use::kEvaluation; }
  bool isShort() const { return use_ == Use::kShortTraining; }
  std::string_view layerName() const { return layer_->name; }
  // The name of the layer that the current one reads; empty: it reads the model's input.
  std::string_view inputName() const { return input_name_; }

  // Returns the labels if a loss of the model's own ops reads them; else nullopt.
  std::optional<graph::Output> labels() const;

  // Returns the features as fed, unscaled, in the shape of `x`, as row numbers of a table of
  // `rows`.
  // Errors: fail() when another layer than flatten or reshape made `x`, when the features are
  // float32, or when a number may be `rows` or more.
  graph::Output indices(graph::Output x, int64_t rows);

  // Returns the categories `name` as row numbers of a table of `rows`.
  // Errors: fail() when there are none of that name, or when a number may be `rows` or more.
  graph::Output categories(const std::string& name, int64_t rows);

  // Whether number 0 of the categories `name`, or of the features for an empty name, is padding.
  bool isPadded(std::string_view name) const;

  // Adds a trained variable: "dense/weights" for the name "weights". `key`: the key that sets
  // `initializer`, for messages.
  graph::Output variable(std::string_view name, Shape shape, std::string initializer,
                         std::string_view key = "kernel_initializer");

  // Sets where the file asks for the device of the last variable(), for errors of the placement.
  void setDeviceMark(const yaml::Mark& mark);
  // Notes that the file asks for the CPU of its worker for an op, for the check of the cluster.
  void addCpuMark(const yaml::Mark& mark) { model_.cpu_marks.push_back(mark); }

  // Adds a variable that isn't trained: the moving average of its statistic in each training step.
  graph::Output movingAverage(std::string_view name, Shape shape, std::string initializer,
                              double momentum);
  // Sets the statistic of a movingAverage(), of the same shape. Training graphs only.
  void setStatistic(graph::Output average, graph::Output statistic);

  // Adds a scalar to the loss of the batch.
  void addPenalty(graph::Output penalty);
  std::span<const graph::Output> penalties() const { return penalties_; }

  // Returns the step's key, from which all layers draw random numbers. Training graphs only.
  graph::Output randomKey() const;
  // Returns a different number for each layer that draws, in evaluation graphs too.
  int64_t nextRandomLayer() { return random_layers_++; }

  // The last layer that added a trained variable; nullptr: none did.
  const LayerSpec* lastWithVariables() const { return last_with_variables_; }

  // Throws yaml::ErrorAt of kBadConfig at the layer.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  graph::Output asFed(graph::Output x);
  void checkBelow(const CategoryInput& input, int64_t rows) const;
  using Names = std::map<std::string, graph::Output, std::less<>>;
  void checkOrthogonal(const Shape& shape, std::string_view key) const;
  graph::Output addOne(const LayerSpec& layer, graph::Output x);
  graph::Output buildAt(const LayerSpec& layer, graph::Output x);
  int32_t nodeCount() const { return static_cast<int32_t>(model_.graph.nodes().size()); }

  const ModelSpec& spec_;
  ModelGraph& model_;
  graph::Builder ops_;
  const int64_t batch_size_;
  const Use use_;
  std::string_view input_name_;
  const LayerSpec* layer_ = nullptr;
  const LayerSpec* last_with_variables_ = nullptr;
  std::vector<Names> names_;  // of each list of layers under construction, the innermost last
  std::vector<graph::Output> penalties_;
  int64_t layers_ = 0;  // added so far
  int64_t random_layers_ = 0;
};

}  // namespace dtf::model
