// lstm: long short-term memory (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers,
// Schmidhuber and Cummins, 2000) over examples [steps, features]. With the gates in Keras' order,
// input i, forget f, candidate g, output o, side by side:
//
//   z = x_t * weights + h * recurrent_weights + biases      [4 * units]
//   c = sigmoid(z_f + forget_bias) * c + sigmoid(z_i) * tanh(z_g)
//   h = sigmoid(z_o) * tanh(c)
//
// starting at h = c = 0. One product ahead of the loop computes x_t * weights + biases of all
// steps.

#include <fmt/format.h>

#include "common/graph/function.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/initializer_keys.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

using graph::Builder;
using graph::Output;

constexpr int64_t kGates = 4;

constexpr yaml::Key kLstmKeys[] = {
    yaml::required(
        yaml::whole("units", 1, 65'536, "numbers of the state, and outputs of the layer")),
    yaml::boolean("return_sequences", "the output of each step, not the last one's; default false"),
    yaml::number("forget_bias", {-100, 100, false, false}, "added in the forget gate; default 1"),
    initializerKey("kernel_initializer", "default glorot_uniform"),
    initializerKey("recurrent_initializer", "default orthogonal"),
};
constinit const yaml::Table kLstmTable{"train.model.layers.N.lstm", kLstmKeys, &kAnyLayerTable};

struct LstmSettings {
  int64_t units = 0;
  bool return_sequences = false;
  double forget_bias = 1;
  std::string kernel_initializer = "glorot_uniform";
  std::string recurrent_initializer = "orthogonal";
};

class LstmLayer final : public Layer {
 public:
  explicit LstmLayer(LstmSettings settings) : settings_(std::move(settings)) {}

  Output build(LayerBuilder& layers, Output x) const override {
    const Shape shape = layers.shape(x);
    if (shape.rank() != 3 || shape.dim(1) < 1 || shape.dim(2) < 1)
      layers.fail(
          fmt::format("layer '{}' needs sequences of [steps, features], got {}: 'reshape' makes "
                      "them of rows",
                      layers.layerName(), layers.exampleShape(x).str()));
    if (shape.dim(1) > graph::Function::kIterationsMax)
      layers.fail(fmt::format("layer '{}' has {} steps; the most is {}", layers.layerName(),
                              shape.dim(1), graph::Function::kIterationsMax));
    return loop(layers, inputGates(layers, x), shape.dim(0), shape.dim(1));
  }

  std::string meaning(std::string_view name) const override {
    return fmt::format("lstm {}: units={} return_sequences={} forget_bias={}", name,
                       settings_.units, settings_.return_sequences, settings_.forget_bias);
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + fmt::format(" kernel_initializer={} recurrent_initializer={}",
                                       settings_.kernel_initializer,
                                       settings_.recurrent_initializer);
  }

 private:
  // x_t * weights + biases of all steps: [steps, batch, gates].
  Output inputGates(LayerBuilder& layers, Output x) const {
    Builder& ops = layers.ops();
    const Shape shape = layers.shape(x);
    const int64_t batch = shape.dim(0), steps = shape.dim(1), features = shape.dim(2);
    const int64_t units = settings_.units, gates = kGates * units;
    const Output weights =
        layers.variable("weights", {features, gates}, settings_.kernel_initializer);
    const Output forget =
        ops.concat({ops.constant({units}, 0), ops.constant({units}, settings_.forget_bias),
                    ops.constant({2 * units}, 0)},
                   0);
    const Output biases = ops.add(layers.variable("biases", {gates}, "zeros"), forget);
    const Output rows = ops.matMul(ops.reshape(x, {batch * steps, features}), weights);
    const Output all = ops.reshape(ops.biasAdd(rows, biases), {batch, steps, gates});
    return ops.transpose(all, {1, 0, 2});
  }

  Output loop(LayerBuilder& layers, Output gates, int64_t batch, int64_t steps) const {
    Builder& ops = layers.ops();
    const int64_t units = settings_.units;
    const Output weights =
        layers.variable("recurrent_weights", {units, kGates * units},
                        settings_.recurrent_initializer, "recurrent_initializer");
    const Output zeros = ops.constant({batch, units}, 0);
    const auto made = ops.whileLoop({.carried = {zeros, zeros},
                                     .sequences = {gates},
                                     .captured = {weights},
                                     .body = step(ops.graph().catalog(), batch),
                                     .cond = nullptr,
                                     .max_iterations = steps,
                                     .stacked = settings_.return_sequences ? 1 : 0,
                                     .keep_carried = layers.training()});
    if (!settings_.return_sequences) return made.carried[0];
    return ops.transpose(made.stacked[0], {1, 0, 2});
  }

  // The loop's body: from h, c, the gates of the input and the recurrent weights to the next h and
  // c.
  graph::FunctionRef step(const graph::OpCatalog& catalog, int64_t batch) const {
    const int64_t units = settings_.units;
    const graph::TensorSpec state{DType::kFloat32, {batch, units}};
    const std::vector<graph::TensorSpec> parameters = {state,
                                                       state,
                                                       {DType::kFloat32, {batch, kGates * units}},
                                                       {DType::kFloat32, {units, kGates * units}}};
    return graph::Function::build(catalog, parameters, [&](Builder& b, std::span<const Output> p) {
      const Output z = b.add(p[2], b.matMul(p[0], p[3]));
      const auto gate = [&](int64_t number) {
        return b.slice(z, {0, number * units}, {batch, units});
      };
      const Output kept = b.mul(b.sigmoid(gate(1)), p[1]);
      const Output c = b.add(kept, b.mul(b.sigmoid(gate(0)), b.tanh(gate(2))));
      const Output h = b.mul(b.sigmoid(gate(3)), b.tanh(c));
      std::vector<Output> results = {h, c};
      if (settings_.return_sequences) results.push_back(h);
      return results;
    });
  }

  const LstmSettings settings_;
};

std::shared_ptr<const Layer> readLstm(const LayerType&, const yaml::MapReader& settings) {
  LstmSettings lstm;
  settings.whole("units", lstm.units);
  settings.boolean("return_sequences", lstm.return_sequences);
  settings.number("forget_bias", lstm.forget_bias);
  readInitializer(settings, "kernel_initializer", lstm.kernel_initializer);
  readInitializer(settings, "recurrent_initializer", lstm.recurrent_initializer);
  return std::make_shared<const LstmLayer>(std::move(lstm));
}

}  // namespace

LayerType lstmLayer() {
  return {"lstm", "long short-term memory over sequences of [steps, features]", &kLstmTable,
          readLstm};
}

}  // namespace dtf::model
