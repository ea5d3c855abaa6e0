#pragma once

// The parts of examples. An example has named, typed parts of one shape each ("features", "labels",
// and categories by their names). A data set holds each part of all its examples, a batch of some
// of them. Only PartSpec tells names and types apart: code that moves examples moves bytes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/data/byte_block.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace dtf::data {

// Names of the fed inputs in the model's graph.
inline constexpr const char* kFeatures = "features";
inline constexpr const char* kLabels = "labels";

// Value type.
struct PartSpec {
  std::string name;
  DType dtype = DType::kUInt8;
  Shape shape;  // of one example
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtypeBytes(dtype); }
  bool operator==(const PartSpec&) const = default;
};

// One part of all examples, one after another.
// Owns: their bytes.
// Threads: immutable after construction, hence thread-safe.
class Part {
 public:
  // `source` is for messages: a path, or "the embedded digits". The bytes are whole examples
  // (DTF_CHECK).
  Part(PartSpec spec, std::string source, ByteBlock bytes)
      : spec_(std::move(spec)),
        example_bytes_(spec_.bytes()),
        source_(std::move(source)),
        bytes_(std::move(bytes)) {
    DTF_CHECK(!spec_.name.empty() && !source_.empty());
    DTF_CHECK_MSG(example_bytes_ > 0 && bytes_.size() % example_bytes_ == 0, spec_.name);
  }

  const PartSpec& spec() const { return spec_; }
  const std::string& source() const { return source_; }
  int64_t count() const { return static_cast<int64_t>(bytes_.size() / example_bytes_); }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), bytes_.size()}; }
  bool onDisk() const { return bytes_.onDisk(); }
  // See ByteBlock::willNeed(), for example `index`.
  void willNeed(int64_t index) const {
    bytes_.willNeed(static_cast<size_t>(index) * example_bytes_, example_bytes_);
  }
  // T must be the C++ type of the spec's dtype.
  template <class T>
  std::span<const T> as() const {
    DTF_CHECK(DTypeOf<T>::value == spec_.dtype);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  // Returns example `index` in [0, count()); unchecked, because it runs for each example of each
  // step.
  std::span<const uint8_t> of(int64_t index) const {
    return {bytes_.data() + static_cast<size_t>(index) * example_bytes_, example_bytes_};
  }

 private:
  PartSpec spec_;
  size_t example_bytes_;
  std::string source_;
  ByteBlock bytes_;
};

// Some examples for a step: for each part a tensor with the largest batch size as its first
// dimension.
struct Batch {
  Batch() = default;
  Batch(std::span<const Part> like, int64_t examples) : count(examples) {
    DTF_CHECK(examples > 0);
    for (const Part& part : like) {
      std::vector<int64_t> dims = {examples};
      const std::vector<int64_t>& of_one = part.spec().shape.dims();
      dims.insert(dims.end(), of_one.begin(), of_one.end());
      parts.emplace_back(part.spec().dtype, Shape(std::move(dims)));
    }
  }
  std::vector<Tensor> parts;  // in the order of the data set
  int64_t count = 0;          // of the examples in it: the first ones
};

}  // namespace dtf::data
