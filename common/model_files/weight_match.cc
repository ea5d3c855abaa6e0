#include "common/model_files/weight_match.h"

#include <fmt/core.h>

#include <algorithm>

namespace dtf::model_files {

namespace {

// As dtf writes it.
std::string ownName(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  const size_t last = name.rfind('/') + 1;  // 0 where there is none
  const std::string_view word = std::string_view(name).substr(last);
  if (word == "weight" || word == "kernel") return name.substr(0, last) + "weights";
  if (word == "bias") return name.substr(0, last) + "biases";
  return name;
}

bool fits(const Shape& held, const Shape& wanted) {
  if (held == wanted) return true;
  return held.rank() == 4 && wanted.rank() == 4 && held.dim(0) == wanted.dim(0) &&
         held.dim(1) == wanted.dim(1) && held.dim(2) == 1 && held.elements() == wanted.elements();
}

}  // namespace

WeightMatch matchWeights(std::span<const WantedWeights> wanted, const FoundWeights& weights) {
  WeightMatch match;
  match.found.resize(wanted.size());
  match.unused = weights.skipped;
  for (const NamedTensor& tensor : weights.tensors) {
    const auto variable = std::find_if(wanted.begin(), wanted.end(), [&tensor](const auto& each) {
      return each.name == tensor.name || each.name == ownName(tensor.name);
    });
    const std::string title = fmt::format("{} {}", tensor.name, tensor.value.shape().str());
    if (variable == wanted.end()) {
      match.unused.push_back(title + ": the model has no such variable");
      continue;
    }
    const NamedTensor*& found = match.found[static_cast<size_t>(variable - wanted.begin())];
    if (!fits(tensor.value.shape(), variable->shape))
      match.unused.push_back(
          fmt::format("{}: {} is {}", title, variable->name, variable->shape.str()));
    else if (found != nullptr)
      match.unused.push_back(fmt::format("{}: {} is {}", title, variable->name, found->name));
    else
      found = &tensor;
  }
  return match;
}

}  // namespace dtf::model_files
