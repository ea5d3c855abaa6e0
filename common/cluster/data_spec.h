#pragma once

// What TRAIN.yaml says of its data, as value types that hold only what passed validation. Defaults
// here are the documented defaults.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/tensor/dtype.h"
#include "common/yaml/mark.h"

namespace dtf::cluster {

// A file or files, as the job's file names them: absolute, or relative to it (already resolved).
struct DataFile {
  std::filesystem::path path;
  yaml::Mark mark;
};

// What dtf draws itself beside digits; see data/synthetic.h.
enum class Problem : uint8_t { kFriedman, kLinear, kTags, kCentres };

// Columns of a table in text.
struct CsvSpec {
  bool header = true;    // the first line names the columns
  char delimiter = ',';  // or a tab
  // Columns by name, or by number from 1. One label or some targets; no features: all others.
  std::string label;
  std::vector<std::string> targets;
  std::vector<std::string> features;
  std::vector<std::string> class_names;  // the words of the label, from class 0; none: numbers
  int64_t max_bad_records = 100;         // more end the job
};

// How the numbers of an array become features.
enum class FeaturesAs : uint8_t {
  kFloat32 = 1,  // as they are
  kPixels,       // bytes, which the model divides by 255
  kIndices       // whole numbers
};

// Arrays of NumPy.
struct NpySpec {
  DataFile archive;                       // npz
  DataFile features;                      // npy: a file; npz: the name of an array
  DataFile labels;                        // classes
  DataFile targets;                       // floats, in place of labels
  std::optional<FeaturesAs> features_as;  // none: float32, and bytes are asked about
  DType featuresType() const;
};

struct DatasetSpec {
  enum class Format : uint8_t {
    kDigits,
    kIdx,
    kCifar10,
    kSynthetic,
    kCsv,
    kNpy,
    kNpz
  } format = Format::kDigits;
  std::filesystem::path
      images;  // kIdx: absolute, or relative to the file that names them (already resolved)
  std::filesystem::path labels;
  std::vector<std::filesystem::path> files;  // kCifar10, kCsv: in order, resolved likewise
  int64_t count = 10000;                     // kDigits, kSynthetic: how many to draw
  Problem problem = Problem::kFriedman;      // kSynthetic
  int64_t classes = 10;                      // kSynthetic: kCentres
  CsvSpec csv;
  NpySpec npy;
  yaml::Mark mark;
  yaml::Mark images_mark;
  yaml::Mark labels_mark;
  std::vector<yaml::Mark> files_marks;  // of each of `files`

  // What the model is fed with.
  DType featuresType() const;
  DType labelsType() const;  // float32: targets; else classes
};

// How images are changed each time they are trained on; see data/augment.h.
struct AugmentSpec {
  bool flip_horizontal = false;
  int64_t crop_padding = 0;  // pixels
  bool any() const { return flip_horizontal || crop_padding > 0; }
  std::string text() const;  // "flip_horizontal=true crop_padding=4"; empty: nothing
};

struct DataSpec {
  DatasetSpec train;
  AugmentSpec augment;  // of `train` alone
  std::optional<DatasetSpec> eval;
  int64_t batch_size = 100;    // per replica
  yaml::Mark batch_size_mark;  // empty: the default
  // of the batch order, the initial values, the dropout masks and the examples that are drawn
  uint64_t seed = 1;
};

}  // namespace dtf::cluster
