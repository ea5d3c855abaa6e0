#include "common/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/cifar10_reader.h"
#include "common/data/digits.h"
#include "common/data/idx_reader.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

Dataset::Dataset(Names names, Shape example_shape, ByteBlock images, ByteBlock labels)
    : names_(std::move(names)),
      example_shape_(std::move(example_shape)),
      example_bytes_(static_cast<size_t>(example_shape_.elements())),
      images_(std::move(images)),
      labels_(std::move(labels)) {
  DTF_CHECK(!names_.images.empty() && !names_.labels.empty());
  DTF_CHECK(example_bytes_ > 0);
  DTF_CHECK(images_.size() == labels_.size() * example_bytes_);
  const std::span<const uint8_t> all = this->labels();
  if (!all.empty()) classes_ = 1 + *std::max_element(all.begin(), all.end());
}

namespace {

// What is wrong with a file is said at the key that names it.
template <class Read>
auto at(const yaml::Mark& mark, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), mark, error.message());
  }
}

std::shared_ptr<const Dataset> openIdx(const cluster::DatasetSpec& spec) {
  ByteBlock labels = at(spec.labels_mark, [&] { return readIdxLabels(spec.labels); });
  return at(spec.images_mark, [&] {
    return std::make_shared<const Dataset>(
        readIdxDataset(spec.images, spec.labels, std::move(labels)));
  });
}

}  // namespace

std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval) {
  if (spec.format == cluster::DatasetSpec::Format::kIdx) return openIdx(spec);
  if (spec.format == cluster::DatasetSpec::Format::kCifar10)
    return at(spec.files_marks.at(0),
              [&] { return std::make_shared<const Dataset>(readCifar10(spec.files)); });
  // More threads than this would not be felt, and the other tasks of a local job draw at the same
  // time.
  constexpr unsigned kThreadsMax = 4;
  const int threads =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kThreadsMax));
  const DigitStream stream = eval ? DigitStream::kEval : DigitStream::kTrain;
  return std::make_shared<const Dataset>(drawDigits(seed, stream, spec.count, threads));
}

void checkLabels(std::span<const uint8_t> labels, const std::string& name, int64_t units,
                 std::string_view layer) {
  DTF_CHECK(units > 0 && !layer.empty());
  const auto bad =
      std::find_if(labels.begin(), labels.end(), [units](uint8_t l) { return l >= units; });
  if (bad == labels.end()) return;
  const int classes = 1 + *std::max_element(labels.begin(), labels.end());
  throw Error(
      ErrorCode::kBadData,
      fmt::format(
          "{}: example {} has label {}, but layer '{}' has {} units (labels 0 to {}): give it at "
          "least {} units, or use other labels",
          name, bad - labels.begin(), *bad, layer, units, units - 1, classes));
}

void checkBatchSize(int64_t batch_size, int64_t examples, const std::string& name) {
  constexpr int64_t kExamplesMax = std::numeric_limits<uint32_t>::max();
  if (batch_size < 1 || examples < batch_size)
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format(
            "batch_size is {}, but there are {} examples in {}: choose a batch_size from 1 to {}",
            batch_size, examples, name, examples));
  if (examples > kExamplesMax)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("there are {} examples in {}, more than the {} that dtf can shuffle",
                            examples, name, kExamplesMax));
}

}  // namespace dtf::data
