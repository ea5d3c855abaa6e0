#include "common/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::data {

Dataset::Dataset(Part features, Part labels, std::vector<Part> categories,
                 std::vector<BadRecord> left_out, std::vector<OtherWords> other_words,
                 int64_t records, std::vector<uint64_t> split_keys)
    : left_out_(std::move(left_out)),
      other_words_(std::move(other_words)),
      records_(records),
      split_keys_(std::move(split_keys)) {
  parts_.push_back(std::move(features));
  parts_.push_back(std::move(labels));
  for (Part& part : categories) parts_.push_back(std::move(part));
  DTF_CHECK(this->features().spec().name == kFeatures && this->labels().spec().name == kLabels);
  for (const Part& part : parts_) DTF_CHECK_MSG(part.count() == size(), part.spec().name);
  DTF_CHECK(split_keys_.empty() || static_cast<int64_t>(split_keys_.size()) == size());
  if (records_ == 0) records_ = size() + static_cast<int64_t>(left_out_.size());
}

bool Dataset::onDisk() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.onDisk(); });
}

void checkBatchSize(int64_t batch_size, int64_t examples, const std::string& name) {
  constexpr int64_t kExamplesMax = std::numeric_limits<uint32_t>::max();
  if (batch_size < 1 || examples < batch_size)
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format("batch_size is {}, but there {} {} in {}: choose a batch_size from 1 to {}",
                    batch_size, examples == 1 ? "is" : "are",
                    amountText(static_cast<uint64_t>(examples), "example"), name, examples));
  if (examples > kExamplesMax)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("there are {} examples in {}, more than the {} that dtf can shuffle",
                            examples, name, kExamplesMax));
}

}  // namespace dtf::data
