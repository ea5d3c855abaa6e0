#include "common/tensor/shape.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {

Shape::Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {
  for (const int64_t dim : dims_) {
    if (dim < 0) throw Error(ErrorCode::kBadConfig, "shape " + str() + " has a negative dimension");
    if (__builtin_mul_overflow(elements_, dim, &elements_))
      throw Error(ErrorCode::kBadConfig, "shape " + str() + " has more elements than fit 64 bits");
  }
}

int64_t Shape::dim(int axis) const {
  DTF_CHECK(axis >= 0 && axis < rank());
  return dims_[static_cast<size_t>(axis)];
}

std::string Shape::str() const {
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
  return text + "]";
}

}  // namespace dtf
