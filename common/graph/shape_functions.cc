#include "common/graph/shape_functions.h"

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

}  // namespace dtf::graph
