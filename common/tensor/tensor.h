#pragma once

// A typed, shaped, owned block of memory: initial values, batches, results.

#include <span>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/tensor/buffer.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace dtf {

// Owns its memory. Move-only; thread-compatible.
class Tensor {
 public:
  Tensor() = default;
  // Errors: kBadConfig if its size overflows; kUnavailable without memory.
  Tensor(DType dtype, Shape shape)
      : dtype_(dtype), shape_(std::move(shape)), buffer_(bytesOf(dtype, shape_)) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::byte* data() { return buffer_.data(); }
  const std::byte* data() const { return buffer_.data(); }
  size_t bytes() const { return buffer_.bytes(); }

  // T must be the C++ type of dtype().
  template <class T>
  std::span<T> as() {
    DTF_CHECK(DTypeOf<T>::value == dtype_);
    return {buffer_.as<T>(), static_cast<size_t>(shape_.elements())};
  }
  template <class T>
  std::span<const T> as() const {
    DTF_CHECK(DTypeOf<T>::value == dtype_);
    return {buffer_.as<T>(), static_cast<size_t>(shape_.elements())};
  }

 private:
  static size_t bytesOf(DType dtype, const Shape& shape) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(shape.elements()), dtypeBytes(dtype), &bytes))
      throw Error(ErrorCode::kBadConfig, "a tensor " + shape.str() + " is too large");
    return bytes;
  }

  DType dtype_ = DType::kFloat32;
  Shape shape_;
  Buffer buffer_;
};

}  // namespace dtf
