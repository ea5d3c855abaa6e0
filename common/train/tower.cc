#include "common/train/tower.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::train {

namespace {

constexpr int kTowerShift = 56;  // no job has 2^56 batches

}  // namespace

cluster::TrainSpec shareOf(cluster::TrainSpec train, size_t towers) {
  const auto shares = static_cast<int64_t>(towers);
  if (train.data.batch_size % shares != 0)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("a batch of {} examples can't be shared out evenly among {} devices",
                            train.data.batch_size, shares));
  train.data.batch_size /= shares;
  return train;
}

uint64_t maskNumber(uint64_t batch, uint32_t tower) {
  DTF_CHECK(batch >> kTowerShift == 0 && tower >> (64 - kTowerShift) == 0);
  return batch | uint64_t{tower} << kTowerShift;
}

Tower::Tower(const model::ModelGraph& model, const engine::TaskPart& part, const ComputeDevice& on,
             uint32_t index, const runtime::KeptVariables* kept)
    : on_(on), index_(index), step_(model, part, on, kept) {
  if (index == 0 || kept != nullptr) return;
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    Buffer& gradient = gradients_.emplace_back();
    if (step_.isSparse(i)) continue;
    const Shape& shape = model.graph.spec(model.variables[i].value).shape;
    gradient = Buffer(static_cast<size_t>(shape.elements()) * sizeof(float));
    step_.bindGradient(i, gradient.as<float>());
  }
}

void Tower::run(GradientListener* listener) noexcept {
  failure_ = nullptr;
  try {
    if (listener == nullptr)
      step_.run();
    else
      step_.run(*listener);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Tower::throwIfFailed(bool several) const {
  if (failure_ == nullptr) return;
  if (!several) std::rethrow_exception(failure_);
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("tower {} on {}: {}", index_, on_.device->name(), error.message()));
  }
}

}  // namespace dtf::train
