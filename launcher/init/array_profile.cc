#include "launcher/init/array_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/data_spec.h"
#include "common/data/npy_dataset.h"
#include "common/data/npy_reader.h"
#include "common/data/zip_archive.h"
#include "common/yaml/error_at.h"
#include "launcher/init/column_facts.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;
using cluster::DatasetSpec;

constexpr int64_t kPlacesMax = 64;  // of the last dimension that have a mean each

// Usual names of the examples, and at the same place of their labels.
constexpr std::array<std::string_view, 10> kExampleNames = {
    "x",    "x_train", "features", "images",  "train_images",
    "data", "inputs",  "input",    "train_x", "examples"};
constexpr std::array<std::string_view, 10> kLabelNames = {
    "y",      "y_train", "labels",  "label",   "train_labels",
    "target", "targets", "classes", "train_y", "output"};
constexpr std::array<std::string_view, 4> kEvalNames = {"x_test", "test_images", "x_val", "x_eval"};
constexpr std::array<std::string_view, 4> kEvalLabelNames = {"y_test", "test_labels", "y_val",
                                                             "y_eval"};
// For a file beside another one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kFilePairs = {
    {{"x", "y"},
     {"X", "y"},
     {"X", "Y"},
     {"x_train", "y_train"},
     {"X_train", "y_train"},
     {"features", "labels"},
     {"images", "labels"},
     {"data", "labels"},
     {"inputs", "targets"}}};

[[noreturn]] void failArrays(const fs::path& file, ErrorCode code, const std::string& why) {
  throw yaml::ErrorAt(code, {printable(file.string()), 0, 0}, printable(why));
}

bool equalsInAnyCase(std::string_view one, std::string_view other) {
  return std::equal(
      one.begin(), one.end(), other.begin(), other.end(),
      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::string listOf(const std::vector<ArrayFacts>& arrays) {
  std::vector<std::string> texts;
  for (const ArrayFacts& array : arrays) texts.push_back(array.text());
  return join(texts, "; ");
}

std::vector<ArrayFacts> arraysOf(const fs::path& file) {
  const data::ZipArchive archive(file);
  std::vector<ArrayFacts> arrays;
  for (const std::string& name : archive.names()) {
    if (!name.ends_with(".npy")) continue;
    ArrayFacts facts{name.substr(0, name.size() - 4), "", {}};
    const data::ZipArchive::Beginning beginning =
        archive.readBeginning(name, data::kNpyHeaderBytesMax);
    facts.type = data::unreadNpyElements(beginning.bytes, &facts.dims);
    facts.is_read = facts.type.empty();
    if (facts.is_read) {
      const data::NpyHeader header =
          data::parseNpyHeader(beginning.bytes, beginning.whole_bytes, name);
      facts.type = data::npyTypeName(header.type);
      facts.dims = header.dims;
    }
    arrays.push_back(std::move(facts));
  }
  if (arrays.empty()) failArrays(file, ErrorCode::kBadData, "there is no array in the archive");
  return arrays;
}

// Those that can be read come before the others, whose reading fails with what to do.
template <size_t N>
const ArrayFacts* arrayNamed(const std::vector<ArrayFacts>& arrays,
                             const std::array<std::string_view, N>& names) {
  for (const bool is_read : {true, false})
    for (const std::string_view name : names)
      for (const ArrayFacts& array : arrays)
        if (array.is_read == is_read && !array.dims.empty() && equalsInAnyCase(array.name, name))
          return &array;
  return nullptr;
}

const ArrayFacts* askedArray(const fs::path& file, const std::vector<ArrayFacts>& arrays,
                             const char* option, const std::string& name) {
  for (const ArrayFacts& array : arrays)
    if (array.name == name) return &array;
  failArrays(
      file, ErrorCode::kUsage,
      fmt::format("{}: there is no array '{}'. The archive has: {}", option, name, listOf(arrays)));
}

// The only one that may hold the labels of `features`, or nothing.
const ArrayFacts* onlyLabels(const std::vector<ArrayFacts>& arrays, const ArrayFacts* features,
                             bool is_read = true) {
  const ArrayFacts* found = nullptr;
  for (const ArrayFacts& array : arrays) {
    if (&array == features || array.dims.size() != 1 || array.is_read != is_read) continue;
    if (features != nullptr && array.dims[0] != features->dims[0]) continue;
    if (found != nullptr) return nullptr;
    found = &array;
  }
  return found;
}

const ArrayFacts* onlyFeatures(const std::vector<ArrayFacts>& arrays, const ArrayFacts* labels) {
  const ArrayFacts* found = nullptr;
  for (const ArrayFacts& array : arrays) {
    if (&array == labels || array.dims.empty() || !array.is_read || labels == nullptr ||
        labels->dims.empty() || array.dims[0] != labels->dims[0])
      continue;
    if (found != nullptr) return nullptr;
    found = &array;
  }
  return found;
}

DatasetSpec specOf(const ArraysProfile& profile) {
  const fs::path& place = profile.archive.empty() ? fs::path(profile.features) : profile.archive;
  const yaml::Mark mark{printable(place.string()), 0, 0};
  DatasetSpec spec;
  spec.format = profile.archive.empty() ? DatasetSpec::Format::kNpy : DatasetSpec::Format::kNpz;
  spec.npy.archive = {profile.archive, mark};
  spec.npy.features = {profile.features, mark};
  spec.npy.targets = {profile.labels, mark};
  if (profile.pixels) spec.npy.features_as = cluster::FeaturesAs::kPixels;
  if (profile.bytes) spec.npy.features_as = cluster::FeaturesAs::kFloat32;
  return spec;
}

// Bytes are pixels where there are many of each example.
void judgeBytes(ArraysProfile& profile, const ArrayFacts& features) {
  constexpr int64_t kPixelsMin = 16;
  int64_t elements = 1;
  for (size_t i = 1; i < features.dims.size(); ++i) elements *= features.dims[i];
  profile.pixels = features.type == "uint8" && elements >= kPixelsMin;
  profile.bytes = features.type == "uint8" && !profile.pixels;
}

// Of each place of the last dimension, where these are few, or of all together.
void findScale(ArraysProfile& profile, std::span<const float> numbers) {
  const std::vector<int64_t>& shape = profile.shape;
  const bool is_grey = shape.size() == 2 && shape[0] == shape[1];
  const bool each = !is_grey && !shape.empty() && shape.back() <= kPlacesMax;
  if (!each && shape.size() < 2) return;  // too many to be written
  const auto places = static_cast<size_t>(each ? shape.back() : 1);
  DTF_CHECK(numbers.size() % places == 0);
  const size_t rows = numbers.size() / places;
  const auto count = static_cast<double>(rows);
  profile.mean.assign(places, 0);
  profile.deviation.assign(places, 0);
  for (size_t i = 0; i < numbers.size(); ++i) profile.mean[i % places] += numbers[i] / count;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double distance = numbers[i] - profile.mean[i % places];
    profile.deviation[i % places] += distance * distance / count;
  }
  constexpr double kLeast = 1e-6;  // beside 1: all numbers are the same
  for (double& deviation : profile.deviation)
    deviation = deviation > kLeast * kLeast ? std::sqrt(deviation) : 1;
}

// Returns how many different values there are if they may be classes that were saved as floats; 0
// otherwise.
int64_t wholeValues(const std::set<float>& values, int64_t examples) {
  constexpr size_t kClassesMax = 100;  // more are rather amounts
  const auto is_class = [](float value) { return value >= 0 && value == std::floor(value); };
  const auto distinct = static_cast<int64_t>(values.size());
  const bool may_be_classes = values.size() <= kClassesMax && distinct <= examples / 2 &&
                              std::all_of(values.begin(), values.end(), is_class);
  return may_be_classes ? distinct : 0;
}

// Returns whether each row of `width` numbers, all 0 or 1, has a single 1.
bool isOneHot(std::span<const float> numbers, int64_t width) {
  if (width < 2) return false;
  const auto row = static_cast<size_t>(width);
  for (size_t i = 0; i < numbers.size(); i += row) {
    const std::span<const float> each = numbers.subspan(i, row);
    if (std::count(each.begin(), each.end(), 1.0F) != 1) return false;
  }
  return true;
}

// Whole numbers from 0, one for each example, are classes. Numbers that are all 0 or 1 are tags.
void judgeLabels(ArraysProfile& profile, const fs::path& file, const ArrayFacts& labels,
                 std::span<const float> numbers) {
  const bool one_each = labels.dims.size() == 1 || (labels.dims.size() == 2 && labels.dims[1] == 1);
  const bool whole = !labels.type.starts_with("float");
  DTF_CHECK(!numbers.empty() && profile.examples > 0);
  // Classes are fewer; what has more values isn't kept.
  constexpr size_t kValuesMax = 10 * kListedClassesMax;
  std::set<float> values;
  for (size_t i = 0; i < numbers.size() && values.size() <= kValuesMax; ++i)
    values.insert(numbers[i]);
  const auto distinct = static_cast<int64_t>(values.size());
  if (distinct < 2)
    failArrays(file, ErrorCode::kBadData,
               fmt::format("each label of '{}' is {}, so there is nothing to tell apart",
                           labels.name, *values.begin()));
  const bool few = distinct <= std::max<int64_t>(2, profile.examples / 2) &&
                   values.size() <= kValuesMax && *values.rbegin() < static_cast<float>(kValuesMax);
  profile.targets = static_cast<int64_t>(numbers.size()) / profile.examples;
  if (whole && one_each && few && *values.begin() >= 0) {
    profile.classes = static_cast<int64_t>(*values.rbegin()) + 1;
    for (int64_t each = 0; each < profile.classes; ++each)
      if (!values.contains(static_cast<float>(each))) profile.empty_classes.push_back(each);
    return;
  }
  profile.tags = distinct == 2 && values.contains(0) && values.contains(1);
  profile.one_hot = profile.tags && isOneHot(numbers, profile.targets);
  profile.labels_type = labels.type;
  if (!whole && one_each && !profile.tags)
    profile.whole_values = wholeValues(values, profile.examples);
  double squares = 0, sum = 0;
  for (const float number : numbers) sum += number;
  profile.target_mean = sum / static_cast<double>(numbers.size());
  for (const float number : numbers)
    squares += (number - profile.target_mean) * (number - profile.target_mean);
  profile.target_deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
}

// Reads both, and fills in what they hold.
void lookInto(ArraysProfile& profile, const fs::path& file, const ArrayFacts& features,
              const ArrayFacts& labels) {
  judgeBytes(profile, features);
  const data::Dataset dataset = data::readNpyDataset(specOf(profile));
  profile.examples = dataset.size();
  profile.shape = dataset.features().spec().shape.dims();
  if (profile.shape.empty())
    failArrays(file, ErrorCode::kBadData,
               fmt::format("each example of '{}' is a single number: save the array as "
                           "a.reshape(-1, 1)",
                           features.name));
  if (!profile.pixels) findScale(profile, dataset.features().as<float>());
  judgeLabels(profile, file, labels, dataset.labels().as<float>());
}

ArrayFacts factsOf(const fs::path& file) {
  const data::NpyHeader header = data::readNpyHeader(file);
  return {file.filename().string(), std::string(data::npyTypeName(header.type)), header.dims};
}

}  // namespace

std::string ArrayFacts::text() const {
  std::string sizes;
  for (const int64_t dim : dims) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", dim);
  return fmt::format("{} {} [{}]", printable(name), printable(type), sizes);
}

ArraysProfile profileArchive(const fs::path& file, const std::optional<std::string>& target,
                             const std::optional<std::string>& features) {
  ArraysProfile profile;
  profile.archive = file;
  profile.arrays = arraysOf(file);
  const std::vector<ArrayFacts>& arrays = profile.arrays;
  const ArrayFacts* x = features ? askedArray(file, arrays, "--features", *features)
                                 : arrayNamed(arrays, kExampleNames);
  const ArrayFacts* y =
      target ? askedArray(file, arrays, "--target", *target) : arrayNamed(arrays, kLabelNames);
  if (x == nullptr) x = onlyFeatures(arrays, y != nullptr ? y : onlyLabels(arrays, nullptr));
  if (y == nullptr) y = onlyLabels(arrays, x);
  if (y == nullptr) y = onlyLabels(arrays, x, false);
  if (x == nullptr || y == nullptr || x == y)
    failArrays(file, ErrorCode::kUsage,
               fmt::format("name the array of the features and the array to learn with --features "
                           "ARRAY and --target ARRAY. The archive has: {}",
                           listOf(arrays)));
  profile.features = x->name;
  profile.labels = y->name;
  const ArrayFacts* const eval_x = arrayNamed(arrays, kEvalNames);
  const ArrayFacts* const eval_y = arrayNamed(arrays, kEvalLabelNames);
  // Arrays that were chosen by name have no pair that is known to belong to them.
  const bool is_usual = !target && !features;
  if (is_usual && eval_x != nullptr && eval_y != nullptr && eval_x != x && eval_y != y) {
    profile.eval_features = eval_x->name;
    profile.eval_labels = eval_y->name;
  }
  lookInto(profile, file, *x, *y);
  return profile;
}

ArraysProfile profileArray(const fs::path& file, const std::optional<std::string>& target) {
  ArraysProfile profile;
  profile.features = file.string();
  if (target) profile.labels = *target;
  for (const auto& [name, of_labels] : kFilePairs) {
    const fs::path beside = file.parent_path() / (std::string(of_labels) + ".npy");
    std::error_code ignored;
    if (profile.labels.empty() && file.stem() == name && fs::exists(beside, ignored))
      profile.labels = beside.string();
  }
  const ArrayFacts features = factsOf(file);
  if (profile.labels.empty())
    failArrays(file, ErrorCode::kUsage,
               fmt::format("{} are the examples: name the array of their labels with --target "
                           "FILE.npy",
                           features.text()));
  const ArrayFacts labels = factsOf(profile.labels);
  profile.arrays = {features, labels};
  lookInto(profile, file, features, labels);
  return profile;
}

}  // namespace dtf::launcher
