#include "common/train/model_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "common/base/text.h"

namespace dtf::train {

namespace {

std::string textOf(const cluster::LayerSpec& layer) {
  using Type = cluster::LayerSpec::Type;
  switch (layer.type) {
    case Type::kFlatten:
      return "flatten";
    case Type::kDense:
      return fmt::format("dense {}: units={} activation={} use_bias={}", layer.name,
                         layer.dense.units, nameOf(layer.dense.activation), layer.dense.use_bias);
    case Type::kActivation:
      return nameOf(layer.activation.activation);
    case Type::kDropout:
      break;
  }
  return {};
}

}  // namespace

std::string layerText(const cluster::LayerSpec& layer) {
  if (layer.type == cluster::LayerSpec::Type::kDropout)
    return fmt::format("dropout rate={}", layer.dropout.rate);
  std::string text = textOf(layer);
  if (layer.type == cluster::LayerSpec::Type::kDense)
    text += " kernel_initializer=" + layer.dense.kernel_initializer;
  return text;
}

std::string modelText(const cluster::ModelSpec& model) {
  std::string text = fmt::format("input [{}]\n", fmt::join(model.input_shape, ", "));
  for (const cluster::LayerSpec& layer : model.layers)
    if (const std::string line = textOf(layer); !line.empty()) text += line + "\n";
  return text + fmt::format("loss {}", nameOf(model.loss));
}

// The longest common part would be nicer for long models; lines that are there as often need none.
std::string modelTextDifference(const std::string& saved, const std::string& wanted) {
  if (saved == wanted) return {};
  std::vector<std::string> theirs = split(saved, '\n');
  std::string ours;
  for (const std::string& line : split(wanted, '\n')) {
    const auto same = std::find(theirs.begin(), theirs.end(), line);
    if (same != theirs.end()) {
      theirs.erase(same);
    } else {
      ours += fmt::format("\n  this job has '{}'", line);
    }
  }
  std::string text;
  for (const std::string& line : theirs) text += fmt::format("\n  the checkpoint has '{}'", line);
  text += ours;
  return text.empty() ? "  the layers are in another order" : text.substr(1);
}

}  // namespace dtf::train
