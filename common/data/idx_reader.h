#pragma once

// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): a big-endian header (two zero
// bytes, the element type, the number of dimensions, the dimensions as uint32), then the elements.
// Plain or gzip, told apart by content.
//
// Files are untrusted: sizes are compared with the most that the file can hold before memory is
// allocated, and a gzip stream is unpacked only as far as the header promises.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/data/dataset.h"

namespace dtf::data {

// The limit of one unpacked file. A header that promises more is refused.
inline constexpr uint64_t kIdxBytesMax = uint64_t{1} << 40;

// The elements of an IDX file of unsigned bytes.
struct IdxArray {
  std::vector<uint32_t> dims;  // outermost first; `rank_min` to `rank_max` of them
  ByteBlock bytes;
};

// Blocks: on the disk; about 0.2 s for MNIST's packed training images.
// Errors: kBadData naming the file, what was expected and what was found: missing, no IDX file (and
// what it looks like), too few or too many dimensions, more than `bytes_max` bytes, truncated,
// trailing bytes, damaged gzip data. kPermission when it may not be read.
IdxArray readIdx(const std::filesystem::path& path, int rank_min, int rank_max,
                 uint64_t bytes_max = kIdxBytesMax);

// The header of a file of images, to check it before a job starts.
struct IdxImages {
  int64_t count = 0;
  Shape example_shape;  // [height, width, channels]
};
// Blocks: on the disk, shortly.
// Errors: see readIdx(), as far as the header and the file's size show; kBadData when it is empty.
IdxImages readIdxImagesHeader(const std::filesystem::path& path);

// Reads one label a byte.
// Errors: see readIdx().
Part readIdxLabels(const std::filesystem::path& path);

// Returns an error message if the two files of a data set hold different numbers of examples; else
// nothing.
std::string countMismatch(const std::filesystem::path& images, int64_t image_count,
                          const std::filesystem::path& labels, int64_t label_count);

// Reads images of 3 dimensions (count, height, width) or 4 (and channels), with the labels of
// another file.
// Errors: see readIdx(); kBadData when the counts differ or are 0.
Dataset readIdxDataset(const std::filesystem::path& images, Part labels);

}  // namespace dtf::data
