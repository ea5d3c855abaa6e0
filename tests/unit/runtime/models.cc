#include "tests/unit/runtime/models.h"

#include <algorithm>
#include <cmath>

#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;

// Adds a pulled variable with random values of deviation about 1/sqrt(inputs).
Output addVariable(Classifier& model, graph::Builder& b, Random& random, const std::string& name,
                   Shape shape, double scale) {
  const Output variable{b.node("_Pull", {}, {{"variable", name}, {"shape", shape}}, name)};
  model.feeds[variable] =
      randomValues(random, shape.elements(), static_cast<float>(-scale), static_cast<float>(scale));
  model.variables.push_back(name);
  return variable;
}

Output addImages(Classifier& model, graph::Builder& b, Random& random,
                 const ClassifierOptions& options) {
  const int64_t count = options.batch * options.inputs;
  if (options.image_type == DType::kFloat32) {
    const Output x = b.placeholder("images", DType::kFloat32, {options.batch, options.inputs});
    model.feeds[x] = randomValues(random, count);
    return x;
  }
  const Output x = b.placeholder("images", DType::kUInt8, {options.batch, options.inputs, 1});
  model.feeds[x] = randomIntegers(random, count, 256);
  return b.reshape(b.normalise(x, 1.0 / 255), {options.batch, options.inputs});
}

}  // namespace

Classifier makeClassifier(Random& random, const ClassifierOptions& options) {
  Classifier model{graph::Graph(graph::standardOps()), {}, {}, {}, {}, {}, {}};
  graph::Builder b(model.graph);
  Output x = addImages(model, b, random, options);
  const Output labels = b.placeholder("labels", options.label_type, {options.batch});
  model.feeds[labels] =
      randomIntegers(random, options.batch, static_cast<uint64_t>(options.classes));
  std::vector<int64_t> widths = options.hidden;
  widths.push_back(options.classes);
  std::vector<Output> variables;
  int64_t inputs = options.inputs;
  for (size_t i = 0; i < widths.size(); ++i) {
    const double scale = std::sqrt(3.0 / static_cast<double>(std::max<int64_t>(inputs, 1)));
    const std::string layer = std::to_string(i);
    variables.push_back(addVariable(model, b, random, "w" + layer, {inputs, widths[i]}, scale));
    variables.push_back(addVariable(model, b, random, "b" + layer, {widths[i]}, scale));
    x = b.biasAdd(b.matMul(x, variables[2 * i]), variables[2 * i + 1]);
    if (i + 1 < widths.size()) x = b.relu(x);
    inputs = widths[i];
  }
  model.logits = x;
  model.loss = b.mean(b.sparseSoftmaxCrossEntropy(x, labels).loss);
  model.accuracy = b.accuracy(x, labels);
  if (!options.gradients) return model;
  model.gradients = graph::addGradients(model.graph, model.loss, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    b.node("_Push", {model.gradients[i]}, {{"variable", model.variables[i]}});
  }
  return model;
}

}  // namespace dtf::runtime::testing
