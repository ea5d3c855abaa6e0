#include "daemons/psd/travelling_shard.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/ps/moving_average.h"
#include "common/ps/optimizer.h"
#include "daemons/psd/shard_files.h"

namespace dtf::psd {

StagedShard::StagedShard(uint32_t ps_task, const ps::Shard::Captured& captured)
    : captured_(captured),
      image_(ps_task, static_cast<uint32_t>(captured.declaration.layout.shards.size()),
             savedParts(ps_task, captured_)),
      saved_(savedShard(image_.file(), captured_)) {}

BroughtShard::BroughtShard(uint32_t ps_task, const ps::ModelDeclaration& declaration,
                           uint32_t workers, const checkpoint::CutHead& head)
    : ps_task_(ps_task),
      declaration_(declaration),
      restored_(roomFor(head, ps_task, declaration_, workers)),
      due_(1 + restored_.slots.size()),
      filled_(due_.size()) {
  const ps::ParameterLayout& layout = declaration_.layout;
  for (const ps::Slice& slice : layout.shards[ps_task].slices) {
    if (slice.count == 0) continue;
    const ps::VariableInfo& variable = layout.variables[slice.variable];
    const uint32_t arenas = 1 + ps::slotCount(declaration_.optimizer, variable);
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
            fmt::format("ps/{} received {} bytes at element {} of arena {}, {}", ps_task_,
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

ps::RestoredShard BroughtShard::finish() {
  DTF_CHECK(elements_filled_ <= elements_due_);
  if (elements_filled_ < elements_due_)
    throw Error(ErrorCode::kBadData, fmt::format("ps/{} received {} of the {} values of its "
                                                 "part of the checkpoint",
                                                 ps_task_, elements_filled_, elements_due_));
  completeRestored(restored_, ps_task_, declaration_);
  return std::move(restored_);
}

}  // namespace dtf::psd
