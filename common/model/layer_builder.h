#pragma once

// What a layer is given to add itself to the graph.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/builder.h"
#include "common/model/model_graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// Owns: the numbers of what draws random numbers.
// Borrows: the model as its file has it, and as it is being built, and the layer whose turn it is.
// Threads: thread-compatible.  Never blocks.
class LayerBuilder {
 public:
  // What the graph is for. Short: training, on what an epoch has left (short_batch.h).
  enum class Use : uint8_t { kEvaluation, kTraining, kShortTraining };
  LayerBuilder(const ModelSpec& spec, ModelGraph& model, int64_t batch_size, Use use)
      : spec_(spec), model_(model), ops_(model.graph), batch_size_(batch_size), use_(use) {}

  // Adds the layers one after another, each to the output of the one before, or of the one that it
  // names. Their names can be named by those that come after them in the list, and by what is below
  // those. `x` is the first one's input.
  graph::Output add(std::span<const LayerSpec> layers, graph::Output x);

  // The output of the layer `name`, which the current one can see.
  // Errors: fail() when there is none.
  graph::Output outputOf(const std::string& name) const;

  graph::Builder& ops() { return ops_; }
  const Shape& shape(graph::Output x) const { return model_.graph.spec(x).shape; }
  // Of one example: without the batch.
  Shape exampleShape(graph::Output x) const;
  int64_t batchSize() const { return batch_size_; }
  bool training() const { return use_ != Use::kEvaluation; }
  bool isShort() const { return use_ == Use::kShortTraining; }
  std::string_view layerName() const { return layer_->name; }
  // The name of the layer that the current one reads; empty: it reads the model's input.
  std::string_view inputName() const { return input_name_; }

  // The examples as they are fed, of the shape of `x`, which is they: not scaled, whatever their
  // type; to name rows of a table of `rows`.
  // Errors: fail() when a layer computed `x`, or when they may be beyond it.
  graph::Output indices(graph::Output x, int64_t rows);

  // The categories `name`, to name rows of a table of `rows`.
  // Errors: fail() when there are none of that name, or when they may be beyond it.
  graph::Output categories(const std::string& name, int64_t rows);

  // A variable that training changes: "dense/weights" for the name "weights". `key` is what gives
  // `initializer`, for messages.
  graph::Output variable(std::string_view name, Shape shape, std::string initializer,
                         std::string_view key = "kernel_initializer");

  // Where the file asks for the device of the last variable(), for mistakes that only placing
  // shows.
  void setDeviceMark(const yaml::Mark& mark);

  // A variable that isn't trained: the moving average of what setStatistic() gives it in each
  // training step.
  graph::Output movingAverage(std::string_view name, Shape shape, std::string initializer,
                              double momentum);
  // Training graphs only. `average` is of movingAverage(), `statistic` of its shape.
  void setStatistic(graph::Output average, graph::Output statistic);

  // A scalar that is added to the loss of the batch.
  void addPenalty(graph::Output penalty);
  std::span<const graph::Output> penalties() const { return penalties_; }

  // Of the step, from which everything that draws random numbers draws them. Training graphs only.
  graph::Output randomKey() const;
  // Another number for each layer that draws, in evaluation graphs too.
  int64_t nextRandomLayer() { return random_layers_++; }

  // The last layer that made a variable; nullptr: none did.
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
  std::vector<Names> names_;  // of each list of layers that is being added, the innermost last
  std::vector<graph::Output> penalties_;
  int64_t layers_ = 0;  // added so far
  int64_t random_layers_ = 0;
};

}  // namespace dtf::model
