#include "common/data/open_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/cifar_reader.h"
#include "common/data/csv_reader.h"
#include "common/data/digits.h"
#include "common/data/eval_split.h"
#include "common/data/file_kind.h"
#include "common/data/idx_reader.h"
#include "common/data/image_decoder.h"
#include "common/data/image_folder.h"
#include "common/data/label_check.h"
#include "common/data/learn_table.h"
#include "common/data/libsvm_reader.h"
#include "common/data/npy_dataset.h"
#include "common/data/read_signature.h"
#include "common/data/synthetic.h"
#include "common/data/table_preparation.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::DatasetSpec;

// Reports the error of a file at the key that names it.
template <class Read>
auto at(const yaml::Mark& mark, const Read& read) {
  try {
    return read();
  } catch (const yaml::ErrorAt&) {
    throw;  // it has a place already
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), mark, error.message());
  }
}

Dataset openIdx(const DatasetSpec& spec) {
  Part labels = at(spec.labels_mark, [&] { return readIdxLabels(spec.labels); });
  return at(spec.images_mark, [&] { return readIdxDataset(spec.images, std::move(labels)); });
}

Dataset drawAll(const DatasetSpec& spec, uint64_t seed, bool eval) {
  // More threads bring little, and the other tasks of a local job draw at the same time.
  constexpr unsigned kThreadsMax = 4;
  const int threads =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kThreadsMax));
  const DigitStream stream = eval ? DigitStream::kEval : DigitStream::kTrain;
  return drawDigits(seed, stream, spec.count, threads);
}

Dataset open(const DatasetSpec& spec, uint64_t seed, bool eval) {
  switch (spec.format) {
    case DatasetSpec::Format::kIdx:
      return openIdx(spec);
    case DatasetSpec::Format::kCifar10:
    case DatasetSpec::Format::kCifar100:
      return at(spec.files_marks.at(0), [&] { return readCifar(spec.files, cifarLabels(spec)); });
    case DatasetSpec::Format::kDigits:
      return drawAll(spec, seed, eval);
    case DatasetSpec::Format::kSynthetic:
      return drawSynthetic(spec.problem, spec.classes, seed, eval, spec.count);
    case DatasetSpec::Format::kCsv:
      return at(spec.files_marks.at(0), [&] { return readCsv(spec.files, spec.csv); });
    case DatasetSpec::Format::kNpy:
    case DatasetSpec::Format::kNpz:
      return readNpyDataset(spec);
    case DatasetSpec::Format::kLibsvm:
      return at(spec.files_marks.at(0), [&] { return readLibsvm(spec); });
    case DatasetSpec::Format::kImages:
      return at(spec.image_folder.folder.mark,
                [&] { return readImageFolder(spec.image_folder).dataset; });
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(spec.format)));
}

// Returns the mark of the key that names its labels, or all files.
const yaml::Mark& fileMark(const DatasetSpec& spec) {
  if (!spec.files_marks.empty()) return spec.files_marks[0];
  for (const yaml::Mark* mark : {&spec.labels_mark, &spec.npy.labels.mark, &spec.npy.targets.mark})
    if (!mark->file.empty()) return *mark;
  return spec.image_folder.folder.mark;
}

// An evaluation need not have all classes.
void checkClassNames(const DatasetSpec& spec, const Part& labels, bool eval) {
  const bool images = spec.format == DatasetSpec::Format::kImages;
  const std::vector<std::string> names =
      images ? classFolders(spec.image_folder) : spec.csv.classNames();
  if (!eval)
    return at(
        images || spec.files_marks.empty() ? spec.image_folder.folder.mark : spec.files_marks[0],
        [&] { checkAllClasses(labels, names); });
  const std::vector<std::string> empty = classesWithoutExamples(labels, names);
  if (!empty.empty())
    log::warning("event=classes_without_examples classes={} first=\"{}\"", empty.size(),
                 printable(empty[0]));
}

// Returns the columns that the model was trained on. nullopt: the table to predict from decides,
// because the job has no header and no categories, and the model no signature.
std::optional<TrainedColumns> columnsOf(const DatasetSpec& train,
                                        const std::optional<DataSignature>& model) {
  if (model && model->isTable()) return trainedColumns(*model);
  if (!train.csv.header && train.csv.categorical.empty()) return std::nullopt;
  return at(train.files_marks.at(0), [&] { return readCsvHeader(train.files, train.csv).trained; });
}

UnlabelledExamples readTable(const std::filesystem::path& file, const DatasetSpec& like,
                             int64_t width, const std::optional<DataSignature>& model,
                             std::span<const std::string> keep) {
  if (model && model->isTable() && model->header != like.csv.header)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{}: the model was trained on a table with 'header: {}', and the job's "
                            "file says 'header: {}'",
                            file.string(), model->header, like.csv.header));
  const std::optional<TrainedColumns> trained = columnsOf(like, model);
  CsvExamples examples =
      readCsvExamples(file, like.csv, width, trained ? &*trained : nullptr, keep);
  UnlabelledExamples unlabelled{std::move(examples.features),   {},
                                std::move(examples.categories), std::move(examples.unread),
                                std::move(examples.truths),     std::move(examples.kept)};
  unlabelled.other_words = std::move(examples.other_words);
  return unlabelled;
}

// An array has numbers alone: nothing says which of them a model's preparation is for.
void checkNoPreparation(const std::filesystem::path& file, const DatasetSpec& like,
                        const std::optional<DataSignature>& model) {
  bool prepares = !like.csv.numeric.empty();
  if (model && model->isTable())
    for (const PartSignature& input : model->inputs)
      prepares = prepares || (input.name == kFeatures && !input.preparation.empty());
  if (prepares)
    throw Error(ErrorCode::kBadConfig,
                file.string() +
                    ": the model prepares its columns by name (numeric_columns), and an array has "
                    "no names: give a CSV file with the columns of the training data");
}

// Returns the settings of the job's images; for another job whose model reads pixels, settings of
// its shape.
cluster::ImagesSpec imagesLike(const std::filesystem::path& file, const DatasetSpec& like,
                               const std::vector<int64_t>& input_shape) {
  if (like.format == DatasetSpec::Format::kImages) return like.image_folder;
  cluster::ImagesSpec images;
  if (like.featuresType() != DType::kUInt8 || !images.setSize(input_shape))
    throw Error(ErrorCode::kBadConfig, file.string() +
                                           ": an image, or a folder, but the job's model doesn't "
                                           "read images");
  return images;
}

}  // namespace

UnlabelledExamples readFeatures(const std::filesystem::path& file, const DatasetSpec& described,
                                const std::vector<int64_t>& input_shape,
                                const std::optional<DataSignature>& model,
                                std::span<const std::string> keep) {
  DTF_CHECK(!input_shape.empty());
  if (model) checkPreparation(described, *model);
  const DatasetSpec like = model ? withLearnedOf(*model, described) : learnTable(described);
  const auto images = [&] { return readImageFeatures(file, imagesLike(file, like, input_shape)); };
  if (std::error_code gone; std::filesystem::is_directory(file, gone)) return images();
  std::array<uint8_t, kKindBytes> first{};
  const size_t held = ByteSource(file).read(first.data(), first.size());
  if (imageKind(std::span(first).first(held)) != ImageKind::kNone) return images();
  const std::string_view begin(reinterpret_cast<const char*>(first.data()), held);
  const bool is_array = begin.starts_with("\x93NUMPY");
  if (is_array || like.format != DatasetSpec::Format::kCsv) checkNoPreparation(file, like, model);
  if (is_array) return {readNpyFeatures(file, like), {}};
  if (begin.starts_with("PK") && like.format == DatasetSpec::Format::kNpz)
    return readNpzExamples(file, like);
  if (like.format == DatasetSpec::Format::kLibsvm) return readLibsvmFeatures(file, like);
  if (like.format == DatasetSpec::Format::kCsv)
    return readTable(file, like, input_shape.back(), model, keep);
  // What is none of these is refused by the reader of the format that the job trains on.
  if (!begin.starts_with(std::string_view("\0\0\x08", 3))) {
    if (like.format == DatasetSpec::Format::kImages) return images();
    if (like.format == DatasetSpec::Format::kNpz) return readNpzExamples(file, like);
    if (like.format == DatasetSpec::Format::kNpy) return {readNpyFeatures(file, like), {}};
  }
  IdxArray array = readIdx(file, 2, 4);
  if (array.bytes.size() == 0)
    throw Error(ErrorCode::kBadData, file.string() + ": it holds no examples");
  const Shape shape(std::vector<int64_t>(array.dims.begin() + 1, array.dims.end()));
  return {{{kFeatures, DType::kUInt8, shape}, file.string(), std::move(array.bytes)}, {}};
}

std::shared_ptr<const Dataset> openDataset(const DatasetSpec& described, uint64_t seed, bool eval) {
  const DatasetSpec spec = learnTable(described);
  Dataset all = open(spec, seed, eval);
  if (spec.split) all = at(fileMark(spec), [&] { return sideOf(all, *spec.split); });
  auto dataset = std::make_shared<const Dataset>(std::move(all));
  if (areClasses(dataset->labels().spec())) checkClassNames(spec, dataset->labels(), eval);
  return dataset;
}

}  // namespace dtf::data
