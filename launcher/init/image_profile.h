#pragma once

// A folder of images as a model may use it: its classes, and the size that all images are brought
// to.

#include <filesystem>

#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

// Lists a folder with a subfolder for each class, or with the folders `train` and `val` of such
// ones, and decodes up to kImagesLookedAt of its images.
// Blocks: on the disk, and for some milliseconds an image.
// Errors: those of data::listImages(); kBadData for a single class, or without an image that can be
// read.
ImagesProfile profileImages(const std::filesystem::path& folder);

inline constexpr int64_t kImagesLookedAt = 1000;
inline constexpr int64_t kModelSideMax = 64;  // of the images that a job of init reads

}  // namespace dtf::launcher
