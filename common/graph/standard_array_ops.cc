// Parts of tensors, and rows of tables. All tensors are float32 unless noted.
//
//   op                  inputs               attributes     outputs
//   Concat              one or more          axis int       the inputs side by side along `axis`;
//                                                           the other dimensions are the same
//   Slice               x                    begin, size    the elements from `begin` on, `size`
//                                            shape          many in each dimension
//   Pad                 x                    before, after  x with that many zeros ahead of and
//                                            shape          behind it in each dimension
//   Gather              table [R,..],        -              [indices' dimensions, ..]: for each
//                       indices                             index its row of the table; an index
//                                                           out of range is bad data, which the
//                                                           kernel reports
//   UnsortedSegmentSum  dy, indices: as of   shape          `shape`, the table's: each row of dy
//                       Gather                              added where its index says, from the
//                                                           first on
//   Transpose           x                    permutation    dimension i of the output is dimension
//                                            shape          permutation[i] of x, which has each
//                                                           once
//
// Indices are whole numbers of any type and rank; fractions among float32 indices are bad data,
// too. Attributes of type shape are lists with one number for each dimension.

#include <algorithm>

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

[[noreturn]] void refuseArray(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

// Returns a list with a number for each dimension of x.
const std::vector<int64_t>& numbersFor(const TensorSpec& x, const Attributes& attributes,
                                       const char* key) {
  const Shape& numbers = get<Shape>(attributes, key);
  if (numbers.rank() != x.shape.rank()) {
    refuseArray(std::string(key) + " " + numbers.str() + " must have a number for each of the " +
                std::to_string(x.shape.rank()) + " dimension(s) of x " + specText(x));
  }
  return numbers.dims();
}

Specs inferConcat(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  if (inputs.empty()) refuseArray("needs at least one input");
  const int64_t axis = get<int64_t>(attributes, "axis");
  std::vector<int64_t> dims = inputs[0].shape.dims();
  if (axis < 0 || axis >= inputs[0].shape.rank()) {
    refuseArray("axis " + std::to_string(axis) + " is none of " + specText(inputs[0]) +
                axisRemedy(axis, inputs[0].shape.rank()));
  }
  dims[static_cast<size_t>(axis)] = 0;
  int64_t total = 0;
  for (const TensorSpec& input : inputs) {
    wantFloat(input, "an input");
    std::vector<int64_t> others = input.shape.dims();
    if (others.size() == dims.size()) others[static_cast<size_t>(axis)] = 0;
    if (others != dims) {
      refuseArray("the inputs " + specText(inputs[0]) + " and " + specText(input) +
                  " must be the same but for dimension " + std::to_string(axis));
    }
    total += input.shape.dim(static_cast<int>(axis));
  }
  dims[static_cast<size_t>(axis)] = total;
  return {floats(Shape(std::move(dims)))};
}

Specs inferSlice(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec& x = inputs[0];
  wantFloat(x, "x");
  const auto& begin = numbersFor(x, attributes, "begin");
  const auto& size = numbersFor(x, attributes, "size");
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t length = x.shape.dims()[i];
    if (size[i] <= length && begin[i] <= length - size[i]) continue;
    refuseArray("dimension " + std::to_string(i) + " of x " + specText(x) + " has no " +
                std::to_string(size[i]) + " element(s) from " + std::to_string(begin[i]) + " on");
  }
  return {floats(get<Shape>(attributes, "size"))};
}

Specs inferTranspose(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec& x = inputs[0];
  wantFloat(x, "x");
  const auto& permutation = numbersFor(x, attributes, "permutation");
  std::vector<int64_t> dims, sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i)) continue;
    refuseArray("permutation " + get<Shape>(attributes, "permutation").str() +
                " must have each dimension of x " + specText(x) + " once");
  }
  for (const int64_t from : permutation) dims.push_back(x.shape.dim(static_cast<int>(from)));
  return {floats(Shape(std::move(dims)))};
}

Specs inferPad(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec& x = inputs[0];
  wantFloat(x, "x");
  const auto& before = numbersFor(x, attributes, "before");
  const auto& after = numbersFor(x, attributes, "after");
  constexpr int64_t kPaddingMax = int64_t{1} << 40;
  std::vector<int64_t> dims = x.shape.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (before[i] > kPaddingMax || after[i] > kPaddingMax) {
      refuseArray("dimension " + std::to_string(i) + " is padded by more than " +
                  std::to_string(kPaddingMax));
    }
    dims[i] += before[i] + after[i];
  }
  return {floats(Shape(std::move(dims)))};
}

Specs inferGather(std::span<const TensorSpec> inputs, const Attributes&) {
  return {gathered(inputs[0], inputs[1])};
}

Specs inferSegmentSum(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec table = declaredFloat(inputs, attributes)[0];
  wantSame(inputs[0], "dy", gathered(table, inputs[1]), "the gathered rows");
  return {table};
}

}  // namespace

void addArrayOps(OpCatalog& catalog) {
  const auto list = [](const char* name) { return AttributeDef{name, Type::kShape}; };
  catalog.add({"Concat", -1, {{"axis", Type::kInt}}, inferConcat});
  catalog.add({"Slice", 1, {list("begin"), list("size")}, inferSlice});
  catalog.add({"Pad", 1, {list("before"), list("after")}, inferPad});
  catalog.add({"Transpose", 1, {list("permutation")}, inferTranspose});
  catalog.add({"Gather", 2, {}, inferGather});
  catalog.add({"UnsortedSegmentSum", 2, {list("shape")}, inferSegmentSum});
}

}  // namespace dtf::graph
