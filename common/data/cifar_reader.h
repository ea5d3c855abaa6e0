#pragma once

// The binary versions of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html):
// records of one byte, the label (0 to 9), or two, the coarse label (0 to 19) and the fine one (0
// to 99), and 3072, a 32 x 32 image: its red, then its green, then its blue plane. Plain or gzip,
// told apart by content; several files in order make one data set.
//
// Files are untrusted, as IDX files are.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int64_t kCifarSide = 32;
inline constexpr int64_t kCifarChannels = 3;
inline constexpr uint64_t kCifarBytesMax = uint64_t{8} << 30;  // of all files, unpacked

// The labels of a data set, and their place in its records.
struct CifarLabels {
  std::string dataset = "CIFAR-10";
  size_t bytes = 1;       // of all labels of a record
  size_t at = 0;          // the label to learn
  int classes[2] = {10};  // of each label

  int classesToLearn() const { return classes[at]; }
};

inline Shape cifarImage() {
  return {kCifarSide, kCifarSide, kCifarChannels};
}

// Returns the labels of format cifar10, or of cifar100 by its label_mode (DTF_CHECK).
CifarLabels cifarLabels(const cluster::DatasetSpec& spec);

// Counts the records of a file and checks each.
// Blocks: on the disk; about 10 ms for 10 000 images, 0.3 s when they are packed.
// Errors: kBadData naming the file: missing, empty, not whole records, a label beyond the classes,
// more than kCifarBytesMax. kPermission.
int64_t readCifarCount(const std::filesystem::path& path, const CifarLabels& labels);

// Reads the files. Images are [32, 32, 3], channels last.
// Blocks: on the disk; about 0.1 s for 10 000 images.
// Errors: see readCifarCount(), for all files together; kBadData for a file that changes meanwhile.
Dataset readCifar(std::span<const std::filesystem::path> files, const CifarLabels& labels);

}  // namespace dtf::data
