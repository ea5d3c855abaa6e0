#include "launcher/graph_feeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/cluster/read_train.h"
#include "common/data/left_out_log.h"
#include "common/data/open_dataset.h"
#include "common/yaml/error_at.h"

namespace dtf::launcher {

namespace {

constexpr int64_t kExamplesDrawn = 10'000;  // where the data is drawn and the file doesn't say

template <class T>
void fillWith(const std::vector<double>& numbers, Tensor& to) {
  const std::span<T> elements = to.as<T>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<T>(numbers[numbers.size() == 1 ? 0 : i]);
}

void fill(const std::vector<double>& numbers, Tensor& to) {
  switch (to.dtype()) {
    case DType::kFloat32:
      return fillWith<float>(numbers, to);
    case DType::kUInt8:
      return fillWith<uint8_t>(numbers, to);
    case DType::kInt32:
      return fillWith<int32_t>(numbers, to);
    case DType::kInt64:
      return fillWith<int64_t>(numbers, to);
    case DType::kBFloat16:
      break;
  }
}

std::string textOf(DType dtype, const Shape& shape) {
  return std::string(dtypeName(dtype)) + shape.str();
}

// How many examples the tensor holds. Errors: kBadConfig, where it can hold none of `part`.
int64_t examplesOf(const model::GraphFeed& feed, const data::Part& part) {
  const Shape& shape = feed.spec.shape;
  const data::PartSpec& one = part.spec();
  const int64_t examples = shape.rank() == 0 ? 0 : shape.dim(0);
  if (feed.spec.dtype == one.dtype && examples > 0 && shape.elements() % examples == 0 &&
      shape.elements() / examples == one.shape.elements())
    return examples;
  std::vector<int64_t> fits = {std::max<int64_t>(1, examples)};
  fits.insert(fits.end(), one.shape.dims().begin(), one.shape.dims().end());
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, feed.mark,
      fmt::format("'{}' is {}, the {} of {} are {} each: make it {}", feed.tensor,
                  textOf(feed.spec.dtype, shape), feed.part, part.source(),
                  textOf(one.dtype, one.shape), textOf(one.dtype, Shape(std::move(fits)))));
}

}  // namespace

GraphFeeds::GraphFeeds(const model::GraphSpec& spec, yaml::Report& report) : specs_(spec.feeds) {
  if (spec.data) openData(spec, report);
}

void GraphFeeds::makeValues() {
  for (const model::GraphFeed& feed : specs_) {
    values_.emplace_back(feed.spec.dtype, feed.spec.shape);
    if (feed.part.empty()) fill(feed.numbers, values_.back());
  }
  for (size_t i = 0; i < values_.size(); ++i) feeds_.push_back({specs_[i].tensor, &values_[i]});
}

void GraphFeeds::openData(const model::GraphSpec& spec, yaml::Report& report) {
  cluster::DatasetSpec described = cluster::readDataset(*spec.data, kExamplesDrawn, report);
  report.throwIfAny();
  for (const model::GraphFeed& feed : spec.feeds) {  // images become what reads them
    const std::vector<int64_t>& dims = feed.spec.shape.dims();
    if (feed.part == data::kFeatures && !dims.empty() &&
        described.format == cluster::DatasetSpec::Format::kImages &&
        !described.image_folder.setSize({dims.begin() + 1, dims.end()}))
      throw yaml::ErrorAt(ErrorCode::kBadConfig, feed.mark,
                          fmt::format("'{}' must be [examples, height, width, channels] to take "
                                      "images",
                                      feed.tensor));
  }
  const auto dataset = data::openDataset(described, spec.seed, false);
  data::LeftOutLog(log::Level::kWarning).add(*dataset);
  const model::GraphFeed* first = nullptr;
  int64_t batch = 0;
  for (size_t i = 0; i < spec.feeds.size(); ++i) {
    const model::GraphFeed& feed = spec.feeds[i];
    if (feed.part.empty()) continue;
    const data::Part& part = feed.part == data::kFeatures ? dataset->features() : dataset->labels();
    const int64_t examples = examplesOf(feed, part);
    if (first != nullptr && examples != batch)
      throw yaml::ErrorAt(ErrorCode::kBadConfig, feed.mark,
                          fmt::format("'{}' takes {} examples in a step, '{}' takes {}",
                                      feed.tensor, examples, first->tensor, batch));
    batch = examples;
    first = &feed;
    from_data_.emplace_back(i, &part);
  }
  DTF_CHECK(first != nullptr);  // readGraphFile() refuses data that nothing is fed with
  batches_.emplace(dataset, batch, spec.seed);
}

const std::vector<engine::Feed>& GraphFeeds::of(int64_t step) {
  DTF_CHECK(step >= 1);
  if (values_.size() < specs_.size()) makeValues();
  if (!batches_) return feeds_;
  const std::span<const uint32_t> examples = batches_->examples(static_cast<uint64_t>(step - 1));
  for (const auto& [index, part] : from_data_) {
    std::byte* to = values_[index].data();
    for (const uint32_t example : examples) {
      const std::span<const uint8_t> bytes = part->of(example);
      std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
    DTF_CHECK(to == values_[index].data() + values_[index].bytes());
  }
  return feeds_;
}

std::vector<std::string> fedTensors(const model::GraphSpec& spec) {
  std::vector<std::string> tensors;
  for (const model::GraphFeed& feed : spec.feeds) tensors.push_back(feed.tensor);
  std::sort(tensors.begin(), tensors.end());
  return tensors;
}

}  // namespace dtf::launcher
