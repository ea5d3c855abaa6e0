#pragma once

// Dense tensors: the inputs and results of sessions.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

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
  static Tensor of(const Dims& dims, std::span<const T> values) {
    Tensor tensor(dtypeOf<T>(), dims);
    const std::span<T> to = tensor.as<T>();
    if (to.size() != values.size())
      throw Error(DTF_USAGE, "a tensor's values are as many as its elements");
    std::copy(values.begin(), values.end(), to.begin());
    return tensor;
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
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
  std::span<T> as() & {
    return {static_cast<T*>(dtf_tensor_data(of<T>())), dtf_tensor_bytes(get()) / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const& {
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
