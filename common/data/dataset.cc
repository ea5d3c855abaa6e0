#include "common/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/digits.h"
#include "common/data/idx_reader.h"

namespace dtf::data {

Dataset::Dataset(std::string name, Shape example_shape, ByteBlock images, ByteBlock labels)
    : name_(std::move(name)),
      example_shape_(std::move(example_shape)),
      example_bytes_(static_cast<size_t>(example_shape_.elements())),
      images_(std::move(images)),
      labels_(std::move(labels)) {
  DTF_CHECK(images_.size() == labels_.size() * example_bytes_);
  const std::span<const uint8_t> all = this->labels();
  if (!all.empty()) classes_ = 1 + *std::max_element(all.begin(), all.end());
}

std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval) {
  if (spec.format == cluster::DatasetSpec::Format::kIdx)
    return std::make_shared<const Dataset>(readIdxDataset(spec.images, spec.labels));
  // More threads than this would not be felt, and the other tasks of a local job draw at the same
  // time.
  constexpr unsigned kThreadsMax = 4;
  const int threads =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kThreadsMax));
  const DigitStream stream = eval ? DigitStream::kEval : DigitStream::kTrain;
  return std::make_shared<const Dataset>(drawDigits(seed, stream, spec.count, threads));
}

void checkLabels(const Dataset& dataset, int64_t units, std::string_view layer) {
  if (dataset.classes() <= units) return;
  const std::span<const uint8_t> labels = dataset.labels();
  const auto bad =
      std::find_if(labels.begin(), labels.end(), [units](uint8_t l) { return l >= units; });
  throw Error(
      ErrorCode::kBadData,
      fmt::format(
          "{}: example {} has label {}, but layer '{}' has {} units (labels 0 to {}): give it at "
          "least {} units, or use other labels",
          dataset.name(), bad - labels.begin(), *bad, layer, units, units - 1, dataset.classes()));
}

}  // namespace dtf::data
