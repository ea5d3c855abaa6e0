#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cluster/file_pattern.h"
#include "common/cluster/read_table.h"
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
    {"files", formatBits(Format::kCifar10, Format::kCifar100, Format::kCsv, Format::kLibsvm),
     formatBits(Format::kCifar10, Format::kCifar100, Format::kCsv, Format::kLibsvm),
     "a list of files"},
    {"zero_based", formatBits(Format::kLibsvm), 0, ""},
    {"labels_as", formatBits(Format::kLibsvm), 0, ""},
    {"label_mode", formatBits(Format::kCifar100), 0, ""},
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
    {"numeric_columns", formatBits(Format::kCsv), 0, ""},
    {"decimal", formatBits(Format::kCsv), 0, ""},
    {"comment", formatBits(Format::kCsv), 0, ""},
    {"skip_lines", formatBits(Format::kCsv), 0, ""},
    {"categorical_arrays", formatBits(Format::kNpy, Format::kNpz), 0, ""},
    {"class_names", formatBits(Format::kCsv, Format::kImages, Format::kLibsvm), 0, ""},
    {"max_bad_records", formatBits(Format::kCsv, Format::kImages, Format::kLibsvm), 0, ""},
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

// Adds the files that `path` stands for. One that another line names as well would count twice.
void readFilesOf(const YamlNode& node, const std::filesystem::path& path, DatasetSpec& dataset,
                 Report& report) {
  std::string wrong;
  for (std::filesystem::path& file : filesOf(path, wrong)) {
    if (file != path && std::ranges::find(dataset.files, file) != dataset.files.end())
      return report.error(node.where(), inQuotes(file.string()) +
                                            " is in the list before: its examples would count "
                                            "twice");
    dataset.files_marks.push_back(report.markOf(node.place));
    dataset.files.push_back(std::move(file));
  }
  if (!wrong.empty()) report.error(node.where(), wrong);
}

void readFiles(const MapReader& reader, DatasetSpec& dataset, Report& report) {
  for (const YamlNode& node : reader.list("files")) {
    std::optional<std::string> path = yaml::readText(node, "files", report);
    if (!path) continue;
    if (const std::string wrong = yaml::expandPath(*path); !wrong.empty())
      report.error(node.where(), wrong);
    readFilesOf(node, resolve(node, *path, report), dataset, report);
  }
  const YamlNode* list = reader.find("files");
  if (list != nullptr && list->isSequence() && list->children.empty())
    report.error(list->where(), "'files' is empty: name at least one file");
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
  ClassNames classes = readClassNames(reader, report);
  if (classes.are_learned)
    report.error(
        reader.find("class_names")->key_place,
        "the classes of format images are its subfolders: leave 'class_names' out, or list "
        "the subfolders in the order of the classes");
  images.class_names = std::move(classes.names);
  reader.whole("max_bad_records", images.max_bad_records);
}

void readLibsvm(const MapReader& reader, DatasetSpec& dataset, Report& report) {
  enum class LabelsAs : uint8_t { kClasses, kTargets } as = LabelsAs::kClasses;
  reader.boolean("zero_based", dataset.libsvm.zero_based);
  reader.choice("labels_as", as);
  dataset.libsvm.are_targets = as == LabelsAs::kTargets;
  ClassNames classes = readClassNames(reader, report);
  const YamlNode* const names = reader.find("class_names");
  if (classes.are_learned)
    report.error(names->key_place,
                 "format libsvm doesn't learn its classes: leave 'class_names' out for labels of "
                 "-1 and 1 or from 0 on, or list the labels");
  if (names != nullptr && dataset.libsvm.are_targets)
    report.error(names->key_place, "'labels_as: targets' are numbers, which have no 'class_names'");
  dataset.csv.class_names = std::move(classes.names);
  reader.whole("max_bad_records", dataset.csv.max_bad_records);
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
  const bool names_classes =
      data.train.format == Format::kCsv || data.train.format == Format::kLibsvm;
  if (names_classes && data.train.format == data.eval->format &&
      data.train.csv.class_names != data.eval->csv.class_names)
    report.error(eval.key_place, "data.train and data.eval have different class_names");
  if (data.train.format == Format::kCifar100 && data.eval->format == Format::kCifar100 &&
      data.train.label_mode != data.eval->label_mode)
    report.error(eval.key_place, "data.train and data.eval have a different label_mode");
}

// Refuses a preparation that the model doesn't have.
void refusePreparation(const DataSpec& data, const YamlNode& eval, Report& report) {
  const CsvSpec& csv = data.eval->csv;
  if (!csv.numeric.empty())
    report.error(eval.find("numeric_columns")->key_place,
                 "data.train is no table, so the model prepares no columns: leave "
                 "'numeric_columns' out here, and give numbers as they are in data.train");
  if (csv.learns_classes)
    report.error(eval.find("class_names")->key_place,
                 "the classes are data.train's, which is no table, and learns none: leave "
                 "'class_names' out here, or list the words from class 0 on");
}

// Prepares the evaluation's table as the training table, which alone declares it.
void prepareAlike(DataSpec& data, const YamlNode& eval, Report& report) {
  if (data.eval->format != Format::kCsv) return;
  if (data.train.format != Format::kCsv) return refusePreparation(data, eval, report);
  if (const YamlNode* const numeric = eval.find("numeric_columns"))
    report.error(numeric->key_place,
                 "the evaluation's numbers are prepared as data.train's: leave "
                 "'numeric_columns' out here");
  const YamlNode* const classes = eval.find("class_names");
  if (classes != nullptr && (data.eval->csv.learns_classes || data.train.csv.learns_classes))
    report.error(classes->key_place, "the classes are data.train's: leave 'class_names' out here");
  data.eval->csv.numeric = data.train.csv.numeric;
  data.eval->csv.learns_classes = data.train.csv.learns_classes;
}

// Reads `eval_split` as a map. Returns whether it gave `fraction`.
bool readSplitKeys(const YamlNode& node, DataSpec& data, double& fraction, Report& report) {
  const MapReader reader(node, schema::kEvalSplit, "eval_split", report);
  CsvSpec& csv = data.train.csv;
  const bool is_read = reader.number("fraction", fraction);
  reader.choice("by", csv.split_by);
  if (reader.text("column", csv.split_column))
    csv.column_marks.emplace(csv.split_column, report.markOf(reader.find("column")->place));
  const bool by_column = csv.split_by != SplitBy::kHash;
  if (by_column && csv.split_column.empty())
    report.error(reader.find("by")->key_place,
                 "a split by time or group needs a 'column' of the table");
  if (!by_column && !csv.split_column.empty())
    report.error(reader.find("column")->key_place,
                 "'column' is for a split by time or by group: set 'by'");
  if (by_column && data.train.format != Format::kCsv)
    report.error(reader.find("by")->key_place,
                 "only tables (format csv) are split by time or by group");
  return is_read;
}

// Reads `eval_split`: `train` and `eval` become two sides of one data set.
void readSplit(const MapReader& reader, DataSpec& data, Report& report) {
  double fraction = 0;
  const YamlNode* const node = reader.find("eval_split");
  const bool is_map = node != nullptr && node->isMap();
  if (is_map ? !readSplitKeys(*node, data, fraction, report)
             : !reader.number("eval_split", fraction))
    return;
  const yaml::Place& place = reader.find("eval_split")->key_place;
  const Format format = data.train.format;
  if (reader.find("eval") != nullptr) {
    report.error(place, "'eval' and 'eval_split' exclude each other");
  } else if (format == Format::kDigits || format == Format::kSynthetic) {
    report.error(place,
                 "'eval_split' is for data in files: give 'eval' the format of 'train' instead, "
                 "and dtf draws other examples for it");
  } else {
    data.train.split = EvalSplit{fraction, false, data.train.csv.split_by};
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
    case Format::kCifar100:
      readFiles(reader, dataset, report);
      reader.choice("label_mode", dataset.label_mode);
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
    case Format::kLibsvm:
      readFiles(reader, dataset, report);
      readLibsvm(reader, dataset, report);
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
  if (train != nullptr && eval != nullptr) prepareAlike(data, *eval, report);
  const YamlNode* const eval_format = eval != nullptr ? eval->find("format") : nullptr;
  const bool prepares = !data.train.csv.numeric.empty();
  if (eval_format != nullptr && data.eval->format != Format::kCsv &&
      (prepares || data.train.csv.learns_classes))
    report.error(
        eval_format->place,
        std::string(prepares ? "data.train prepares its columns by name ('numeric_columns')"
                             : "data.train learns its classes ('class_names: {from: data}')") +
            ", which needs a table here, too: set 'format: csv' and give files with the same "
            "columns");
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
