#include "common/train/gradient_stream.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace dtf::train {

GradientStream::GradientStream(const arena::ParameterLayout& layout,
                               exchange::ExchangeClient& client, ParameterBinding& binding)
    : client_(client),
      binding_(binding),
      is_made_(layout.variables.size()),
      written_(layout.shards.size()) {
  for (const arena::ShardLayout& shard : layout.shards)
    shards_.push_back({shard.slices, shard.elements, 0});
}

void GradientStream::expect(const replication::StepState& due) {
  has_begun_ = false;
  due_ = due;
  is_made_.assign(is_made_.size(), false);
  std::ranges::fill(written_, 0);
  for (Shard& shard : shards_) shard.made = 0;
}

void GradientStream::onLoss(float loss) {
  DTF_CHECK(!has_begun_);
  if (!std::isfinite(loss)) return;
  client_.begin(due_.next_step, due_.next_batch, loss, exchange::Gradient::kGrowing);
  has_begun_ = true;
  tellClient();
}

void GradientStream::onGradients(std::span<const uint32_t> variables) {
  for (const uint32_t variable : variables) {
    binding_.scatterGradient(variable);
    is_made_.at(variable) = true;
  }
  if (has_begun_) tellClient();
}

void GradientStream::tellClient() {
  bool has_risen = false;
  for (size_t ps = 0; ps < shards_.size(); ++ps) {
    const uint64_t written = writtenOf(shards_[ps]);
    has_risen = has_risen || written > written_[ps];
    written_[ps] = written;
  }
  if (has_risen) client_.written(written_);
}

// Returns the number of elements before the first slice that isn't final. Never all of them:
// complete() releases the end.
uint64_t GradientStream::writtenOf(Shard& shard) const {
  while (shard.made < shard.slices.size() && is_made_[shard.slices[shard.made].variable])
    ++shard.made;
  if (shard.made < shard.slices.size()) return shard.slices[shard.made].offset;
  return shard.elements - std::min(shard.elements, arena::kSliceAlignment);
}

void GradientStream::complete() {
  if (!has_begun_) return;
  // A gradient that no operation computes was not reported.
  for (uint32_t i = 0; i < is_made_.size(); ++i)
    if (!is_made_[i]) binding_.scatterGradient(i);
  for (size_t ps = 0; ps < shards_.size(); ++ps) written_[ps] = shards_[ps].elements;
  client_.written(written_);
}

}  // namespace dtf::train
