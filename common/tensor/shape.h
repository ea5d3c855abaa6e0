#pragma once

// The dimensions of a tensor, outermost first, row-major. Static: every dimension is known.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtf {

// Value type. A zero dimension is allowed. The product of the other dimensions is at most
// kElementsMax, as in NumPy: a tensor without elements could otherwise have a dimension of 2^63,
// and adding a padding to it would overflow.
class Shape {
 public:
  static constexpr int64_t kElementsMax = int64_t{1} << 61;

  Shape() = default;  // a scalar
  // Errors: kBadConfig for a negative dimension, or if the product of the nonzero ones exceeds
  // kElementsMax.
  explicit Shape(std::vector<int64_t> dims);
  Shape(std::initializer_list<int64_t> dims) : Shape(std::vector<int64_t>(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const;  // axis in [0, rank)
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t elements() const { return elements_; }  // 1 for a scalar
  bool operator==(const Shape&) const = default;
  std::string str() const;  // "[100, 784]"; "[]" for a scalar

 private:
  std::vector<int64_t> dims_;
  int64_t elements_ = 1;
};

}  // namespace dtf
