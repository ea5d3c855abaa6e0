#pragma once

// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): a big-endian header (two zero
// bytes, the element type, the number of dimensions, the dimensions as uint32), then the elements.
// Plain or gzip, told apart by content.
//
// Files are untrusted: sizes are compared with what the file can hold before anything is allocated,
// and a gzip stream is unpacked only as far as the header promises.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/data/dataset.h"

namespace dtf::data {

// Of one unpacked file. A header that promises more is refused.
inline constexpr uint64_t kIdxBytesMax = uint64_t{8} << 30;

// The elements of an IDX file of unsigned bytes.
struct IdxArray {
  std::vector<uint32_t> dims;  // outermost first; `rank_min` to `rank_max` of them
  ByteBlock bytes;
};

// Blocks: on the disk; about 0.2 s for MNIST's packed training images.
// Errors: kBadData naming the file, what was expected and what was found: missing, wrong magic, too
// few or too many dimensions, more than `bytes_max` bytes, truncated, trailing bytes, damaged gzip
// data.
IdxArray readIdx(const std::filesystem::path& path, int rank_min, int rank_max,
                 uint64_t bytes_max = kIdxBytesMax);

// Images of 3 dimensions (count, height, width) or 4 (and channels) with labels of 1.
// Errors: as readIdx(), and kBadData when the counts differ or are 0.
Dataset readIdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace dtf::data
