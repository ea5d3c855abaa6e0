#pragma once

// The dimensions of a tensor, outermost first, row-major. Static: every dimension is known.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtf {

// Value type. The number of elements fits int64 by construction; a zero dimension is allowed.
class Shape {
 public:
  Shape() = default;  // a scalar
  // Errors: kBadConfig for a negative dimension, or when the number of elements overflows int64.
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
