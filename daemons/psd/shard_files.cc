#include "daemons/psd/shard_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/checkpoint/restore.h"
#include "common/ps/gradient_math.h"
#include "common/ps/optimizer.h"
#include "common/ps/replication_rules.h"

namespace dtf::psd {

namespace {

// Every ps has applied the same updates, so with another number of ps any clock will do; a
// checkpoint of dtf has one for each ps.
ps::OptimizerClock::State restoredClock(const checkpoint::Manifest& manifest, uint32_t ps_task) {
  if (manifest.clocks.empty())
    throw Error(ErrorCode::kBadData, "the checkpoint's manifest has no optimizer clock");
  const checkpoint::ClockState& clock =
      manifest.clocks[std::min<size_t>(ps_task, manifest.clocks.size() - 1)];
  return {clock.applies, clock.beta1_power, clock.beta2_power};
}

// Nothing good can be trained from such a checkpoint, and it would push out those that are.
void refuseNonFinite(const std::vector<checkpoint::TensorPart>& parts, uint32_t ps_task) {
  for (const checkpoint::TensorPart& part : parts) {
    const std::optional<uint64_t> at = ps::firstNonFinite({part.data, part.count});
    if (!at) continue;
    throw Error(ErrorCode::kTrainingFailed,
                fmt::format("'{}' on ps/{} has {} at element {}: this checkpoint is not written, "
                            "the last one stays; a smaller learning_rate or gradient clipping may "
                            "help",
                            part.name, ps_task, part.data[*at], part.begin + *at));
  }
}

}  // namespace

checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 uint32_t ps_task, const ps::Shard::Captured& captured) {
  const ps::ParameterLayout& layout = captured.declaration.layout;
  std::vector<checkpoint::TensorPart> parts;
  for (const ps::Slice& slice : layout.shards[ps_task].slices) {
    const ps::VariableInfo& variable = layout.variables[slice.variable];
    parts.push_back({variable.name, variable.shape, slice.begin, slice.count,
                     captured.capture->parameters->data() + slice.offset});
    for (uint32_t i = 0; i < captured.capture->slots.size(); ++i)
      parts.push_back({variable.name + "/" + ps::slotName(captured.declaration.optimizer, i),
                       variable.shape, slice.begin, slice.count,
                       captured.capture->slots[i].as<float>() + slice.offset});
  }
  refuseNonFinite(parts, ps_task);
  checkpoint::SavedShard saved;
  try {
    saved.file = checkpoint::writeShard(file_system, folder, ps_task,
                                        static_cast<uint32_t>(layout.shards.size()), parts);
  } catch (const Error& error) {
    // Who reads the chief's log may be far from this disk, and who looks after this disk from that log.
    log::warning("event=save_failed folder={} reason=\"{}\"", folder.string(), error.message());
    throw Error(error.code(), fmt::format("ps/{}: {}", ps_task, error.message()));
  }
  const ps::OptimizerClock::State& clock = captured.capture->clock;
  saved.clock = {clock.applies, clock.beta1_power, clock.beta2_power};
  saved.stall_seconds = toSeconds(captured.capture->stall);
  return saved;
}

ps::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                               uint32_t ps_task, const ps::ModelDeclaration& declaration,
                               uint32_t workers) {
  const checkpoint::Manifest manifest = checkpoint::readManifest(file_system, folder);
  const ps::ShardLayout& shard = declaration.layout.shards[ps_task];
  ps::RestoredShard restored;
  restored.position = ps::restoredPosition(declaration.replication, workers,
                                           manifest.worker_batches, manifest.global_step);
  restored.version = manifest.global_step;
  restored.clock = restoredClock(manifest, ps_task);
  restored.values = Buffer(shard.elements * sizeof(float));
  std::fill_n(restored.values.as<float>(), shard.elements, 0.0f);
  for (uint32_t i = 0; i < ps::slotCount(declaration.optimizer); ++i) {
    // Padding has a slot's initial value, as in a shard that was never saved.
    Buffer slot(shard.elements * sizeof(float));
    const float padding = ps::isMovingAverage(declaration.optimizer, i)
                              ? 0.0f
                              : ps::initialSlotValue(declaration.optimizer, i);
    std::fill_n(slot.as<float>(), shard.elements, padding);
    restored.slots.push_back(std::move(slot));
  }
  std::vector<checkpoint::WantedPart> wanted;
  for (const ps::Slice& slice : shard.slices) {
    const std::string& name = declaration.layout.variables[slice.variable].name;
    wanted.push_back({name, slice.begin, slice.count, restored.values.as<float>() + slice.offset});
    for (uint32_t i = 0; i < restored.slots.size(); ++i)
      wanted.push_back({name + "/" + ps::slotName(declaration.optimizer, i), slice.begin,
                        slice.count, restored.slots[i].as<float>() + slice.offset});
  }
  checkpoint::readParts(file_system, folder, manifest, wanted);
  return restored;
}

}  // namespace dtf::psd
