#pragma once

// The binary version of CIFAR-10 (https://www.cs.toronto.edu/~kriz/cifar.html): records of one
// byte, the label (0 to 9), and 3072, a 32 x 32 image: its red, then its green, then its blue
// plane. Plain or gzip, told apart by content; several files in order make one data set.
//
// Files are untrusted, as IDX files are.

#include <cstdint>
#include <filesystem>
#include <span>

#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int64_t kCifar10Side = 32;
inline constexpr int64_t kCifar10Channels = 3;
inline constexpr int kCifar10Classes = 10;
inline constexpr uint64_t kCifar10BytesMax = uint64_t{8} << 30;  // of all files, unpacked

// Counts the records of a file and checks each.
// Blocks: on the disk; about 10 ms for 10 000 images, 0.3 s when they are packed.
// Errors: kBadData naming the file: missing, empty, not whole records, a label above 9, more than
// kCifar10BytesMax. kPermission.
int64_t readCifar10Count(const std::filesystem::path& path);

// Reads the files. Images are [32, 32, 3], channels last.
// Blocks: on the disk; about 0.1 s for 10 000 images.
// Errors: see readCifar10Count(), for all files together; kBadData for a file that changes
// meanwhile.
Dataset readCifar10(std::span<const std::filesystem::path> files);

}  // namespace dtf::data
