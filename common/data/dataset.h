#pragma once

// A data set in memory: images as bytes, labels as class numbers. Where it comes from (drawn here,
// read from the files of IDX or CIFAR-10) is openDataset()'s business; which of its examples make up a batch is
// batch_order.h's.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/cluster/spec.h"
#include "common/tensor/shape.h"

namespace dtf::data {

// Bytes that are not zeroed before something writes them: a data set is large and filled once.
class ByteBlock {
 public:
  ByteBlock() = default;
  explicit ByteBlock(size_t bytes)
      : data_(std::make_unique_for_overwrite<uint8_t[]>(bytes)), bytes_(bytes) {}
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t bytes_ = 0;
};

// Owns: all images, one after another, and their labels.
// Threads: immutable after construction, hence thread-safe.
// Blocks: never.
class Dataset {
 public:
  // What messages call its parts: paths, or "the embedded digits" twice.
  struct Names {
    std::string images;
    std::string labels;
  };

  // `images` holds labels.size() times example_shape.elements() bytes (DTF_CHECK).
  Dataset(Names names, Shape example_shape, ByteBlock images, ByteBlock labels);

  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  const Shape& exampleShape() const { return example_shape_; }  // [height, width, channels]
  size_t exampleBytes() const { return example_bytes_; }
  int classes() const { return classes_; }  // 1 + the largest label
  const Names& names() const { return names_; }

  // Both for `index` in [0, size()); unchecked, they are called per example and step.
  std::span<const uint8_t> image(int64_t index) const {
    return {images_.data() + static_cast<size_t>(index) * example_bytes_, example_bytes_};
  }
  uint8_t label(int64_t index) const { return labels_.data()[index]; }

  std::span<const uint8_t> images() const { return {images_.data(), images_.size()}; }
  std::span<const uint8_t> labels() const { return {labels_.data(), labels_.size()}; }

 private:
  Names names_;
  Shape example_shape_;
  size_t example_bytes_;
  ByteBlock images_;
  ByteBlock labels_;
  int classes_ = 0;
};

// Reads or draws what `spec` asks for. `seed` and `eval` choose which digits are drawn; files don't
// depend on them.
// Blocks: on the disk, or for about 20 us an image drawn, shared by up to 4 threads.
// Errors: as readIdxDataset() and readCifar10(), at the key that names the file; kBadConfig for a
// count of digits outside [1, kDigitsMax].
std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval);

// `name` is what messages call the labels.
// Errors: kBadData naming them, the first example whose label is not below `units`, and the layer.
void checkLabels(std::span<const uint8_t> labels, const std::string& name, int64_t units,
                 std::string_view layer);

// `name` is what messages call the images.
// Errors: kBadConfig when a batch needs more examples than there are, or there are more than can be
// shuffled.
void checkBatchSize(int64_t batch_size, int64_t examples, const std::string& name);

}  // namespace dtf::data
