#pragma once

// Reads libsvm files (svmlight's, too): a line for each example, "label index:value ...", with
// whole indices, ascending from 1, and numbers; what isn't listed is 0. A '#' begins a comment.
//
// Files are untrusted. A record that can't be read (no label, an index that is no such, a value
// that is no number) is reported with its line and column; see bad_records.h.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int64_t kLibsvmIndexMax = int64_t{1} << 24;     // of a file whose width is unknown
inline constexpr size_t kLibsvmLineBytesMax = size_t{16} << 20;  // without its comment

// Reads all files, in order: float32 features of the model's shape, with zeros for what isn't
// listed, and classes, or targets [1]. Labels of -1 and 1 are the classes 0 and 1; others are whole
// numbers from 0, or words of `class_names`. Blocks: on the disk. Memory: see GrowingBlock. Errors:
// kBadData with file, line and column for more bad records than may be, for a file of another kind,
// for "qid:", which groups records for a ranking, and for labels of both -1 and 0; kCannotWrite
// without room for many.
Dataset readLibsvm(const cluster::DatasetSpec& spec);

// Reads a file to predict from; its lines may lack the label. The labels of a file that has all of
// them are returned as text. `like`: the training data.
// Errors: as readLibsvm(); of bad records any number is given, but not all.
UnlabelledExamples readLibsvmFeatures(const std::filesystem::path& file,
                                      const cluster::DatasetSpec& like);

// The labels and features of one example.
PartSpec libsvmFeatures(const cluster::DatasetSpec& spec);
PartSpec libsvmLabels(const cluster::DatasetSpec& spec);

// Returns the number of lines that hold an example, good or bad. Blocks: on the disk.
// Errors: kBadData for a file that can't be read, or is of another kind.
int64_t countLibsvm(std::span<const std::filesystem::path> files);

// The facts that a job's file needs. Value type.
struct LibsvmFacts {
  int64_t examples = 0;
  int64_t width = 0;                // the largest index, or one more if they begin at 0
  bool zero_based = false;          // there is an index 0
  std::vector<std::string> labels;  // the different ones, as className(), sorted; too many: empty
  bool are_whole = true;            // the labels
  double mean = 0, deviation = 0;   // of the labels
};
// Errors: kBadData for the first record that can't be read.
LibsvmFacts readLibsvmFacts(const std::filesystem::path& file);

// Whether a text begins with lines of a libsvm file.
bool looksLikeLibsvm(std::string_view begin);

}  // namespace dtf::data
