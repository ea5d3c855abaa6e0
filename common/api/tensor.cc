#include <algorithm>
#include <utility>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"

namespace dtf::api {

DType dtypeOf(dtf_dtype dtype) {
  for (const DType known : {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64})
    if (static_cast<int>(known) == static_cast<int>(dtype)) return known;
  throw Error(ErrorCode::kBadConfig,
              "there is no type of elements with the number " + std::to_string(dtype));
}

Shape shapeOf(const int64_t* dims, size_t rank) {
  DTF_CHECK(rank == 0 || dims != nullptr);
  return Shape(std::vector<int64_t>(dims, dims + rank));
}

}  // namespace dtf::api

using dtf::api::guarded;

dtf_code dtf_tensor_new(dtf_dtype dtype, const int64_t* dims, size_t rank, dtf_tensor** made) {
  return guarded([&] {
    dtf::Tensor tensor(dtf::api::dtypeOf(dtype), dtf::api::shapeOf(dims, rank));
    std::fill_n(tensor.data(), tensor.bytes(), std::byte{0});
    *made = new dtf_tensor{std::move(tensor)};
  });
}

void dtf_tensor_free(dtf_tensor* tensor) {
  delete tensor;
}

dtf_dtype dtf_tensor_dtype(const dtf_tensor* tensor) {
  return static_cast<dtf_dtype>(tensor->tensor.dtype());
}

size_t dtf_tensor_rank(const dtf_tensor* tensor) {
  return tensor->tensor.shape().dims().size();
}

int64_t dtf_tensor_dim(const dtf_tensor* tensor, size_t axis) {
  return tensor->tensor.shape().dim(static_cast<int>(axis));
}

size_t dtf_tensor_bytes(const dtf_tensor* tensor) {
  return tensor->tensor.bytes();
}

void* dtf_tensor_data(dtf_tensor* tensor) {
  return tensor->tensor.data();
}

const void* dtf_tensor_const_data(const dtf_tensor* tensor) {
  return tensor->tensor.data();
}
