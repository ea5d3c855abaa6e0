#pragma once

// A folder of PNG, JPEG, WebP and BMP files with a subfolder for each class, as torchvision's
// ImageFolder reads it: classes are numbered in the order of the subfolders' names (byte by byte),
// files may lie deeper, names that begin with a dot are passed over, and every image becomes one of
// the model's size (image_resize.h) and channels (image_decoder.h).
//
// Files are untrusted. A file that can't be read costs one example: it is left out, logged by name,
// and counted; too many of them end the reading. All workers leave out the same ones.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"

namespace dtf::data {

// The classes and files of a folder, without reading the files.
struct ImageList {
  struct File {
    std::filesystem::path path;
    int32_t label = 0;
  };
  std::vector<std::string> class_names;
  std::vector<File> files;      // by class, then by name
  int64_t others = 0;           // files that aren't named as images
  std::filesystem::path other;  // the first of them
};

// Returns the classes alone.
// Errors: see listImages().
std::vector<std::string> classFolders(const cluster::ImagesSpec& spec);

// Blocks: on the disk; a million files take some seconds.
// Errors: kBadData naming the folder: missing, without subfolders, without images, or class_names
// that are missing or incomplete; kPermission.
ImageList listImages(const cluster::ImagesSpec& spec);

// The parts of one example.
PartSpec imageFeatures(const cluster::ImagesSpec& spec);
PartSpec imageLabels();

struct ImageTable {
  Dataset dataset;
  std::vector<std::filesystem::path> files;  // of each record, whether it is an example or not
};

// Blocks: on the disk, and for about 2 ms an image of 500 x 375 pixels, shared by up to 16 threads.
// Errors: see listImages(); kBadData with the first bad files, if there are more than
// ImagesSpec::max_bad_records, and when no good one is left.
ImageTable readImageFolder(const cluster::ImagesSpec& spec);

// Reads the features alone, of one image or of the images in a folder, in order of name, whatever
// their classes.
// Errors: kBadData if none of them is good.
UnlabelledExamples readImageFeatures(const std::filesystem::path& path,
                                     const cluster::ImagesSpec& spec);

}  // namespace dtf::data
