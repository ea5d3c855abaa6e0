#pragma once

// A folder of PNG and JPEG files with a subfolder for each class, as torchvision's ImageFolder
// reads it: classes are numbered in the order of the subfolders' names (byte by byte), files may
// lie deeper, names that begin with a dot are passed over, and every image becomes one of the
// model's size (image_resize.h) and channels (image_decoder.h).
//
// Files are untrusted. One that can't be read costs one example: it is left out, said in the log by
// name, and counted; too many of them end the reading. All workers leave out the same ones.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"

namespace dtf::data {

// What is there, without a look into the files.
struct ImageList {
  struct File {
    std::filesystem::path path;
    int32_t label = 0;
  };
  std::vector<std::string> class_names;
  std::vector<File> files;      // by class, then by name
  int64_t others = 0;           // files whose names are no pictures'
  std::filesystem::path other;  // the first of them
};

// The classes alone.
// Errors: as listImages().
std::vector<std::string> classFolders(const cluster::ImagesSpec& spec);

// Blocks: on the disk; a million files take some seconds.
// Errors: kBadData naming the folder: missing, without subfolders, without images, or class_names
// that aren't there or not all; kPermission.
ImageList listImages(const cluster::ImagesSpec& spec);

// The parts of one example.
PartSpec imageFeatures(const cluster::ImagesSpec& spec);
PartSpec imageLabels();

struct ImageTable {
  Dataset dataset;
  std::vector<std::filesystem::path> files;  // of each record, whether it is an example or not
};

// Blocks: on the disk, and for about 2 ms an image of 500 x 375 pixels, shared by up to 16 threads.
// Errors: as listImages(); kBadData with the first bad files, where there are more than
// ImagesSpec::max_bad_records, and when no good one is left.
ImageTable readImageFolder(const cluster::ImagesSpec& spec);

// The features alone: of one image, or of those in a folder, in order of name, whatever classes
// they belong to.
// Errors: kBadData where none of them is good.
UnlabelledExamples readImageFeatures(const std::filesystem::path& path,
                                     const cluster::ImagesSpec& spec);

}  // namespace dtf::data
