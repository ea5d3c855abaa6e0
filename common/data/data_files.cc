#include "common/data/data_files.h"

#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/data/image_folder.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

namespace {

// Returns all files that its keys name, without a folder of images.
std::vector<std::filesystem::path> namedFiles(const cluster::DatasetSpec& dataset) {
  std::vector<std::filesystem::path> paths = dataset.files;
  paths.insert(paths.end(), {dataset.images, dataset.labels, dataset.npy.archive.path});
  // The arrays of an archive are names in it.
  if (dataset.format != cluster::DatasetSpec::Format::kNpz)
    paths.insert(paths.end(),
                 {dataset.npy.features.path, dataset.npy.labels.path, dataset.npy.targets.path});
  if (dataset.format == cluster::DatasetSpec::Format::kNpy)
    for (const cluster::CategoricalArray& each : dataset.npy.categorical)
      paths.push_back(each.array.path);
  std::erase(paths, std::filesystem::path());
  return paths;
}

}  // namespace

std::filesystem::path missingPath(const cluster::DatasetSpec& dataset) {
  std::vector<std::filesystem::path> paths = namedFiles(dataset);
  paths.push_back(dataset.image_folder.folder.path);
  std::error_code ignored;
  for (const std::filesystem::path& path : paths)
    if (!path.empty() && !std::filesystem::exists(yaml::placeOfData(path), ignored)) return path;
  return {};
}

uint64_t bytesOfFiles(const cluster::DatasetSpec& dataset) {
  uint64_t bytes = 0;
  for (const std::filesystem::path& file : namedFiles(dataset)) {
    std::error_code gone;
    const uint64_t size = std::filesystem::file_size(yaml::placeOfData(file), gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

std::string filesText(const cluster::DatasetSpec& dataset) {
  if (dataset.format == cluster::DatasetSpec::Format::kImages)
    return "the images of " + dataset.image_folder.folder.path.string();
  const std::vector<std::filesystem::path> files = namedFiles(dataset);
  if (files.empty()) return "";
  return files[0].string() +
         (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more, " : ", ") +
         bytesText(bytesOfFiles(dataset));
}

DataFiles filesOf(const cluster::DatasetSpec& dataset) {
  DataFiles found{namedFiles(dataset), {}};
  if (dataset.format != cluster::DatasetSpec::Format::kImages) return found;
  ImageList images = listImages(dataset.image_folder);
  for (ImageList::File& file : images.files) found.files.push_back(std::move(file.path));
  for (const std::string& name : images.class_names)
    found.folders.push_back(dataset.image_folder.folder.path / name);
  return found;
}

}  // namespace dtf::data
