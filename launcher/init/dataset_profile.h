#pragma once

// The facts of a data set that `dtf-launch init` makes a job's file from.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/data/libsvm_reader.h"
#include "launcher/init/table_form.h"

namespace dtf::launcher {

// For the message about a file of another kind.
inline constexpr std::string_view kDataRead =
    "init reads tables in text (.csv, .tsv, plain or .gz), libsvm files, arrays of NumPy (.npz, "
    ".npy) and folders of images with a subfolder for each class";

// A word with the number of records that have it.
using WordCount = std::pair<std::string, int64_t>;

// A column of a table. Value type.
struct ColumnProfile {
  enum class Use : uint8_t { kNumber, kWords, kTarget, kLeftOut };
  std::string name;  // of the header; "3" without one
  std::string key;   // of the column in the job's file: its name, or its number
  Use use = Use::kLeftOut;
  std::string why = {};    // it is left out
  int64_t missing = 0;     // fields without a value, or without a number in a column of numbers
  std::string odd = {};    // the first field of a column of numbers that is another word
  int64_t odd_fields = 0;  // the number of these, which count as missing, too
  bool fills = false;      // the job fills the gaps of this column of numbers
  bool dates = false;      // the words are days
  double mean = 0;         // of the numbers
  double deviation = 0;    // the square root of their variance
  int64_t distinct = 0;    // different words
  bool many = false;       // too many to be kept: distinct is an estimate
  std::vector<WordCount> words = {};  // in their order; empty: too many, or they can't be written
  bool learns_words = false;          // they are too many to be listed, and can be learned
  // Of the column to learn, words that usually say that a value is missing ("none", "NA"): those
  // that are classes here, which are among `words`, and those that are not.
  std::vector<WordCount> doubtful_classes = {}, doubtful_gaps = {};
};
inline constexpr size_t kWordsCounted = 20'000;

// Value type.
struct TableProfile {
  std::filesystem::path file;
  TableForm form;
  int64_t rows = 0;
  std::vector<ColumnProfile> columns;
  size_t target = 0;  // of columns
  bool target_was_guessed = false;
  bool learns_classes = false;      // or a number
  int64_t rows_left_out = 0;        // they lack a field, a number or the target
  std::string first_left_out = {};  // why, with its place
};

// An array of NumPy. Value type.
struct ArrayFacts {
  std::string name;  // in the archive, or of the file
  std::string type;  // "float32", or that of elements that aren't read: "<U5"
  std::vector<int64_t> dims;
  bool is_read = true;
  std::string text() const;  // "x float32 [100, 4]"
};

// Value type.
struct ArraysProfile {
  std::filesystem::path archive;  // npz; empty: the arrays are files
  std::string features, labels;   // names in the archive, or files
  // Of an archive that has both: what to evaluate on.
  std::string eval_features = {}, eval_labels = {};
  std::vector<ArrayFacts> arrays = {};  // all of the archive
  int64_t examples = 0;
  std::vector<int64_t> shape = {};                // of one example
  bool pixels = false;                            // bytes, which the model divides by 255
  bool bytes = false;                             // that are no pixels
  std::vector<double> mean = {}, deviation = {};  // of the last dimension's places; empty: pixels
  int64_t classes = 0;                            // 0: numbers are learnt
  std::vector<int64_t> empty_classes = {};        // no example has them
  int64_t targets = 1;                            // numbers to learn of each example
  bool tags = false;                              // they are 0 or 1
  bool one_hot = false;                           // each example has one 1 among several 0
  std::string labels_type = {};                   // "float32"
  int64_t whole_values = 0;  // different values of labels that may be classes, saved as floats
  double target_mean = 0, target_deviation = 0;  // of one number
};

// Value type.
struct ImagesProfile {
  std::filesystem::path folder;
  std::filesystem::path eval_folder = {};  // empty: there is none
  std::vector<WordCount> classes = {};
  int64_t images = 0;
  int64_t looked_at = 0;  // decoded to find the following
  int64_t unread = 0;     // of these
  std::string first_unread = {};
  int64_t height = 0, width = 0;  // of the model's input
  int64_t channels = 3;
  bool one_size = true;   // all are of that size
  bool one_shape = true;  // all have its proportions, nearly
};

// Value type.
struct LibsvmProfile {
  std::filesystem::path file;
  data::LibsvmFacts facts;
  bool learns_classes = false;  // or numbers
};

using DatasetProfile = std::variant<TableProfile, ArraysProfile, ImagesProfile, LibsvmProfile>;

}  // namespace dtf::launcher
