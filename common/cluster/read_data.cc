#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
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

// Every key belongs to one format; one of another format would be ignored, so it is a mistake.
void checkFormatKeys(const YamlNode& node, DatasetSpec::Format format, Report& report) {
  const bool idx = format == DatasetSpec::Format::kIdx;
  for (const std::string_view key : {"images", "labels"}) {
    const YamlNode* given = node.find(key);
    if (idx && given == nullptr)
      report.error(node.key_place, "format idx needs " + inQuotes(key) + ", a file");
    if (!idx && given != nullptr)
      report.error(given->key_place, inQuotes(key) + " has no meaning for format digits");
  }
  const YamlNode* count = node.find("count");
  if (idx && count != nullptr)
    report.error(count->key_place, "'count' has no meaning for format idx");
}

DatasetSpec readDataset(const YamlNode& node, int64_t default_count, Report& report) {
  const MapReader reader(node, schema::kDataset, node.key, report);
  DatasetSpec dataset;
  dataset.mark = report.markOf(node.key_place);
  dataset.count = default_count;
  const bool known = reader.choice("format", dataset.format);
  readPath(reader, node, "images", dataset.images, dataset.images_mark, report);
  readPath(reader, node, "labels", dataset.labels, dataset.labels_mark, report);
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
