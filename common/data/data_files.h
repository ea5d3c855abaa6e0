#pragma once

// What can be known of the files of a data set without reading them.

#include <cstdint>
#include <filesystem>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// The first of its files and folders that isn't here; empty: all are, or it has none.
// Blocks: on the disk.
std::filesystem::path missingPath(const cluster::DatasetSpec& dataset);

// Of all of `dataset.files` together. One that has gone meanwhile counts nothing: its reader says so.
// Blocks: on the disk.
uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset);

}  // namespace dtf::data
