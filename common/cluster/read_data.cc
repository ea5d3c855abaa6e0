#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/yaml/expand_path.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Mark;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr int64_t kDigitsToTrain = 10000;
constexpr int64_t kDigitsToEvaluate = 2000;

// Resolves a path relative to the file that names it.
std::filesystem::path resolve(const YamlNode& node, const std::string& path, const Report& report) {
  return (report.folderOf(node.place) / path).lexically_normal();
}

void readPath(const MapReader& reader, const YamlNode& dataset, std::string_view key,
              std::filesystem::path& path, Mark& mark, Report& report) {
  std::string text;
  if (!reader.path(key, text)) return;
  const YamlNode& node = *dataset.find(key);
  path = resolve(node, text, report);
  mark = report.markOf(node.place);
}

using Format = DatasetSpec::Format;

constexpr unsigned formatBits(Format format) {
  return 1U << static_cast<unsigned>(format);
}
template <class... More>
constexpr unsigned formatBits(Format format, More... more) {
  return formatBits(format) | formatBits(more...);
}

// A key of some formats.
struct FormatKey {
  std::string_view key;
  unsigned formats;        // bits of the formats that allow it
  unsigned needed_by;      // bits of the formats that require it
  std::string_view value;  // of a required key: "a file"
};
constexpr FormatKey kFormatKeys[] = {
    {"images", formatBits(Format::kIdx), formatBits(Format::kIdx), "a file"},
    {"labels", formatBits(Format::kIdx, Format::kNpy, Format::kNpz), formatBits(Format::kIdx),
     "a file"},
    {"files", formatBits(Format::kCifar10, Format::kCsv),
     formatBits(Format::kCifar10, Format::kCsv), "a list of files"},
    {"count", formatBits(Format::kDigits, Format::kSynthetic), 0, ""},
    {"problem", formatBits(Format::kSynthetic), formatBits(Format::kSynthetic),
     "the problem to learn"},
    {"classes", formatBits(Format::kSynthetic), 0, ""},
    {"header", formatBits(Format::kCsv), 0, ""},
    {"delimiter", formatBits(Format::kCsv), 0, ""},
    {"label_column", formatBits(Format::kCsv), 0, ""},
    {"target_columns", formatBits(Format::kCsv), 0, ""},
    {"feature_columns", formatBits(Format::kCsv), 0, ""},
    {"categorical_columns", formatBits(Format::kCsv), 0, ""},
    {"categorical_arrays", formatBits(Format::kNpy, Format::kNpz), 0, ""},
    {"class_names", formatBits(Format::kCsv, Format::kImages), 0, ""},
    {"max_bad_records", formatBits(Format::kCsv, Format::kImages), 0, ""},
    {"archive", formatBits(Format::kNpz), formatBits(Format::kNpz), "a file"},
    {"features", formatBits(Format::kNpy, Format::kNpz), formatBits(Format::kNpy, Format::kNpz),
     "an array"},
    {"targets", formatBits(Format::kNpy, Format::kNpz), 0, ""},
    {"features_as", formatBits(Format::kNpy, Format::kNpz), 0, ""},
    {"folder", formatBits(Format::kImages), formatBits(Format::kImages), "with images"},
    {"resize", formatBits(Format::kImages), 0, ""},
};

// Checks for keys of other formats, which would be ignored, and for missing ones.
void checkFormatKeys(const YamlNode& node, Format format, Report& report) {
  const std::string name = node.find("format")->text;
  for (const FormatKey& entry : kFormatKeys) {
    const YamlNode* given = node.find(entry.key);
    if ((entry.needed_by & formatBits(format)) != 0 && given == nullptr)
      report.error(node.key_place, "format " + name + " needs " + inQuotes(entry.key) + ", " +
                                       std::string(entry.value));
    if ((entry.formats & formatBits(format)) == 0 && given != nullptr)
      report.error(given->key_place, inQuotes(entry.key) + " has no meaning for format " + name);
  }
}

// Checks that exactly one of two keys is given.
void checkEither(const YamlNode& node, std::string_view one, std::string_view other,
                 Report& report) {
  const YamlNode* second = node.find(other);
  if (node.find(one) == nullptr && second == nullptr)
    report.error(node.key_place, "format " + node.find("format")->text + " needs " + inQuotes(one) +
                                     " for classes or " + inQuotes(other) + " for numbers");
  if (node.find(one) != nullptr && second != nullptr)
    report.error(second->key_place,
                 inQuotes(one) + " and " + inQuotes(other) + " exclude each other");
}

void readFiles(const MapReader& reader, DatasetSpec& dataset, Report& report) {
  for (const YamlNode& node : reader.list("files")) {
    std::optional<std::string> path = yaml::readText(node, "files", report);
    if (!path) continue;
    if (const std::string wrong = yaml::expandPath(*path); !wrong.empty())
      report.error(node.where(), wrong);
    dataset.files_marks.push_back(report.markOf(node.place));
    dataset.files.push_back(resolve(node, *path, report));
  }
  const YamlNode* list = reader.find("files");
  if (list != nullptr && list->isSequence() && list->children.empty())
    report.error(list->where(), "'files' is empty: name at least one file");
}

using Marks = std::map<std::string, Mark>;

// `marks`: gets the place of each word.
std::vector<std::string> readWords(const MapReader& reader, std::string_view key, Report& report,
                                   std::string_view instead = "leave it out, or ",
                                   Marks* marks = nullptr) {
  std::vector<std::string> words;
  for (const YamlNode& node : reader.list(key)) {
    std::optional<std::string> word = yaml::readText(node, key, report);
    if (!word) continue;
    if (marks != nullptr) marks->emplace(*word, report.markOf(node.place));
    words.push_back(std::move(*word));
  }
  const YamlNode* list = reader.find(key);
  if (list != nullptr && list->isSequence() && list->children.empty())
    report.error(list->where(),
                 inQuotes(key) + " is empty: " + std::string(instead) + "name at least one");
  return words;
}

constexpr size_t kCategoricalMax = 256;  // inputs of a model

// Categories name placeholders of the model's graph.
bool isInputName(std::string_view name) {
  constexpr size_t kNameBytesMax = 128;
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

void checkInputName(const YamlNode& node, Report& report) {
  if (node.key == "features" || node.key == "labels")
    report.error(node.key_place, "the model has an input " + inQuotes(node.key) +
                                     " already: give the categories another name");
  if (!isInputName(node.key))
    report.error(node.key_place,
                 "the name of categories has letters, digits, '_' and '-', and at most 128 "
                 "characters, got " +
                     inQuotes(node.key));
}

CategoricalColumns readCategory(const YamlNode& node, Marks& column_marks, Report& report) {
  const MapReader reader(node, schema::kCategorical, node.key, report);
  CategoricalColumns read;
  read.name = node.key;
  read.mark = report.markOf(node.key_place);
  checkInputName(node, report);
  read.columns = readWords(reader, "columns", report, "", &column_marks);
  reader.whole("hash_bucket_size", read.hash_bucket_size);
  read.vocabulary_list = readWords(reader, "vocabulary_list", report);
  reader.whole("num_oov_buckets", read.num_oov_buckets);
  const YamlNode* const words = reader.find("vocabulary_list");
  std::set<std::string_view> known;
  for (const std::string& word : read.vocabulary_list)
    if (!known.insert(word).second) {
      report.error(words->where(), "the word " + inQuotes(word) + " is listed twice");
      break;
    }
  if (words != nullptr && read.hash_bucket_size > 0)
    report.error(words->key_place, "'hash_bucket_size' and 'vocabulary_list' exclude each other");
  if (words == nullptr && read.num_oov_buckets > 0)
    report.error(reader.find("num_oov_buckets")->key_place,
                 "'num_oov_buckets' needs a 'vocabulary_list': it is for words not in that list");
  return read;
}

// Returns `read` of each entry of the map `key`, in order of name.
template <class Read>
auto readCategories(const MapReader& reader, std::string_view key, Report& report,
                    const Read& read) {
  std::vector<decltype(read(YamlNode()))> all;
  const YamlNode* const map = reader.find(key);
  if (map == nullptr || !map->isMap()) return all;
  for (const YamlNode& node : map->children) all.push_back(read(node));
  if (all.empty() || all.size() > kCategoricalMax)
    report.error(map->key_place, inQuotes(key) + " has from 1 to " +
                                     std::to_string(kCategoricalMax) + " names, got " +
                                     std::to_string(all.size()));
  std::ranges::sort(all, {}, [](const auto& each) { return each.name; });
  return all;
}

std::vector<std::string> readClassNames(const MapReader& reader, Report& report) {
  std::vector<std::string> names = readWords(reader, "class_names", report);
  for (const std::string& name : names)
    if (std::count(names.begin(), names.end(), name) > 1) {
      report.error(reader.find("class_names")->where(), "two classes are named " + inQuotes(name));
      break;
    }
  return names;
}

void readCsv(const MapReader& reader, CsvSpec& csv, Report& report) {
  csv.header_is_said = reader.boolean("header", csv.header);
  std::string delimiter(1, csv.delimiter);
  if (reader.text("delimiter", delimiter)) {
    if (delimiter == "\\t" || delimiter == "tab") delimiter = "\t";
    if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == ".")
      report.error(reader.find("delimiter")->where(),
                   "'delimiter' is one character such as ',' or ';', or tab");
    else
      csv.delimiter = delimiter[0];
  }
  if (reader.text("label_column", csv.label))
    csv.column_marks.emplace(csv.label, report.markOf(reader.find("label_column")->place));
  const auto columns = [&](std::string_view key) {
    return readWords(reader, key, report, "leave it out, or ", &csv.column_marks);
  };
  csv.targets = columns("target_columns");
  csv.categorical = readCategories(
      reader, "categorical_columns", report,
      [&](const YamlNode& each) { return readCategory(each, csv.column_marks, report); });
  const YamlNode* const features = reader.find("feature_columns");
  csv.no_features = features != nullptr && features->isSequence() && features->children.empty() &&
                    !csv.categorical.empty();
  if (!csv.no_features) csv.features = columns("feature_columns");
  csv.class_names = readClassNames(reader, report);
  reader.whole("max_bad_records", csv.max_bad_records);
}

// Reads the name of an array, or a path.
void readArray(const MapReader& reader, const YamlNode& dataset, std::string_view key, bool is_path,
               DataFile& file, Report& report) {
  if (is_path) return readPath(reader, dataset, key, file.path, file.mark, report);
  std::string name;
  if (!reader.text(key, name)) return;
  file = {name, report.markOf(dataset.find(key)->place)};
}

void readNpy(const MapReader& reader, const YamlNode& node, bool npz, NpySpec& npy,
             Report& report) {
  if (npz) readPath(reader, node, "archive", npy.archive.path, npy.archive.mark, report);
  readArray(reader, node, "features", !npz, npy.features, report);
  readArray(reader, node, "labels", !npz, npy.labels, report);
  readArray(reader, node, "targets", !npz, npy.targets, report);
  npy.categorical = readCategories(reader, "categorical_arrays", report, [&](const YamlNode& each) {
    const MapReader settings(each, schema::kCategoricalArray, each.key, report);
    CategoricalArray array{each.key, {}, 1};
    checkInputName(each, report);
    readArray(settings, each, "array", !npz, array.array, report);
    settings.whole("count", array.count);
    return array;
  });
  FeaturesAs as = FeaturesAs::kFloat32;
  if (reader.choice("features_as", as, 1)) npy.features_as = as;
}

void readImages(const MapReader& reader, const YamlNode& node, ImagesSpec& images, Report& report) {
  readPath(reader, node, "folder", images.folder.path, images.folder.mark, report);
  reader.choice("resize", images.resize);
  images.class_names = readClassNames(reader, report);
  reader.whole("max_bad_records", images.max_bad_records);
}

// Returns the first difference between the categorical inputs, or an empty string. The columns may
// differ: they depend on the files.
std::string categoriesDifference(const DatasetSpec& train, const DatasetSpec& eval) {
  if (train.csv.no_features != eval.csv.no_features)
    return "data.train and data.eval must both have features, or both 'feature_columns: []'";
  const std::vector<model::CategoryInput> ours = train.categories(), theirs = eval.categories();
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i >= theirs.size() || (i < ours.size() && ours[i].name < theirs[i].name))
      return "data.train has the categories " + inQuotes(ours[i].name) + ", which data.eval lacks";
    if (i >= ours.size() || theirs[i].name < ours[i].name)
      return "data.eval has the categories " + inQuotes(theirs[i].name) +
             ", which data.train lacks";
    if (!(ours[i] == theirs[i]))
      return "the categories " + inQuotes(ours[i].name) +
             " of data.train and data.eval differ: their number, hash_bucket_size and "
             "vocabulary_list must be equal";
  }
  return {};
}

// Checks that one model can read both datasets.
void checkAlike(const DataSpec& data, const YamlNode& eval, Report& report) {
  const auto check = [&](DType train_type, DType eval_type, const char* what) {
    if (train_type != eval_type)
      report.error(eval.key_place, "data.train has " + std::string(dtypeName(train_type)) + " " +
                                       what + ", but data.eval has " +
                                       std::string(dtypeName(eval_type)));
  };
  check(data.train.featuresType(), data.eval->featuresType(), "features");
  // Classes may differ in type: only targets must not meet classes.
  const bool targets = data.train.labelsType() == DType::kFloat32;
  if (targets != (data.eval->labelsType() == DType::kFloat32))
    check(data.train.labelsType(), data.eval->labelsType(), "labels");
  if (const std::string difference = categoriesDifference(data.train, *data.eval);
      !difference.empty())
    report.error(eval.key_place, difference);
  if (data.train.format == Format::kCsv && data.eval->format == Format::kCsv &&
      data.train.csv.class_names != data.eval->csv.class_names)
    report.error(eval.key_place, "data.train and data.eval have different class_names");
}

// Reads `eval_split`: `train` and `eval` become two sides of one data set.
void readSplit(const MapReader& reader, DataSpec& data, Report& report) {
  double fraction = 0;
  if (!reader.number("eval_split", fraction)) return;
  const yaml::Place& place = reader.find("eval_split")->key_place;
  const Format format = data.train.format;
  if (reader.find("eval") != nullptr) {
    report.error(place, "'eval' and 'eval_split' exclude each other");
  } else if (format == Format::kDigits || format == Format::kSynthetic) {
    report.error(place,
                 "'eval_split' is for data in files: give 'eval' the format of 'train' instead, "
                 "and dtf draws other examples for it");
  } else {
    data.train.split = EvalSplit{fraction, false};
    data.eval = data.train;
    data.eval->split->evaluates = true;
  }
}

}  // namespace

DatasetSpec readDataset(const YamlNode& node, int64_t default_count, Report& report) {
  const MapReader reader(node, schema::kDataset, node.key, report);
  DatasetSpec dataset;
  dataset.mark = report.markOf(node.key_place);
  dataset.count = default_count;
  if (!reader.choice("format", dataset.format)) return dataset;
  checkFormatKeys(node, dataset.format, report);
  switch (dataset.format) {
    case Format::kDigits:
      break;
    case Format::kIdx:
      readPath(reader, node, "images", dataset.images, dataset.images_mark, report);
      readPath(reader, node, "labels", dataset.labels, dataset.labels_mark, report);
      break;
    case Format::kCifar10:
      readFiles(reader, dataset, report);
      break;
    case Format::kSynthetic:
      reader.choice("problem", dataset.problem);
      if (reader.whole("classes", dataset.classes) && dataset.problem != Problem::kCentres)
        report.error(node.find("classes")->key_place, "'classes' belongs to problem centres");
      break;
    case Format::kCsv:
      readFiles(reader, dataset, report);
      readCsv(reader, dataset.csv, report);
      checkEither(node, "label_column", "target_columns", report);
      break;
    case Format::kNpy:
    case Format::kNpz:
      readNpy(reader, node, dataset.format == Format::kNpz, dataset.npy, report);
      checkEither(node, "labels", "targets", report);
      break;
    case Format::kImages:
      readImages(reader, node, dataset.image_folder, report);
      break;
  }
  reader.whole("count", dataset.count);
  return dataset;
}

DataSpec readData(const YamlNode* node, Report& report) {
  DataSpec data;
  data.train.count = kDigitsToTrain;
  DatasetSpec digits;
  digits.count = kDigitsToEvaluate;
  if (node == nullptr) {
    data.eval = digits;
    return data;
  }
  const MapReader reader(*node, schema::kData, node->key, report);
  const YamlNode* train = reader.find("train");
  const YamlNode* eval = reader.find("eval");
  const size_t mistakes_before = report.mistakes();
  if (train != nullptr) data.train = readDataset(*train, kDigitsToTrain, report);
  if (eval != nullptr) data.eval = readDataset(*eval, kDigitsToEvaluate, report);
  // A mistake in one of them must not be reported as a difference, too.
  if (eval != nullptr && report.mistakes() == mistakes_before) checkAlike(data, *eval, report);
  if (train == nullptr && eval == nullptr) data.eval = digits;
  readSplit(reader, data, report);
  if (const YamlNode* augment = reader.find("augment")) {
    const MapReader settings(*augment, schema::kAugment, "augment", report);
    settings.boolean("flip_horizontal", data.augment.flip_horizontal);
    settings.whole("crop_padding", data.augment.crop_padding);
  }
  if (reader.whole("batch_size", data.batch_size))
    data.batch_size_mark = report.markOf(node->find("batch_size")->place);
  reader.whole("seed", data.seed);
  return data;
}

}  // namespace dtf::cluster
