#pragma once

// The files of a data set, without reading them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Reading so many bytes takes more than a second or two: callers announce it.
inline constexpr uint64_t kLongReadBytes = uint64_t{128} << 20;

// Returns the first missing file or folder; empty: none is missing, or it has none.
// Blocks: on the disk.
std::filesystem::path missingPath(const cluster::DatasetSpec& dataset);

// Returns the size of all its files together, but not of a folder's. A missing file counts nothing:
// its reader reports it.
// Blocks: on the disk.
uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset);

// Describes the files for people: "t.csv and 2 more, 3.2 GiB" or "the images of flowers"; empty if
// it has none.
// Blocks: on the disk.
std::string filesText(const cluster::DatasetSpec& dataset);

// The files and folders that a host needs to read a data set.
struct DataFiles {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> folders;  // of the classes, also without an image
};

// Returns the files of a data set; of a folder of images only files with an image's name.
// Blocks: on the disk.
// Errors: see listImages().
DataFiles filesOf(const cluster::DatasetSpec& dataset);

}  // namespace dtf::data
