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
  std::map<int64_t, TowerBatch> towers;
  for (size_t i = 0; i < spec.feeds.size(); ++i) {
    const model::GraphFeed& feed = spec.feeds[i];
    if (feed.part.empty()) continue;
    const data::Part& part = feed.part == data::kFeatures ? dataset->features() : dataset->labels();
    const int64_t examples = examplesOf(feed, part);
    const auto [tower, is_new] = towers.try_emplace(feed.tower, TowerBatch{&feed, examples});
    if (!is_new && examples != tower->second.examples)
      throw yaml::ErrorAt(
          ErrorCode::kBadConfig, feed.mark,
          fmt::format("'{}' takes {} examples in a step, '{}' takes {}", feed.tensor, examples,
                      tower->second.feed->tensor, tower->second.examples));
    from_data_.push_back({.value = i, .part = &part, .tower = feed.tower});
  }
  DTF_CHECK(!towers.empty());  // readGraphFile() refuses data that nothing is fed with
  batches_.emplace(dataset, divideStep(towers), spec.seed);
}

// A step reads one batch for all towers, and each takes its own range of it, in their order: two
// towers read the examples of one with their batches joined.
int64_t GraphFeeds::divideStep(const std::map<int64_t, TowerBatch>& towers) {
  int64_t all = 0, next = 0;
  for (const auto& [tower, batch] : towers) {
    if (tower != next++)
      throw yaml::ErrorAt(ErrorCode::kBadConfig, batch.feed->mark,
                          fmt::format("'{}' takes the batch of tower {}, and no feed that of tower "
                                      "{}: number the towers from 0",
                                      batch.feed->tensor, tower, next - 1));
    for (FromData& each : from_data_)
      if (each.tower == tower) {
        each.first = static_cast<size_t>(all);
        each.count = static_cast<size_t>(batch.examples);
      }
    all += batch.examples;
  }
  return all;
}

const std::vector<engine::Feed>& GraphFeeds::of(int64_t step) {
  DTF_CHECK(step >= 1);
  if (values_.size() < specs_.size()) makeValues();
  if (!batches_) return feeds_;
  const std::span<const uint32_t> examples = batches_->examples(static_cast<uint64_t>(step - 1));
  for (const FromData& each : from_data_) {
    Tensor& value = values_[each.value];
    std::byte* to = value.data();
    for (const uint32_t example : examples.subspan(each.first, each.count)) {
      const std::span<const uint8_t> bytes = each.part->of(example);
      std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
    DTF_CHECK(to == value.data() + value.bytes());
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
