#pragma once

// The `data` part of a TRAIN.yaml as value types, which hold validated values only. Defaults here
// are the documented defaults.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/dtype.h"
#include "common/yaml/mark.h"

namespace dtf::cluster {

// A file named in the job's file. A relative path is already resolved.
struct DataFile {
  std::filesystem::path path;
  yaml::Mark mark;
};

// A problem of format `synthetic`; see data/synthetic.h.
enum class Problem : uint8_t { kFriedman, kLinear, kTags, kCentres, kClicks };
inline constexpr int64_t kClickUsers = 1000;  // kClicks
inline constexpr int64_t kClickItems = 500;

// Categorical columns of a table: each field becomes a whole number, the row of an embedding. They
// are one input of the model.
struct CategoricalColumns {
  std::string name;                          // of the model's input
  std::vector<std::string> columns;          // by name, or by number from 1
  int64_t hash_bucket_size = 0;              // fields are hashed to [0, this); 0: not hashed
  std::vector<std::string> vocabulary_list;  // words, from number 0 on; empty: fields are numbers
  int64_t num_oov_buckets = 0;  // numbers after the list's, to which other words are hashed
  yaml::Mark mark;
  // The words are learned from the training data: at most so many, each in at least `min_count`
  // records. 0: they are not learned.
  int64_t learned_max_size = 0;
  int64_t learned_min_count = 1;
  // Fields are numbers: the row is the number of these, ascending, that are not above it.
  std::vector<double> buckets = {};
  // Divides each field into words, at most `max_words` of each; 0: a field is one word. Number 0
  // stands behind the last word, and the words have the numbers from 1 on.
  char split = 0;
  int64_t max_words = 16;
  // The number of the first word.
  int32_t firstNumber() const { return split == 0 ? 0 : 1; }
  // The numbers of each example.
  int64_t count() const {
    return static_cast<int64_t>(columns.size()) * (split == 0 ? 1 : max_words);
  }
  model::CategoryInput input() const;
};

// The preparation of a column of numbers, in the order of the members. Value type.
struct NumericColumn {
  enum class Fill : uint8_t { kNone, kMean, kMedian, kValue };
  std::string column;       // its name, or its number from 1; "*": every other feature column
  Fill fill = Fill::kNone;  // of a missing value; none: the record can't be read
  double fill_value = 0;    // kValue
  bool missing_indicator = false;  // a further feature: 1 if the value was missing, else 0
  bool log1p = false;              // log(1 + x)
  bool standardize = false;        // (x - mean) / standard deviation, of the training data
  yaml::Mark mark = {};
  bool learns() const { return standardize || fill == Fill::kMean || fill == Fill::kMedian; }
};

// A feature column of a model: its settings, with the numbers learned from the training data.
// Value type.
struct PreparedColumn {
  NumericColumn settings;
  // Values of float32, as the model computes.
  double fill = 0;
  double mean = 0;
  double stddev = 1;
};

// The numbers and words that a table's preparation takes from the training data. Value type.
struct LearnedTable {
  std::vector<PreparedColumn> features;         // all of them, in order
  std::vector<std::vector<std::string>> words;  // of each of CsvSpec::categorical
  std::vector<std::string> class_names;         // with CsvSpec::learns_classes
};

// The way in which `data.eval_split` chooses the side of an example.
enum class SplitBy : uint8_t {
  kHash,   // a checksum of the example
  kTime,   // the last ones are evaluated
  kGroup,  // a checksum of one column: equal fields are on one side
};

// Columns of a table in text.
struct CsvSpec {
  bool header = true;           // the first line names the columns
  bool header_is_said = false;  // `header` is in the job's file, so names may look like a record
  char delimiter = ',';         // or a tab
  char decimal = '.';           // or a comma
  // Columns by name, or by number from 1. One label or some targets; no features: all others.
  std::string label;
  std::vector<std::string> targets;
  std::vector<std::string> features;
  bool no_features = false;                     // none: the model reads categories alone
  bool whole_features = false;                  // rows of an embedding: whole numbers from 0
  std::vector<CategoricalColumns> categorical;  // in order of name
  std::vector<std::string> class_names;  // the words of the label, from class 0; none: numbers
  int64_t max_bad_records = 0;           // more end the job
  std::map<std::string, yaml::Mark> column_marks;  // where the job's file names each column
  std::vector<NumericColumn> numeric = {};         // in order of name
  char comment = 0;                                // begins lines to skip; 0: none are
  int64_t skip_lines = 0;                          // at the start of each file
  SplitBy split_by = SplitBy::kHash;               // as in DatasetSpec::split
  std::string split_column = {};                   // kTime, kGroup: no feature by default
  bool learns_classes = false;                     // class_names are the words of the training data
  // none: nothing is learned, or not yet; see data/learn_table.h.
  std::optional<LearnedTable> learned = std::nullopt;

  // Whether the training data must be read to know the meaning of its numbers.
  bool learns() const;
  // The words of the classes, learned or not.
  const std::vector<std::string>& classNames() const;
};

// How the numbers of an array become features.
enum class FeaturesAs : uint8_t {
  kFloat32 = 1,
  kPixels,  // bytes, which the model divides by 255
  kIndices  // whole numbers
};

// An array of whole numbers, the rows of an embedding. It is one input of the model.
struct CategoricalArray {
  std::string name;   // of the model's input
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
  std::optional<FeaturesAs> features_as;      // none: float32, and bytes are a mistake
  DType featuresType() const;
};

// Files of libsvm. The classes' words and max_bad_records are members of CsvSpec.
struct LibsvmSpec {
  bool zero_based = false;          // the indices begin at 0
  bool are_targets = false;         // labels are numbers to learn
  std::vector<int64_t> shape = {};  // of the features of an example: model.input.shape
};

// A folder of PNG, JPEG, WebP and BMP files with a subfolder for each class. Images are resized to
// the model's input.
struct ImagesSpec {
  enum class Resize : uint8_t {
    kStretch,  // each side by its own factor
    kCrop      // the largest centred part with the model's proportions
  };
  DataFile folder;
  Resize resize = Resize::kStretch;
  std::vector<std::string> class_names;  // the subfolders from class 0 on; none: in order of name
  int64_t max_bad_records = 0;           // one more ends the job
  // From model.input.shape.
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 1: grey, 3: colours
  // Sets these three. Returns false for a shape that no image has.
  bool setSize(const std::vector<int64_t>& input_shape);
};

// One side of a data set that `data.eval_split` divides; see data/eval_split.h.
struct EvalSplit {
  double fraction = 0;     // share of the examples for evaluation, between 0 and 1
  bool evaluates = false;  // this side is for evaluation
  SplitBy by = SplitBy::kHash;
};

// Which label of CIFAR-100 is learned, with Keras's names: one of 100 classes, or of 20.
enum class LabelMode : uint8_t { kFine, kCoarse };

struct DatasetSpec {
  enum class Format : uint8_t {
    kDigits,
    kIdx,
    kCifar10,
    kCifar100,
    kSynthetic,
    kCsv,
    kNpy,
    kNpz,
    kImages,
    kLibsvm
  } format = Format::kDigits;
  std::filesystem::path images;              // kIdx; already resolved, as the next two
  std::filesystem::path labels;              // kIdx
  std::vector<std::filesystem::path> files;  // kCifar10, kCifar100, kCsv, kLibsvm: in order
  LabelMode label_mode = LabelMode::kFine;   // kCifar100
  int64_t count = 10000;                     // kDigits, kSynthetic: number of examples
  Problem problem = Problem::kFriedman;      // kSynthetic
  int64_t classes = 10;                      // kSynthetic: kCentres
  CsvSpec csv;
  NpySpec npy;
  LibsvmSpec libsvm;
  ImagesSpec image_folder;
  std::optional<EvalSplit> split;  // none: all examples
  yaml::Mark mark;
  yaml::Mark images_mark;
  yaml::Mark labels_mark;
  std::vector<yaml::Mark> files_marks;  // of each of `files`

  // Types of the tensors that the model is fed with.
  DType featuresType() const;
  DType labelsType() const;  // float32: targets; else classes
  // Categorical inputs, in order of name. With csv.no_features the first replaces the features.
  std::vector<model::CategoryInput> categories() const;
  // Bytes of these inputs for one example, without one that replaces the features.
  uint64_t categoryBytes() const;
};

// Random changes of the images of a training batch; see data/augment.h.
struct AugmentSpec {
  bool flip_horizontal = false;
  int64_t crop_padding = 0;  // pixels
  bool any() const { return flip_horizontal || crop_padding > 0; }
  std::string text() const;  // "flip_horizontal=true crop_padding=4"; empty: nothing
};

struct DataSpec {
  DatasetSpec train;
  AugmentSpec augment;  // `train` alone
  std::optional<DatasetSpec> eval;
  int64_t batch_size = 100;    // per replica
  yaml::Mark batch_size_mark;  // empty: the default
  // For the batch order, initial values, dropout masks and drawn examples.
  uint64_t seed = 1;
};

}  // namespace dtf::cluster
