#pragma once

// A copy of an operation from the boundary, from which kernels are made.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/device_plugin.h"

namespace dtf::gpu {

enum class Type : int32_t {
  kFloat32 = DTF_PLUGIN_FLOAT32,
  kUInt8 = DTF_PLUGIN_UINT8,
  kInt32 = DTF_PLUGIN_INT32,
  kInt64 = DTF_PLUGIN_INT64,
  kBFloat16 = DTF_PLUGIN_BFLOAT16
};
int64_t bytesOf(Type type);

// Value type.
struct TensorSpec {
  Type type = Type::kFloat32;
  std::vector<int64_t> dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t elements() const;
  int64_t bytes() const { return elements() * bytesOf(type); }
  // A tensor as rows of its last dimension, and a table as rows of all dimensions but the first.
  int64_t lastDim() const;
  int64_t rows() const;
  int64_t rowWidth() const;
};

// Value type.
class Operation {
 public:
  // Errors: kInternal for a type that is not in the boundary.
  explicit Operation(const dtf_plugin_operation& given);

  std::string name, op;
  std::vector<TensorSpec> inputs, outputs;

  // Attributes; `fallback` if the op has none with this key.
  double number(std::string_view key, double fallback = 0) const;
  int64_t integer(std::string_view key, int64_t fallback = 0) const;
  bool flag(std::string_view key) const { return integer(key) != 0; }
  std::vector<int64_t> list(std::string_view key) const;

 private:
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, int64_t, std::less<>> integers_;
  std::map<std::string, std::vector<int64_t>, std::less<>> lists_;
};

}  // namespace dtf::gpu
