#include "common/model/model_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "common/base/text.h"
#include "common/model/former_names.h"
#include "common/model/layer.h"

namespace dtf::model {

namespace {

// Adds the layer's name and `from` to its text, which may be empty.
std::string withReferences(const LayerSpec& layer, const std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string first = text.substr(0, end);
  const bool names_itself = first.starts_with(layer.type + " " + layer.name + ":");
  if (!first.empty() && !names_itself && !beginsWithType(layer.name, layer.type))
    first += " name=" + layer.name;
  if (!layer.from.empty()) first += (first.empty() ? layer.type : "") + " from=" + layer.from;
  return first + text.substr(end);
}

}  // namespace

std::string layerMeaning(const LayerSpec& layer) {
  return withReferences(layer, layer.layer->meaning(layer.name));
}

std::string layerText(const LayerSpec& layer) {
  return withReferences(layer, layer.layer->text(layer.name));
}

std::string featuresText(const ModelSpec& model) {
  const bool pixels = model.input_dtype == DType::kUInt8;
  return fmt::format("{}[{}]", pixels ? "" : fmt::format("{} ", dtypeName(model.input_dtype)),
                     fmt::join(model.input_shape, ", "));
}

std::string categoryText(const CategoryInput& input) {
  return fmt::format("[{}{}{}]", input.count, input.meaning.empty() ? "" : " ", input.meaning);
}

std::string inputText(const ModelSpec& model) {
  std::string text = featuresText(model);
  for (const CategoryInput& input : model.categories)
    text += " " + input.name + categoryText(input);
  return text;
}

std::string modelText(const ModelSpec& model) {
  std::string text = fmt::format("input {}\n", inputText(model));
  for (const LayerSpec& layer : model.layers)
    if (const std::string lines = layerMeaning(layer); !lines.empty()) text += lines + "\n";
  return text + "loss " + model.loss.text() + (model.hasTargets() ? " of targets" : "");
}

// Compares the lines in any order: the longest common part would be nicer for long models.
std::string modelTextDifference(const std::string& saved, const std::string& wanted) {
  // dtf 0.1.0 reads features to look up as float32. int32 features are only ever looked up: both
  // are the same.
  constexpr std::string_view kFloats = "input float32 ", kWhole = "input int32 ";
  // Files and checkpoints of either spelling describe the same model.
  std::string known = todaysText(saved);
  const std::string now = todaysText(wanted);
  if (now.starts_with(kWhole) && known.starts_with(kFloats))
    known.replace(0, kFloats.size(), kWhole);
  if (known == now) return {};
  std::vector<std::string> theirs = split(known, '\n');
  std::string ours;
  for (const std::string& line : split(now, '\n')) {
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

}  // namespace dtf::model
