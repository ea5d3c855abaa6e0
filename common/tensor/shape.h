#pragma once

// The dimensions of a tensor, outermost first, row-major. Static: every dimension is known.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtf {

// Value type. A zero dimension is allowed; the other dimensions multiplied, in whatever order and
// however few of them, are at most kElementsMax, as in NumPy: with a zero among them no elements
// are there to give away a dimension of 2^63, and whoever adds a padding to it overflows.
class Shape {
 public:
  static constexpr int64_t kElementsMax = int64_t{1} << 61;

  Shape() = default;  // a scalar
  // Errors: kBadConfig for a negative dimension, or when the others multiplied are more than
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
