#include "common/model/layer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/layer.h"
#include "common/yaml/error_at.h"
#include "common/yaml/key_table.h"
#include "common/yaml/report.h"

namespace dtf::model {

namespace {
// Repeated layers counted; a list in the file has at most 1000.
constexpr int64_t kLayersBuiltMax = 10'000;
}  // namespace

graph::Output LayerBuilder::add(std::span<const LayerSpec> layers, graph::Output x) {
  names_.emplace_back();
  const std::string_view outer = input_name_;
  std::string_view before = outer;  // a list in a layer begins with the input of that layer
  for (const LayerSpec& layer : layers) {
    input_name_ = layer.from.empty() ? before : layer.from;
    x = addOne(layer, x);
    names_.back().emplace(layer.name, x);
    before = layer.name;
  }
  names_.pop_back();
  input_name_ = outer;
  return x;
}

graph::Output LayerBuilder::addOne(const LayerSpec& layer, graph::Output x) {
  DTF_CHECK(layer.layer != nullptr);
  const LayerSpec* const outer = std::exchange(layer_, &layer);
  if (++layers_ > kLayersBuiltMax)
    fail(fmt::format("the model has more than {} layers, repeated ones counted", kLayersBuiltMax));
  if (!layer.from.empty()) x = outputOf(layer.from);
  const graph::Builder::Scope scope = ops_.nameScope(layer.name);
  const size_t index = model_.layers.size();
  const std::string path = ops_.namePrefix().substr(0, ops_.namePrefix().size() - 1);
  const std::string text = layer.layer->text(layer.name);
  model_.layers.push_back({path,
                           text.substr(0, text.find('\n')),
                           static_cast<int>(names_.size()) - 1,
                           {},
                           nodeCount(),
                           0});
  const graph::Output output = buildAt(layer, x);
  model_.layers[index].output = output;
  model_.layers[index].end_node = nodeCount();
  layer_ = outer;
  return output;
}

// Reports an error of the graph at the innermost layer that caused it.
graph::Output LayerBuilder::buildAt(const LayerSpec& layer, graph::Output x) {
  try {
    return layer.layer->build(*this, x);
  } catch (const yaml::ErrorAt&) {
    throw;
  } catch (const Error& error) {
    fail(fmt::format("layer '{}': {}", layer.name, error.message()));
  }
}

std::optional<graph::Output> LayerBuilder::labels() const {
  if (spec_.loss.kind != Loss::kTensor) return std::nullopt;
  return model_.labels;
}

graph::Output LayerBuilder::outputOf(const std::string& name) const {
  std::vector<std::string_view> seen;
  for (auto names = names_.rbegin(); names != names_.rend(); ++names) {
    if (const auto found = names->find(name); found != names->end()) return found->second;
    for (const auto& [other, output] : *names) seen.push_back(other);
  }
  fail(fmt::format("layer '{}' names the layer {}, and there is none before it{}", layer_->name,
                   yaml::inQuotes(name), seen.empty() ? "" : yaml::suggestion(name, seen)));
}

Shape LayerBuilder::exampleShape(graph::Output x) const {
  const std::vector<int64_t>& dims = shape(x).dims();
  DTF_CHECK(!dims.empty());
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

graph::Output LayerBuilder::indices(graph::Output x, int64_t rows) {
  if (spec_.features_are_categories) checkBelow(spec_.categories.at(0), rows);
  const graph::Output fed = asFed(x);
  if (spec_.input_dtype == DType::kFloat32)
    fail(
        fmt::format("layer '{}' looks whole numbers up, and the features are float32, which lacks "
                    "some from 16777216 on: for NumPy's arrays say 'features_as: indices', or "
                    "leave it out",
                    layer_->name));
  return fed;
}

void LayerBuilder::checkBelow(const CategoryInput& input, int64_t rows) const {
  if (input.below <= rows) return;
  fail(
      fmt::format("layer '{}' has a vocabulary of {}, and the categories {} are from 0 to {}: give "
                  "it at least {}",
                  layer_->name, rows, yaml::inQuotes(input.name), input.below - 1, input.below));
}

graph::Output LayerBuilder::asFed(graph::Output x) {
  const graph::Node& node = model_.graph.node(x.node);
  if (node.op == "Normalise") return node.inputs[0];
  if (x == model_.features) return x;
  if (node.op != "Reshape")
    fail(
        fmt::format("layer '{}' reads the examples themselves, not the output of a layer: "
                    "put it first, or behind 'flatten' or 'reshape'",
                    layer_->name));
  const Shape shape = node.outputs[0].shape;  // adding nodes moves `node`
  return ops_.reshape(asFed(node.inputs[0]), shape);
}

graph::Output LayerBuilder::categories(const std::string& name, int64_t rows) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < spec_.categories.size(); ++i) {
    const CategoryInput& input = spec_.categories[i];
    names.push_back(input.name);
    if (input.name != name) continue;
    checkBelow(input, rows);
    return model_.categories.at(i);
  }
  fail(fmt::format(
      "layer '{}' reads the categories {}, and {}", layer_->name, yaml::inQuotes(name),
      names.empty()
          ? "the data have none: see categorical_columns, and of arrays categorical_arrays"
          : "there are none of that name" + yaml::suggestion(name, names)));
}

bool LayerBuilder::isPadded(std::string_view name) const {
  DTF_CHECK(!spec_.features_are_categories || !spec_.categories.empty());
  if (name.empty()) return spec_.features_are_categories && spec_.categories.at(0).is_padded;
  return std::ranges::any_of(spec_.categories, [name](const CategoryInput& input) {
    return input.name == name && input.is_padded;
  });
}

// The time to draw it grows with this product: a minute or two at the limit.
void LayerBuilder::checkOrthogonal(const Shape& shape, std::string_view key) const {
  constexpr double kProductMax = 1e11;
  if (shape.rank() == 0 || shape.elements() == 0) return;
  const auto columns = static_cast<double>(shape.dim(shape.rank() - 1));
  const double rows = static_cast<double>(shape.elements()) / columns;
  if (rows * columns * std::min(rows, columns) <= kProductMax) return;
  fail(
      fmt::format("layer '{}': an orthogonal initial value of {} would take long to draw: choose "
                  "another {}, such as he_normal; up to 4600 x 4600 it is drawn",
                  layer_->name, shape.str(), key));
}

graph::Output LayerBuilder::variable(std::string_view name, Shape shape, std::string initializer,
                                     std::string_view key) {
  if (initializer == "orthogonal") checkOrthogonal(shape, key);
  const graph::Output value = ops_.variable(name, std::move(shape), std::move(initializer));
  model_.variables.push_back({value, {}, {}, {}});
  last_with_variables_ = layer_;
  return value;
}

void LayerBuilder::setDeviceMark(const yaml::Mark& mark) {
  DTF_CHECK(!model_.variables.empty());
  model_.variables.back().device_mark = mark;
}

graph::Output LayerBuilder::movingAverage(std::string_view name, Shape shape,
                                          std::string initializer, double momentum) {
  DTF_CHECK(momentum >= 0 && momentum < 1);
  const graph::Output value = ops_.variable(name, std::move(shape), std::move(initializer));
  model_.variables.push_back({value, {}, {}, momentum});
  return value;
}

void LayerBuilder::setStatistic(graph::Output average, graph::Output statistic) {
  DTF_CHECK(training() && shape(average) == shape(statistic));
  const auto variable =
      std::find_if(model_.variables.begin(), model_.variables.end(),
                   [average](const ModelVariable& each) { return each.value == average; });
  DTF_CHECK(variable != model_.variables.end() && variable->momentum && !variable->gradient);
  variable->gradient = statistic;
}

void LayerBuilder::addPenalty(graph::Output penalty) {
  DTF_CHECK(shape(penalty).rank() == 0);
  penalties_.push_back(penalty);
}

graph::Output LayerBuilder::randomKey() const {
  DTF_CHECK(training() && model_.random_key.has_value());
  return *model_.random_key;
}

void LayerBuilder::fail(const std::string& what) const {
  DTF_CHECK(layer_ != nullptr);
  throw yaml::ErrorAt(ErrorCode::kBadConfig, layer_->mark, what);
}

}  // namespace dtf::model
