#pragma once

// What can be known of the files of a data set without reading them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Reading so many bytes takes more than a second or two, which people are told.
inline constexpr uint64_t kLongReadBytes = uint64_t{128} << 20;

// The first of its files and folders that isn't here; empty: all are, or it has none.
// Blocks: on the disk.
std::filesystem::path missingPath(const cluster::DatasetSpec& dataset);

// Of all its files together, but those of a folder. One that has gone meanwhile counts nothing: its
// reader says so.
// Blocks: on the disk.
uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset);

// What reading it reads, for people: "t.csv and 2 more, 3.2 GiB" or "the images of flowers"; empty
// where it has none.
// Blocks: on the disk.
std::string filesText(const cluster::DatasetSpec& dataset);

// What must be on a host that reads it.
struct DataFiles {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> folders;  // of the classes: one without an image counts, too
};

// Of a folder of images those that are images by their names.
// Blocks: on the disk.
// Errors: those of listImages().
DataFiles filesOf(const cluster::DatasetSpec& dataset);

}  // namespace dtf::data
