#pragma once

// From what a job's file says of its data to the data.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/data/image_folder.h"

namespace dtf::data {

// Reads or draws what `spec` asks for. `seed` and `eval` choose which examples are drawn; files don't
// depend on them.
// Blocks: on the disk, or for about 20 us an image drawn, shared by up to 4 threads.
// Errors: those of the reader, at the key that names the file; kBadConfig for a count of examples to
// draw that is out of range.
std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval);

// That both tables, where both are tables, have the same columns in the same order, and both folders of
// images the same classes.
// Errors: those of readCsvHeader() and classFolders(); kBadData at the file or folder of `eval` that has others.
void checkSameOrder(const cluster::DatasetSpec& train, const cluster::DatasetSpec& eval);

// What the classes are called, from class 0 on: the subfolders of a folder of images, or the class_names
// of the job's file; empty where nobody says it.
// Errors: those of classFolders(), at the key that names the folder.
std::vector<std::string> classNames(const cluster::DatasetSpec& spec);

// Examples without labels, to be predicted: an array of NumPy, an archive with the arrays of the job's, an image or a folder of them, a table where
// the job reads tables (`like` is its training data), else an IDX file. With a header a table's columns are
// found by their names in the training data's; others, as the label's, are left out. `input_shape` is that of
// the model, which images are brought to.
// Errors: those of the reader; kBadConfig for images that the model can't read.
UnlabelledExamples readFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like,
                                const std::vector<int64_t>& input_shape);

}  // namespace dtf::data
