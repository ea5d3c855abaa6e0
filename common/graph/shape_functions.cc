#include "common/graph/shape_functions.h"

#include <algorithm>

#include "common/base/error.h"

namespace dtf::graph {
namespace {

[[noreturn]] void misfit(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

std::string named(const char* name, const TensorSpec& spec) {
  return std::string(name) + " " + specText(spec);
}

}  // namespace

std::string specText(const TensorSpec& spec) {
  return std::string(dtypeName(spec.dtype)) + spec.shape.str();
}

std::string axisRemedy(int64_t axis, int rank) {
  if (rank == 0) return ": it is a scalar";
  if (axis < 0 && axis >= -rank)
    return ": axes count from 0, so write " + std::to_string(axis + rank) + " for " +
           std::to_string(axis);
  return ": it has the axes 0 to " + std::to_string(rank - 1);
}

void wantFloat(const TensorSpec& spec, const char* name) {
  if (spec.dtype != DType::kFloat32) misfit(named(name, spec) + " must be float32");
}

void wantLabels(const TensorSpec& spec, const char* name) {
  if (spec.dtype == DType::kFloat32) misfit(named(name, spec) + " must be uint8, int32 or int64");
  wantRank(spec, 1, name);
}

void wantRank(const TensorSpec& spec, int rank, const char* name) {
  if (spec.shape.rank() != rank) {
    misfit(named(name, spec) + " must have " + std::to_string(rank) + " dimension(s)");
  }
}

void wantRankAtLeast(const TensorSpec& spec, int rank, const char* name) {
  if (spec.shape.rank() < rank) {
    misfit(named(name, spec) + " must have at least " + std::to_string(rank) + " dimension(s)");
  }
}

void wantSame(const TensorSpec& a, const char* a_name, const TensorSpec& b, const char* b_name) {
  if (a != b) misfit(named(a_name, a) + " and " + named(b_name, b) + " must be the same");
}

void wantSameDim(const TensorSpec& a, int a_axis, const char* a_name, const TensorSpec& b,
                 int b_axis, const char* b_name) {
  if (a.shape.dim(a_axis) == b.shape.dim(b_axis)) return;
  misfit(named(a_name, a) + " and " + named(b_name, b) + " don't fit: dimension " +
         std::to_string(a_axis) + " of " + a_name + " is " + std::to_string(a.shape.dim(a_axis)) +
         ", dimension " + std::to_string(b_axis) + " of " + b_name + " is " +
         std::to_string(b.shape.dim(b_axis)));
}

Shape broadcast(const Shape& a, const char* a_name, const Shape& b, const char* b_name) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(a.rank(), b.rank())), 1);
  for (int back = 1; back <= static_cast<int>(dims.size()); ++back) {
    const int64_t of_a = back <= a.rank() ? a.dim(a.rank() - back) : 1;
    const int64_t of_b = back <= b.rank() ? b.dim(b.rank() - back) : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      misfit(std::string(a_name) + " " + a.str() + " and " + b_name + " " + b.str() +
             " don't fit: from the last one on, dimensions must be the same, or one of them 1");
    }
    dims[dims.size() - static_cast<size_t>(back)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::move(dims));
}

TensorSpec floats(Shape shape) {
  return {DType::kFloat32, std::move(shape)};
}

TensorSpec gathered(const TensorSpec& table, const TensorSpec& indices) {
  wantFloat(table, "table");
  wantRankAtLeast(table, 1, "table");
  std::vector<int64_t> dims = indices.shape.dims();
  dims.insert(dims.end(), table.shape.dims().begin() + 1, table.shape.dims().end());
  return floats(Shape(std::move(dims)));
}

std::vector<TensorSpec> elementwise(std::span<const TensorSpec> inputs, const Attributes&) {
  if (inputs.empty()) misfit("needs at least one input");
  for (const TensorSpec& input : inputs) {
    wantFloat(input, "an input");
    wantSame(inputs[0], "the first input", input, "another");
  }
  return {inputs[0]};
}

std::vector<TensorSpec> broadcastElementwise(std::span<const TensorSpec> inputs,
                                             const Attributes&) {
  wantFloat(inputs[0], "a");
  wantFloat(inputs[1], "b");
  return {floats(broadcast(inputs[0].shape, "a", inputs[1].shape, "b"))};
}

std::vector<TensorSpec> declared(std::span<const TensorSpec>, const Attributes& attributes) {
  return {{get<DType>(attributes, "dtype"), get<Shape>(attributes, "shape")}};
}

std::vector<TensorSpec> declaredFloat(std::span<const TensorSpec>, const Attributes& attributes) {
  return {floats(get<Shape>(attributes, "shape"))};
}

std::vector<TensorSpec> passThrough(std::span<const TensorSpec> inputs, const Attributes&) {
  return {inputs[0]};
}

std::vector<TensorSpec> noOutput(std::span<const TensorSpec>, const Attributes&) {
  return {};
}

void wantGradientOfRows(const TensorSpec& gradient, const TensorSpec& indices) {
  const std::vector<int64_t>& rows = indices.shape.dims();
  const std::vector<int64_t>& dims = gradient.shape.dims();
  const bool fits = gradient.dtype == DType::kFloat32 && dims.size() >= rows.size() &&
                    std::equal(rows.begin(), rows.end(), dims.begin());
  if (fits && (indices.dtype == DType::kInt32 || indices.dtype == DType::kInt64 ||
               indices.dtype == DType::kUInt8 || indices.dtype == DType::kFloat32))
    return;
  throw Error(ErrorCode::kBadConfig, "the gradient of rows " + specText(gradient) +
                                         " doesn't have a row for each of the indices " +
                                         specText(indices));
}

}  // namespace dtf::graph
