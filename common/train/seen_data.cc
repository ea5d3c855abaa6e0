#include "common/train/seen_data.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/saturating.h"
#include "common/data/libsvm_reader.h"

namespace dtf::train {

SeenData seenPixels(int64_t count, Shape shape, std::string name, const yaml::Mark& mark) {
  SeenData seen;
  seen.count = count;
  seen.features = {data::kFeatures, DType::kUInt8, std::move(shape)};
  seen.name = std::move(name);
  seen.mark = mark;
  return seen;
}

SeenData seenLibsvm(const cluster::DatasetSpec& dataset) {
  DTF_CHECK(!dataset.files.empty());
  SeenData seen{std::nullopt,
                std::nullopt,
                data::libsvmFeatures(dataset),
                data::libsvmLabels(dataset),
                dataset.files[0].string(),
                dataset.files_marks.at(0)};
  const auto count = static_cast<uint64_t>(data::countLibsvm(dataset.files));
  seen.bytes = saturatingMultiply(count, seen.features.bytes() + seen.labels.bytes());
  return seen;
}

}  // namespace dtf::train
