#pragma once

// What can be known of the files of a data set without reading them.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// The first of its files and folders that isn't here; empty: all are, or it has none.
// Blocks: on the disk.
std::filesystem::path missingPath(const cluster::DatasetSpec& dataset);

// Of all of `dataset.files` together. One that has gone meanwhile counts nothing: its reader says so.
// Blocks: on the disk.
uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset);

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
