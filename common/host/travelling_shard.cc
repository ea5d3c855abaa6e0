#include "common/host/travelling_shard.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/host/shard_files.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"

namespace dtf::host {

StagedShard::StagedShard(NamedShard shard, const shard::CapturedShard& captured)
    : captured_(captured),
      image_(shard.index, static_cast<uint32_t>(captured.declaration.layout.shards.size()),
             savedParts(shard, captured_)),
      saved_(savedShard(image_.file(), captured_)) {}

BroughtShard::BroughtShard(NamedShard shard, const arena::ModelDeclaration& declaration,
                           uint32_t workers, const checkpoint::CutHead& head)
    : shard_(shard),
      declaration_(declaration),
      restored_(roomFor(head, shard.index, declaration_, workers)),
      due_(1 + restored_.slots.size()),
      filled_(due_.size()) {
  const arena::ParameterLayout& layout = declaration_.layout;
  for (const arena::Slice& slice : layout.shards[shard.index].slices) {
    if (slice.count == 0) continue;
    const arena::VariableInfo& variable = layout.variables[slice.variable];
    const uint32_t arenas = 1 + optimizer::slotCount(declaration_.optimizer, variable);
    for (uint32_t arena = 0; arena < arenas; ++arena)
      due_.at(arena).emplace(slice.offset, slice.offset + slice.count);
    elements_due_ += arenas * slice.count;
  }
}

void BroughtShard::take(const checkpoint::ArenaPlace& place, std::string_view values) {
  const uint64_t begin = place.offset;
  const uint64_t count = values.size() / sizeof(float);
  const auto refuse = [&](const char* why) -> Error {
    return {ErrorCode::kBadData,
            fmt::format("{} received {} bytes at element {} of arena {}, {}", shard_.host.name(),
                        values.size(), begin, place.arena, why)};
  };
  const bool even = count > 0 && values.size() % sizeof(float) == 0;
  if (place.arena >= due_.size() || !even || begin + count < begin)
    throw refuse("which are not values of this shard");
  const uint64_t end = begin + count;
  const Ranges& due = due_[place.arena];
  const auto slice = due.upper_bound(begin);
  if (slice == due.begin() || std::prev(slice)->second < end)
    throw refuse("which don't lie in one of its variables");
  Ranges& filled = filled_[place.arena];
  auto next = filled.lower_bound(begin);
  const auto before = next == filled.begin() ? filled.end() : std::prev(next);
  if ((next != filled.end() && next->first < end) ||
      (before != filled.end() && before->second > begin))
    throw refuse("which overlap earlier ones");
  float* arena = place.arena == 0 ? restored_.values.as<float>()
                                  : restored_.slots[place.arena - 1].as<float>();
  std::memcpy(arena + begin, values.data(), values.size());
  elements_filled_ += count;
  uint64_t joined = end;
  if (next != filled.end() && next->first == end) {
    joined = next->second;
    filled.erase(next);
  }
  if (before != filled.end() && before->second == begin)
    before->second = joined;
  else
    filled.emplace(begin, joined);
}

shard::RestoredShard BroughtShard::finish() {
  DTF_CHECK(elements_filled_ <= elements_due_);
  if (elements_filled_ < elements_due_)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} received {} of the {} values of its "
                            "part of the checkpoint",
                            shard_.host.name(), elements_filled_, elements_due_));
  completeRestored(restored_, shard_.index, declaration_);
  return std::move(restored_);
}

}  // namespace dtf::host
