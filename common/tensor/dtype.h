#pragma once

// Element types of tensors.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dtf {

// The numbers are part of the protocol: never reuse one.
enum class DType : uint8_t {
  kFloat32 = 1,
  kUInt8 = 2,
  kInt32 = 3,
  kInt64 = 4,
  // Only inside a compiled step (runtime/mixed_precision.h): no tensor that is fed, fetched, stored
  // or sent has it.
  kBFloat16 = 5
};

size_t dtypeBytes(DType dtype);
std::string_view dtypeName(DType dtype);  // "float32"

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};

}  // namespace dtf
