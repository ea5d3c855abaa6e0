#include "common/data/open_dataset.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/byte_source.h"
#include "common/data/cifar10_reader.h"
#include "common/data/csv_reader.h"
#include "common/data/digits.h"
#include "common/data/file_kind.h"
#include "common/data/idx_reader.h"
#include "common/data/image_decoder.h"
#include "common/data/image_folder.h"
#include "common/data/npy_dataset.h"
#include "common/data/synthetic.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::DatasetSpec;

// What is wrong with a file is said at the key that names it.
template <class Read>
auto at(const yaml::Mark& mark, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), mark, error.message());
  }
}

Dataset openIdx(const DatasetSpec& spec) {
  Part labels = at(spec.labels_mark, [&] { return readIdxLabels(spec.labels); });
  return at(spec.images_mark, [&] { return readIdxDataset(spec.images, std::move(labels)); });
}

Dataset drawAll(const DatasetSpec& spec, uint64_t seed, bool eval) {
  // More threads than this would not be felt, and the other tasks of a local job draw at the same
  // time.
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
      return at(spec.files_marks.at(0), [&] { return readCifar10(spec.files); });
    case DatasetSpec::Format::kDigits:
      return drawAll(spec, seed, eval);
    case DatasetSpec::Format::kSynthetic:
      return drawSynthetic(spec.problem, spec.classes, seed, eval, spec.count);
    case DatasetSpec::Format::kCsv:
      return at(spec.files_marks.at(0), [&] { return readCsv(spec.files, spec.csv).dataset; });
    case DatasetSpec::Format::kNpy:
    case DatasetSpec::Format::kNpz:
      return readNpyDataset(spec);
    case DatasetSpec::Format::kImages:
      return at(spec.image_folder.folder.mark,
                [&] { return readImageFolder(spec.image_folder).dataset; });
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(spec.format)));
}

// What the model reads, by the names or numbers that it was trained on; nullopt where the table to predict of says it
// alone: without a header and categories.
std::optional<TrainedColumns> trainedColumns(const DatasetSpec& train) {
  if (!train.csv.header && train.csv.categorical.empty()) return std::nullopt;
  return at(train.files_marks.at(0), [&] { return readCsvHeader(train.files, train.csv).trained; });
}

UnlabelledExamples readTable(const std::filesystem::path& file, const DatasetSpec& like,
                             int64_t width) {
  const std::optional<TrainedColumns> trained = trainedColumns(like);
  CsvExamples examples = readCsvExamples(file, like.csv, width, trained ? &*trained : nullptr);
  return {std::move(examples.features), {}, std::move(examples.categories)};
}

// Where both have as many; their number is judged elsewhere.
void checkSameNames(const std::vector<std::string>& trained,
                    const std::vector<std::string>& evaluated, const DatasetSpec& train,
                    const DatasetSpec& eval) {
  if (trained.size() != evaluated.size()) return;
  const auto [one, other] = std::mismatch(trained.begin(), trained.end(), evaluated.begin());
  if (one == trained.end()) return;
  throw yaml::ErrorAt(ErrorCode::kBadData, eval.files_marks.at(0),
                      eval.files.at(0).string() +
                          ": its columns are in another order than those of " +
                          train.files.at(0).string() + ": '" + *other + "' where '" + *one +
                          "' is trained on; say the order with feature_columns and "
                          "categorical_columns");
}

void checkSameColumns(const DatasetSpec& train, const DatasetSpec& eval) {
  const auto headerOf = [](const DatasetSpec& spec) {
    return at(spec.files_marks.at(0), [&] { return readCsvHeader(spec.files, spec.csv); });
  };
  const CsvHeader trained = headerOf(train), evaluated = headerOf(eval);
  checkSameNames(trained.columns, evaluated.columns, train, eval);
  const auto& ours = trained.trained.categories;
  const auto& theirs = evaluated.trained.categories;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    checkSameNames(ours[i], theirs[i], train, eval);
}

std::vector<std::string> classesOf(const cluster::ImagesSpec& spec) {
  return at(spec.folder.mark, [&] { return classFolders(spec); });
}

void checkSameClasses(const cluster::ImagesSpec& train, const cluster::ImagesSpec& eval) {
  const std::vector<std::string> trained = classesOf(train);
  const std::vector<std::string> evaluated = classesOf(eval);
  if (trained == evaluated) return;
  const auto differ =
      std::mismatch(trained.begin(), trained.end(), evaluated.begin(), evaluated.end()).first -
      trained.begin();
  const auto name = [differ](const std::vector<std::string>& all) {
    const auto index = static_cast<size_t>(differ);
    return index < all.size() ? "'" + all[index] + "'" : "no more";
  };
  throw yaml::ErrorAt(ErrorCode::kBadData, eval.folder.mark,
                      eval.folder.path.string() + ": its classes are others than those of " +
                          train.folder.path.string() + ": class " + std::to_string(differ) +
                          " is " + name(evaluated) + " here and " + name(trained) +
                          " there; a class without images is an empty subfolder, and class_names "
                          "say their order");
}

// What the job's images become, or those of another job whose model reads pixels.
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

void checkSameOrder(const DatasetSpec& train, const DatasetSpec& eval) {
  if (train.format != eval.format) return;
  if (train.format == DatasetSpec::Format::kCsv) checkSameColumns(train, eval);
  if (train.format == DatasetSpec::Format::kImages)
    checkSameClasses(train.image_folder, eval.image_folder);
}

std::vector<std::string> classNames(const DatasetSpec& spec) {
  if (spec.format == DatasetSpec::Format::kImages) return classesOf(spec.image_folder);
  if (spec.format == DatasetSpec::Format::kCsv) return spec.csv.class_names;
  return {};
}

UnlabelledExamples readFeatures(const std::filesystem::path& file, const DatasetSpec& like,
                                const std::vector<int64_t>& input_shape) {
  DTF_CHECK(!input_shape.empty());
  const auto images = [&] { return readImageFeatures(file, imagesLike(file, like, input_shape)); };
  if (std::error_code gone; std::filesystem::is_directory(file, gone)) return images();
  std::array<uint8_t, kKindBytes> first{};
  const size_t held = ByteSource(file).read(first.data(), first.size());
  if (imageKind(std::span(first).first(held)) != ImageKind::kNone) return images();
  const std::string_view begin(reinterpret_cast<const char*>(first.data()), held);
  if (begin.starts_with("\x93NUMPY")) return {readNpyFeatures(file, like), {}};
  if (begin.starts_with("PK") && like.format == DatasetSpec::Format::kNpz)
    return readNpzExamples(file, like);
  if (like.format == DatasetSpec::Format::kCsv) return readTable(file, like, input_shape.back());
  IdxArray array = readIdx(file, 2, 4);
  if (array.bytes.size() == 0)
    throw Error(ErrorCode::kBadData, file.string() + ": it holds no examples");
  const Shape shape(std::vector<int64_t>(array.dims.begin() + 1, array.dims.end()));
  return {{{kFeatures, DType::kUInt8, shape}, file.string(), std::move(array.bytes)}, {}};
}

std::shared_ptr<const Dataset> openDataset(const DatasetSpec& spec, uint64_t seed, bool eval) {
  return std::make_shared<const Dataset>(open(spec, seed, eval));
}

}  // namespace dtf::data
