#include "common/data/dataset.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::data {

Dataset::Dataset(Part features, Part labels) : parts_{std::move(features), std::move(labels)} {
  DTF_CHECK(this->features().spec().name == kFeatures && this->labels().spec().name == kLabels);
  DTF_CHECK(this->features().count() == this->labels().count());
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
