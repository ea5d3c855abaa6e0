#include "common/data/read_signature.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/csv_reader.h"
#include "common/data/image_folder.h"
#include "common/data/learn_table.h"
#include "common/data/part.h"
#include "common/data/prepared_columns.h"
#include "common/data/table_preparation.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::DatasetSpec;
using Names = std::vector<std::string>;

const char* kindOf(DatasetSpec::Format format) {
  switch (format) {
    case DatasetSpec::Format::kDigits:
    case DatasetSpec::Format::kSynthetic:
      return "drawn";
    case DatasetSpec::Format::kIdx:
    case DatasetSpec::Format::kCifar10:
    case DatasetSpec::Format::kCifar100:
    case DatasetSpec::Format::kNpy:
    case DatasetSpec::Format::kNpz:
    case DatasetSpec::Format::kLibsvm:
      return "arrays";
    case DatasetSpec::Format::kCsv:
      return "table";
    case DatasetSpec::Format::kImages:
      return "images";
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(format)));
}

const char* problemName(cluster::Problem problem) {
  switch (problem) {
    case cluster::Problem::kFriedman:
      return "friedman";
    case cluster::Problem::kLinear:
      return "linear";
    case cluster::Problem::kTags:
      return "tags";
    case cluster::Problem::kCentres:
      return "centres";
    case cluster::Problem::kClicks:
      return "clicks";
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(problem)));
}

std::vector<Json> vocabulary(const Names& words) {
  if (words.empty()) return {};
  return {{{"op", "vocabulary"}, {"words", asUtf8(words)}}};
}

std::vector<Json> preparationOf(const cluster::ImagesSpec& images) {
  const bool crops = images.resize == cluster::ImagesSpec::Resize::kCrop;
  return {{{"op", "resize"},
           {"method", crops ? "crop" : "stretch"},
           {"height", images.height},
           {"width", images.width},
           {"channels", images.channels}}};
}

// Returns a signature without the parts that only the files hold: columns, and the classes of
// folders.
DataSignature declaredSignature(const DatasetSpec& spec) {
  DataSignature signature;
  signature.kind = kindOf(spec.format);
  signature.header = spec.csv.header;
  if (!spec.csv.no_features) signature.inputs.push_back({kFeatures, {}});
  for (const model::CategoryInput& each : spec.categories())
    signature.inputs.push_back({each.name, {}});
  for (size_t i = 0; i < spec.csv.categorical.size(); ++i)
    for (PartSignature& input : signature.inputs)
      if (input.name == spec.csv.categorical[i].name)
        input.preparation = categorySteps(spec.csv, i);
  signature.targets.push_back({kLabels, {}});
  if (spec.format == DatasetSpec::Format::kImages)
    signature.inputs[0].preparation = preparationOf(spec.image_folder);
  if (spec.format == DatasetSpec::Format::kSynthetic)
    signature.inputs[0].preparation = {{{"op", "draw"}, {"problem", problemName(spec.problem)}}};
  if (spec.format == DatasetSpec::Format::kCifar100 &&
      spec.label_mode == cluster::LabelMode::kCoarse)
    signature.targets[0].preparation = {{{"op", "label_mode"}, {"mode", "coarse"}}};
  if (spec.format == DatasetSpec::Format::kLibsvm)
    signature.targets[0].preparation = labelSteps(spec.csv);
  if (spec.format != DatasetSpec::Format::kCsv) return signature;
  signature.targets[0].preparation = labelSteps(spec.csv);
  if (!spec.csv.numeric.empty()) signature.inputs[0].preparation = featureSteps(spec.csv);
  return signature;
}

CsvHeader headerOf(const DatasetSpec& spec) {
  try {
    return readCsvHeader(spec.files, spec.csv);
  } catch (const yaml::ErrorAt&) {
    throw;  // it has a place already
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), spec.files_marks.at(0), error.message());
  }
}

void addColumns(const TrainedColumns& columns, const DatasetSpec& spec, DataSignature& signature) {
  signature.table_columns = static_cast<int64_t>(columns.all);
  size_t next = 0;
  if (!spec.csv.no_features) signature.inputs[next++].columns = asUtf8(columns.features);
  for (const Names& each : columns.categories) signature.inputs[next++].columns = asUtf8(each);
  DTF_CHECK(next == signature.inputs.size());
  signature.targets[0].columns = asUtf8(columns.targets);
}

// `learned`: the preparation, where it learns anything.
DataSignature tableSignature(const DatasetSpec& spec, DatasetSpec learned) {
  const CsvHeader header = headerOf(spec);
  if (!learned.csv.numeric.empty() && !learned.csv.learned && !learned.csv.learns())
    learned.csv.learned =
        cluster::LearnedTable{preparedColumns(header.trained.features, spec.csv.numeric),
                              std::vector<Names>(spec.csv.categorical.size()),
                              {}};
  DataSignature signature = declaredSignature(learned);
  addColumns(header.trained, spec, signature);
  return signature;
}

// Returns the place of the data, for messages.
std::string nameOf(const DatasetSpec& spec) {
  if (spec.format == DatasetSpec::Format::kImages) return spec.image_folder.folder.path.string();
  if (!spec.files.empty()) return spec.files[0].string();
  return "the job's data";
}

const yaml::Mark& markOf(const DatasetSpec& spec) {
  if (spec.format == DatasetSpec::Format::kImages) return spec.image_folder.folder.mark;
  return spec.files_marks.empty() ? spec.mark : spec.files_marks[0];
}

// Names as a signature writes them, with the names in the file.
using HeaderNames = std::map<std::string, std::string>;

// Returns the names in `header` of the columns `trained`, in that order, if `asked` are the same
// columns or none were asked for; else `asked`, so that the difference is found.
Names inTrainedOrder(const HeaderNames& header, const Names& trained, const Names& asked,
                     bool any_are_asked) {
  Names found;
  for (const std::string& name : trained) {
    const auto same = header.find(name);
    if (same == header.end()) return asked;
    found.push_back(same->second);
  }
  const auto sorted = [](Names names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  return !any_are_asked || sorted(found) == sorted(asked) ? found : asked;
}

// Gives a table with names the model's columns, in the model's order.
void nameTrained(const TrainedColumns& trained, DatasetSpec& spec) {
  const CsvHeader header = headerOf(spec);
  HeaderNames names;
  for (const std::string& name : header.columns) names.emplace(asUtf8(name), name);
  if (!spec.csv.no_features)
    spec.csv.features = inTrainedOrder(names, trained.features, header.trained.features,
                                       !spec.csv.features.empty());
  for (size_t i = 0; i < std::min(spec.csv.categorical.size(), trained.categories.size()); ++i)
    spec.csv.categorical[i].columns =
        inTrainedOrder(names, trained.categories[i], header.trained.categories[i], true);
}

// Returns `named` with the columns of the model. Both know the numbers of their preparation, or
// neither does.
cluster::DatasetSpec readByNames(DatasetSpec named, const DataSignature& model) {
  const bool is_table = named.format == DatasetSpec::Format::kCsv && model.isTable();
  if (is_table && named.csv.header && model.header) nameTrained(trainedColumns(model), named);
  // Other data have nothing of their own to learn.
  const DataSignature found = named.format == DatasetSpec::Format::kCsv
                                  ? tableSignature(named, named)
                                  : readSignature(named);
  const std::string difference = signatureDifference(model, found, nameOf(named));
  if (difference.empty()) return named;
  throw yaml::ErrorAt(ErrorCode::kBadData, markOf(named),
                      nameOf(named) +
                          ": its numbers have another meaning than the model's training data:\n" +
                          difference);
}

}  // namespace

DataSignature readSignature(const DatasetSpec& spec) {
  if (spec.format == DatasetSpec::Format::kCsv) return tableSignature(spec, learnTable(spec));
  DataSignature signature = declaredSignature(spec);
  if (spec.format != DatasetSpec::Format::kImages) return signature;
  try {
    signature.targets[0].preparation = vocabulary(classFolders(spec.image_folder));
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), markOf(spec), error.message());
  }
  return signature;
}

TrainedColumns trainedColumns(const DataSignature& model) {
  TrainedColumns columns;
  columns.all = static_cast<size_t>(model.table_columns);
  for (const PartSignature& input : model.inputs) {
    if (input.name == kFeatures)
      columns.features = input.columns;
    else
      columns.categories.push_back(input.columns);
  }
  for (const PartSignature& target : model.targets) columns.targets = target.columns;
  return columns;
}

cluster::DatasetSpec readAsTrained(const DatasetSpec& spec, const DataSignature& model) {
  return readByNames(withLearnedOf(model, spec), model);
}

cluster::DatasetSpec readAsTrained(const DatasetSpec& spec, const DatasetSpec& train) {
  if (train.format != DatasetSpec::Format::kCsv || !train.csv.learns() || train.csv.learned)
    return readAsTrained(spec, withTargetsOf(spec, readSignature(train)));
  // Neither has numbers yet.
  return readByNames(spec, withTargetsOf(spec, tableSignature(train, train)));
}

DataSignature withTargetsOf(const DatasetSpec& spec, DataSignature model) {
  if (spec.format != DatasetSpec::Format::kCsv || !model.isTable()) return model;
  const Names targets = asUtf8(headerOf(spec).trained.targets);
  for (PartSignature& target : model.targets)
    if (target.columns.size() == targets.size()) target.columns = targets;
  return model;
}

std::string preparationDifference(const DatasetSpec& spec, const DataSignature& model) {
  DataSignature declared = declaredSignature(withLearnedOf(model, spec));
  if (declared.kind != model.kind) return {};
  DataSignature trained = model;
  // The training data alone decide these; take the model's.
  declared.header = trained.header;
  declared.table_columns = trained.table_columns;
  declared.targets = trained.targets;
  for (size_t i = 0; i < std::min(declared.inputs.size(), trained.inputs.size()); ++i)
    declared.inputs[i].columns = trained.inputs[i].columns;
  return signatureDifference(trained, declared, "the job's file");
}

void checkPreparation(const DatasetSpec& spec, const DataSignature& model) {
  const std::string difference = preparationDifference(spec, model);
  if (!difference.empty())
    throw Error(ErrorCode::kBadConfig,
                "the job's file asks for another preparation than the model's training data:\n" +
                    difference);
}

}  // namespace dtf::data
