#include "common/data/data_files.h"

#include <vector>

namespace dtf::data {

std::filesystem::path missingPath(const cluster::DatasetSpec& dataset) {
  std::vector<std::filesystem::path> paths = dataset.files;
  paths.insert(paths.end(), {dataset.images, dataset.labels, dataset.npy.archive.path,
                             dataset.image_folder.folder.path});
  // The arrays of an archive are names in it.
  if (dataset.format != cluster::DatasetSpec::Format::kNpz)
    paths.insert(paths.end(),
                 {dataset.npy.features.path, dataset.npy.labels.path, dataset.npy.targets.path});
  std::error_code ignored;
  for (const std::filesystem::path& path : paths)
    if (!path.empty() && !std::filesystem::exists(path, ignored)) return path;
  return {};
}

uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset) {
  uint64_t bytes = 0;
  for (const std::filesystem::path& file : dataset.files) {
    std::error_code gone;
    const uint64_t size = std::filesystem::file_size(file, gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace dtf::data
