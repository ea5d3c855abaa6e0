#include "common/tensor/shape.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {

Shape::Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {
  int64_t unhidden = 1;  // the product of all dimensions but zeros
  for (const int64_t dim : dims_) {
    if (dim < 0) throw Error(ErrorCode::kBadConfig, "shape " + str() + " has a negative dimension");
    if (dim == 0) {
      elements_ = 0;
      continue;
    }
    if (__builtin_mul_overflow(unhidden, dim, &unhidden) || unhidden > kElementsMax) {
      throw Error(ErrorCode::kBadConfig, "shape " + str() + " has dimensions with a product over " +
                                             std::to_string(kElementsMax) +
                                             ", the most elements that a tensor can have");
    }
  }
  if (elements_ != 0) elements_ = unhidden;
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
