#pragma once

// What TRAIN.yaml says of its data, as value types that hold only what passed validation. Defaults
// here are the documented defaults.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/dtype.h"
#include "common/yaml/mark.h"

namespace dtf::cluster {

// A file or files, as the job's file names them: absolute, or relative to it (already resolved).
struct DataFile {
  std::filesystem::path path;
  yaml::Mark mark;
};

// What dtf draws itself beside digits; see data/synthetic.h.
enum class Problem : uint8_t { kFriedman, kLinear, kTags, kCentres, kClicks };
inline constexpr int64_t kClickUsers = 1000;  // of kClicks
inline constexpr int64_t kClickItems = 500;

// Columns of a table whose fields are categories: each field becomes a whole number, which names a
// row of an embedding. They are one input of the model.
struct CategoricalColumns {
  std::string name;                          // by which the model's layers read them
  std::vector<std::string> columns;          // by name, or by number from 1
  int64_t hash_bucket_size = 0;              // fields are hashed to below it; 0: they aren't
  std::vector<std::string> vocabulary_list;  // the fields, from number 0 on; none: they are numbers
  int64_t num_oov_buckets = 0;  // other fields are hashed to so many numbers behind those
  yaml::Mark mark;
  // As a model reads them.
  model::CategoryInput input() const;
};

// Columns of a table in text.
struct CsvSpec {
  bool header = true;           // the first line names the columns
  bool header_is_said = false;  // by the job's file, so names may look like a record
  char delimiter = ',';         // or a tab
  // Columns by name, or by number from 1. One label or some targets; no features: all others.
  std::string label;
  std::vector<std::string> targets;
  std::vector<std::string> features;
  bool no_features = false;                     // none at all: the model reads categories alone
  bool whole_features = false;                  // the model looks them up: whole numbers from 0
  std::vector<CategoricalColumns> categorical;  // in order of name
  std::vector<std::string> class_names;  // the words of the label, from class 0; none: numbers
  int64_t max_bad_records = 0;           // more end the job
};

// How the numbers of an array become features.
enum class FeaturesAs : uint8_t {
  kFloat32 = 1,  // as they are
  kPixels,       // bytes, which the model divides by 255
  kIndices       // whole numbers
};

// An array of whole numbers that name rows of an embedding: one input of the model.
struct CategoricalArray {
  std::string name;   // by which the model's layers read it
  DataFile array;     // npy: a file; npz: the name of an array
  int64_t count = 1;  // of each example
};

// Arrays of NumPy.
struct NpySpec {
  DataFile archive;                           // npz
  DataFile features;                          // npy: a file; npz: the name of an array
  DataFile labels;                            // classes
  DataFile targets;                           // floats, in place of labels
  std::vector<CategoricalArray> categorical;  // in order of name
  std::optional<FeaturesAs> features_as;      // none: float32, and bytes are asked about
  DType featuresType() const;
};

// A folder of PNG and JPEG files: a subfolder for each class. They become what the model reads.
struct ImagesSpec {
  enum class Resize : uint8_t {
    kStretch,  // each side by its own factor
    kCrop      // of the image's middle what has the model's proportions
  };
  DataFile folder;
  Resize resize = Resize::kStretch;
  std::vector<std::string> class_names;  // the subfolders from class 0 on; none: in order of name
  int64_t max_bad_records = 0;           // more end the job
  // From model.input.shape.
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 1: grey, 3: colours
  // What the job's file may say of the model's input: false: it can't be an image.
  bool setSize(const std::vector<int64_t>& input_shape);
};

// One side of a data set that `data.eval_split` divides; see data/eval_split.h.
struct EvalSplit {
  double fraction = 0;     // that is evaluated, between 0 and 1
  bool evaluates = false;  // this side
};

struct DatasetSpec {
  enum class Format : uint8_t {
    kDigits,
    kIdx,
    kCifar10,
    kSynthetic,
    kCsv,
    kNpy,
    kNpz,
    kImages
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
  ImagesSpec image_folder;
  std::optional<EvalSplit> split;  // none: all examples
  yaml::Mark mark;
  yaml::Mark images_mark;
  yaml::Mark labels_mark;
  std::vector<yaml::Mark> files_marks;  // of each of `files`

  // What the model is fed with.
  DType featuresType() const;
  DType labelsType() const;  // float32: targets; else classes
  // What is fed beside the features, in order of name; with csv.no_features the first of them as
  // those.
  std::vector<model::CategoryInput> categories() const;
  uint64_t categoryBytes() const;  // of those beside the features, of one example
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
