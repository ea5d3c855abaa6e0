#pragma once

// Dense tensors: the inputs and results of sessions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <ranges>
#endif

#include "error.h"

namespace dtf {
inline namespace v1 {

using Dims = std::vector<int64_t>;  // outermost first; {}: a scalar

template <class T>
constexpr dtf_dtype dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return DTF_FLOAT32;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DTF_UINT8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DTF_INT32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DTF_INT64;
  else
    static_assert(sizeof(T) == 0, "float, uint8_t, int32_t or int64_t");
}

// The elements of a Tensor, or any other array: std::span, for C++17 as well. Converts to and from
// std::span and std::vector. Borrows the elements.
template <class T>
class Span {
 public:
  using value_type = std::remove_cv_t<T>;
  using iterator = T*;

  Span() = default;
  Span(T* data, size_t size) : data_(data), size_(size) {}
  // Converts an array that has data() and size().
  template <class Array, class = std::enable_if_t<
                             std::is_convertible_v<decltype(std::declval<Array&>().data()), T*>>>
  Span(Array&& array) : Span(array.data(), array.size()) {}  // NOLINT: as std::span converts

  T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](size_t index) const { return data_[index]; }
  T& front() const { return data_[0]; }
  T& back() const { return data_[size_ - 1]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A handle: copies share the memory, which is freed with the last of them. Several threads may read
// it.
// Errors: DTF_BAD_CONFIG for negative dimensions, DTF_USAGE for a wrong number or type of values,
// DTF_UNAVAILABLE without memory.
class Tensor {
 public:
  Tensor(dtf_dtype dtype, const Dims& dims) {
    dtf_tensor* made = nullptr;
    check(dtf_tensor_new(dtype, dims.data(), dims.size(), &made));
    handle_.reset(made, Free());
  }
  template <class T>
  static Tensor of(const Dims& dims, Span<const T> values) {
    Tensor tensor(dtypeOf<T>(), dims);
    const Span<T> to = tensor.as<T>();
    if (to.size() != values.size())
      throw Error(DTF_USAGE, "a tensor's values are as many as its elements");
    std::copy(values.begin(), values.end(), to.begin());
    return tensor;
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, Span<const T>(&value, 1));
  }
  explicit Tensor(dtf_tensor* taken) : handle_(taken, Free()) {}  // takes ownership

  dtf_dtype dtype() const { return dtf_tensor_dtype(get()); }
  Dims dims() const {
    Dims dims(dtf_tensor_rank(get()));
    for (size_t axis = 0; axis < dims.size(); ++axis) dims[axis] = dtf_tensor_dim(get(), axis);
    return dims;
  }
  // T must match dtype().
  template <class T>
  Span<T> as() & {
    return {static_cast<T*>(dtf_tensor_data(of<T>())), dtf_tensor_bytes(get()) / sizeof(T)};
  }
  template <class T>
  Span<const T> as() const& {
    return {static_cast<const T*>(dtf_tensor_const_data(of<T>())),
            dtf_tensor_bytes(get()) / sizeof(T)};
  }

  template <class T>
  void as() && = delete;  // its memory would be gone

  const dtf_tensor* get() const { return handle_.get(); }

 private:
  template <class T>
  dtf_tensor* of() const {
    if (dtype() != dtypeOf<T>()) throw Error(DTF_USAGE, "a tensor is read as its dtype()");
    return handle_.get();
  }

  struct Free {
    void operator()(dtf_tensor* tensor) const { dtf_tensor_free(tensor); }
  };
  std::shared_ptr<dtf_tensor> handle_;
};

}  // namespace v1
}  // namespace dtf

#if defined(__cpp_lib_ranges)
// A std::span may be made of a Span that is a temporary: the elements are another's.
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<dtf::Span<T>> = true;
#endif
