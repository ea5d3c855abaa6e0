#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/yaml/home_path.h"
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

// A path as written, made relative to the working directory instead of the file that names it.
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

// Which format a key belongs to; it needs all of those but `count`.
struct FormatKey {
  std::string_view key;
  DatasetSpec::Format format;
  std::string_view value;  // "a file"
};
constexpr FormatKey kFormatKeys[] = {
    {"images", DatasetSpec::Format::kIdx, "a file"},
    {"labels", DatasetSpec::Format::kIdx, "a file"},
    {"files", DatasetSpec::Format::kCifar10, "a list of files"},
    {"count", DatasetSpec::Format::kDigits, ""},
};

// A key of another format would be ignored, so it is a mistake.
void checkFormatKeys(const YamlNode& node, DatasetSpec::Format format, Report& report) {
  const std::string name = node.find("format")->text;
  for (const FormatKey& entry : kFormatKeys) {
    const YamlNode* given = node.find(entry.key);
    if (entry.format == format && given == nullptr && !entry.value.empty())
      report.error(node.key_place, "format " + name + " needs " + inQuotes(entry.key) + ", " +
                                       std::string(entry.value));
    if (entry.format != format && given != nullptr)
      report.error(given->key_place, inQuotes(entry.key) + " has no meaning for format " + name);
  }
}

void readFiles(const MapReader& reader, DatasetSpec& dataset, Report& report) {
  for (const YamlNode& node : reader.list("files")) {
    std::optional<std::string> path = yaml::readText(node, "files", report);
    if (!path) continue;
    if (const std::string wrong = yaml::expandHome(*path); !wrong.empty())
      report.error(node.where(), wrong);
    dataset.files_marks.push_back(report.markOf(node.place));
    dataset.files.push_back(resolve(node, *path, report));
  }
  const YamlNode* list = reader.find("files");
  if (list != nullptr && list->isSequence() && list->children.empty())
    report.error(list->where(), "'files' is empty: name at least one file");
}

DatasetSpec readDataset(const YamlNode& node, int64_t default_count, Report& report) {
  const MapReader reader(node, schema::kDataset, node.key, report);
  DatasetSpec dataset;
  dataset.mark = report.markOf(node.key_place);
  dataset.count = default_count;
  const bool known = reader.choice("format", dataset.format);
  readPath(reader, node, "images", dataset.images, dataset.images_mark, report);
  readPath(reader, node, "labels", dataset.labels, dataset.labels_mark, report);
  readFiles(reader, dataset, report);
  reader.whole("count", dataset.count);
  if (known) checkFormatKeys(node, dataset.format, report);
  return dataset;
}

}  // namespace

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
  if (train != nullptr) data.train = readDataset(*train, kDigitsToTrain, report);
  if (eval != nullptr) data.eval = readDataset(*eval, kDigitsToEvaluate, report);
  if (train == nullptr && eval == nullptr) data.eval = digits;
  if (reader.whole("batch_size", data.batch_size))
    data.batch_size_mark = report.markOf(node->find("batch_size")->place);
  reader.whole("seed", data.seed);
  return data;
}

}  // namespace dtf::cluster
