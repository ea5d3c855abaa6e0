#include "common/model_files/onnx_values.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace dtf::model_files {

namespace {

constexpr int kImageRank = 4;

size_t indexOf(Layout layout) {
  return layout == Layout::kRows ? 0 : 1;
}

}  // namespace

std::string OnnxValues::uniqueName(std::string_view wanted) {
  const int before = used_[std::string(wanted)]++;
  if (before == 0) return std::string(wanted);
  return uniqueName(std::string(wanted) + "_" + std::to_string(before));
}

void OnnxValues::setInput(graph::Output x, const std::string& name) {
  alias(x, Layout::kRows, uniqueName(name));
}

const Weight* OnnxValues::weight(graph::Output x) const {
  const auto found = weights_.find(x);
  return found == weights_.end() ? nullptr : &found->second;
}

void OnnxValues::alias(graph::Output y, Layout layout, const std::string& name) {
  DTF_CHECK(!name.empty() && !weights_.contains(y));
  const bool added = names_[indexOf(layout)].emplace(y, name).second;
  DTF_CHECK_MSG(added, name);
}

std::string OnnxValues::in(Layout layout, graph::Output x) {
  if (const auto found = names_[indexOf(layout)].find(x); found != names_[indexOf(layout)].end())
    return found->second;
  if (const Weight* const held = weight(x)) {
    const std::string name = constant(held->name, held->shape.dims(), held->values);
    names_[indexOf(Layout::kRows)].emplace(x, name);
    if (layout == Layout::kRows) return name;
  }
  const Layout other = layout == Layout::kRows ? Layout::kImages : Layout::kRows;
  const auto found = names_[indexOf(other)].find(x);
  DTF_CHECK_MSG(found != names_[indexOf(other)].end(), graph_.node(x.node).name);
  DTF_CHECK(shapeOf(x).rank() == kImageRank);
  const std::vector<int64_t> order = layout == Layout::kImages ? std::vector<int64_t>{0, 3, 1, 2}
                                                               : std::vector<int64_t>{0, 2, 3, 1};
  const OnnxAttribute permutation{"perm", order};
  std::string name = add("Transpose", std::array{found->second}, {&permutation, 1});
  names_[indexOf(layout)].emplace(x, name);
  return name;
}

bool OnnxValues::isImages(graph::Output x) const {
  return names_[indexOf(Layout::kImages)].contains(x);
}

Layout OnnxValues::layoutFor(std::span<const graph::Output> all) const {
  const bool images = std::all_of(all.begin(), all.end(), [this](graph::Output x) {
    return shapeOf(x).rank() == kImageRank && weight(x) == nullptr;
  });
  const bool any = std::any_of(all.begin(), all.end(), [this](auto x) { return isImages(x); });
  return images && any ? Layout::kImages : Layout::kRows;
}

void OnnxValues::add(graph::Output y, Layout layout, std::string_view op,
                     std::span<const std::string> inputs,
                     std::span<const OnnxAttribute> attributes) {
  const std::string name = uniqueName(graph_.node(y.node).name);
  proto_.addNode(op, inputs, name, attributes);
  alias(y, layout, name);
}

std::string OnnxValues::add(std::string_view op, std::span<const std::string> inputs,
                            std::span<const OnnxAttribute> attributes) {
  std::string name = uniqueName("t/" + std::string(op));
  proto_.addNode(op, inputs, name, attributes);
  return name;
}

std::string OnnxValues::constant(std::string_view name, std::span<const int64_t> dims,
                                 std::span<const float> values) {
  std::string unique = uniqueName(name);
  proto_.addConstant(unique, dims, values);
  constants_.emplace(unique, name);
  return unique;
}

std::string OnnxValues::scalar(float value) {
  return constant("constant", {}, {&value, 1});
}

std::string OnnxValues::integers(std::span<const int64_t> values) {
  std::string name = uniqueName("integers");
  proto_.addConstant(name, values);
  constants_.emplace(name, "integers");
  return name;
}

}  // namespace dtf::model_files
