#include "daemons/psd/shard_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/log.h"
#include "common/base/wall_time.h"
#include "common/checkpoint/former_variables.h"
#include "common/checkpoint/restore.h"
#include "common/ps/gradient_math.h"
#include "common/ps/moving_average.h"
#include "common/ps/optimizer.h"
#include "common/ps/replication_rules.h"

namespace dtf::psd {

namespace {

// Every ps has applied the same updates, so with another number of ps any clock will do; a
// checkpoint of dtf has one for each ps.
ps::OptimizerClock::State restoredClock(const std::vector<checkpoint::ClockState>& clocks,
                                        uint32_t ps_task) {
  if (clocks.empty())
    throw Error(ErrorCode::kBadData, "the checkpoint's manifest has no optimizer clock");
  const checkpoint::ClockState& clock = clocks[std::min<size_t>(ps_task, clocks.size() - 1)];
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

// A snapshot is of one shard: each of its slices is a variable of its own.
std::string sliceName(size_t slice) {
  return fmt::format("slice-{}", slice);
}

std::vector<std::string> slotNames(const ps::ModelDeclaration& declaration) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < ps::slotCount(declaration.optimizer); ++i)
    names.push_back(ps::slotName(declaration.optimizer, i));
  return names;
}

std::string modelText(const ps::ModelDeclaration& declaration, uint32_t ps_task) {
  return fmt::format("{} on ps/{}", hexOf(declaration.layout.fingerprint()), ps_task);
}

// Where nothing is read, and so in the padding, as in a shard that was never saved.
ps::RestoredShard emptyShard(const ps::ModelDeclaration& declaration, uint32_t ps_task) {
  const uint64_t elements = declaration.layout.shards[ps_task].elements;
  ps::RestoredShard restored;
  restored.values = Buffer(elements * sizeof(float));
  std::fill_n(restored.values.as<float>(), elements, 0.0f);
  for (uint32_t i = 0; i < ps::slotCount(declaration.optimizer); ++i) {
    Buffer slot(elements * sizeof(float));
    const float padding = ps::isMovingAverage(declaration.optimizer, i)
                              ? 0.0f
                              : ps::initialSlotValue(declaration.optimizer, i);
    std::fill_n(slot.as<float>(), elements, padding);
    restored.slots.push_back(std::move(slot));
  }
  return restored;
}

}  // namespace

std::vector<checkpoint::TensorPart> savedParts(uint32_t ps_task,
                                               const ps::Shard::Captured& captured) {
  const ps::ParameterLayout& layout = captured.declaration.layout;
  std::vector<checkpoint::TensorPart> parts;
  for (const ps::Slice& slice : layout.shards[ps_task].slices) {
    const ps::VariableInfo& variable = layout.variables[slice.variable];
    parts.push_back({variable.name, variable.shape, slice.begin, slice.count,
                     captured.capture->parameters->data() + slice.offset});
    for (uint32_t i = 0; i < ps::slotCount(captured.declaration.optimizer, variable); ++i)
      parts.push_back({variable.name + "/" + ps::slotName(captured.declaration.optimizer, i),
                       variable.shape, slice.begin, slice.count,
                       captured.capture->slots[i].as<float>() + slice.offset});
  }
  refuseNonFinite(parts, ps_task);
  return parts;
}

checkpoint::SavedShard savedShard(checkpoint::ShardFile file, const ps::Shard::Captured& captured) {
  const ps::OptimizerClock::State& clock = captured.capture->clock;
  return {std::move(file),
          {clock.applies, clock.beta1_power, clock.beta2_power},
          toSeconds(captured.capture->stall)};
}

checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 uint32_t ps_task, const ps::Shard::Captured& captured) {
  const std::vector<checkpoint::TensorPart> parts = savedParts(ps_task, captured);
  const auto ps_tasks = static_cast<uint32_t>(captured.declaration.layout.shards.size());
  try {
    return savedShard(checkpoint::writeShard(file_system, folder, ps_task, ps_tasks, parts),
                      captured);
  } catch (const Error& error) {
    // Who reads the chief's log may be far from this disk, and who looks after this disk from that
    // log.
    log::warning("event=save_failed folder={} reason=\"{}\"", folder.string(), error.message());
    throw Error(error.code(), fmt::format("ps/{}: {}", ps_task, error.message()));
  }
}

ps::RestoredShard roomFor(const checkpoint::CutHead& head, uint32_t ps_task,
                          const ps::ModelDeclaration& declaration, uint32_t workers) {
  ps::RestoredShard restored = emptyShard(declaration, ps_task);
  restored.position =
      ps::restoredPosition(declaration.replication, workers, head.worker_batches, head.global_step);
  restored.version = head.global_step;
  restored.clock = restoredClock(head.clocks, ps_task);
  return restored;
}

// Checkpoints hold no slots of the variables that the optimizer leaves alone. Their moving average,
// where it keeps those, is the value itself.
void completeRestored(ps::RestoredShard& restored, uint32_t ps_task,
                      const ps::ModelDeclaration& declaration) {
  for (uint32_t slot = 0; slot < restored.slots.size(); ++slot) {
    if (!ps::isMovingAverage(declaration.optimizer, slot)) continue;
    for (const ps::MovingRange& range : ps::movingRanges(declaration.layout, ps_task))
      std::copy(restored.values.as<float>() + range.begin, restored.values.as<float>() + range.end,
                restored.slots[slot].as<float>() + range.begin);
  }
}

ps::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                               uint32_t ps_task, const ps::ModelDeclaration& declaration,
                               uint32_t workers) {
  const checkpoint::Manifest manifest =
      checkpoint::underNames(checkpoint::readManifest(file_system, folder),
                             checkpoint::namesOf(declaration.layout.variables));
  const ps::ShardLayout& shard = declaration.layout.shards[ps_task];
  ps::RestoredShard restored =
      roomFor({manifest.global_step, manifest.worker_batches, manifest.clocks}, ps_task,
              declaration, workers);
  std::vector<checkpoint::WantedPart> wanted;
  for (const ps::Slice& slice : shard.slices) {
    const ps::VariableInfo& variable = declaration.layout.variables[slice.variable];
    const std::string& name = variable.name;
    wanted.push_back({name, slice.begin, slice.count, restored.values.as<float>() + slice.offset});
    for (uint32_t i = 0; i < ps::slotCount(declaration.optimizer, variable); ++i)
      wanted.push_back({name + "/" + ps::slotName(declaration.optimizer, i), slice.begin,
                        slice.count, restored.slots[i].as<float>() + slice.offset});
  }
  checkpoint::readParts(file_system, folder, manifest, wanted);
  completeRestored(restored, ps_task, declaration);
  return restored;
}

// ---- snapshots

checkpoint::KeptSnapshot saveSnapshot(checkpoint::SnapshotFolder& folder,
                                      const checkpoint::SnapshotName& name,
                                      const std::optional<checkpoint::SnapshotName>& keep,
                                      const CheckpointOptions& options,
                                      const ps::Shard::Captured& captured) {
  const ps::ModelDeclaration& declaration = captured.declaration;
  const std::vector<std::string> slots = slotNames(declaration);
  const std::vector<ps::Slice>& slices = declaration.layout.shards[options.ps_task].slices;
  DTF_CHECK(slots.size() == captured.capture->slots.size());
  checkpoint::Manifest manifest;
  std::vector<checkpoint::TensorPart> parts;
  for (size_t s = 0; s < slices.size(); ++s) {
    const ps::Slice& slice = slices[s];
    const Shape shape{static_cast<int64_t>(slice.count)};
    manifest.variables.push_back({sliceName(s), shape, slots});
    parts.push_back(
        {sliceName(s), shape, 0, slice.count, captured.capture->parameters->data() + slice.offset});
    for (size_t i = 0; i < slots.size(); ++i)
      parts.push_back({sliceName(s) + "/" + slots[i], shape, 0, slice.count,
                       captured.capture->slots[i].as<float>() + slice.offset});
  }
  refuseNonFinite(parts, options.ps_task);
  const ps::OptimizerClock::State& clock = captured.capture->clock;
  manifest.job = options.job;
  manifest.global_step = name.step;
  manifest.worker_batches = ps::batchesDone(declaration.replication, options.workers,
                                            captured.capture->position, name.step);
  manifest.clocks = {{clock.applies, clock.beta1_power, clock.beta2_power}};
  manifest.model_fingerprint = modelText(declaration, options.ps_task);
  manifest.created = wallTimeText();
  manifest.dtf_version = DTF_VERSION;
  const uint64_t bytes = folder.write(name, keep, std::move(manifest), parts);
  return {bytes, toSeconds(captured.capture->stall)};
}

ps::RestoredShard restoreSnapshot(const checkpoint::SnapshotFolder& folder,
                                  const checkpoint::SnapshotName& name,
                                  const CheckpointOptions& options,
                                  const ps::ModelDeclaration& declaration) {
  const checkpoint::Manifest manifest = folder.manifest(name);
  const std::string model = modelText(declaration, options.ps_task);
  if (manifest.model_fingerprint != model)
    throw Error(ErrorCode::kBadData, fmt::format("the snapshot of step {} is of the model {}, this "
                                                 "job's is {}",
                                                 name.step, manifest.model_fingerprint, model));
  ps::RestoredShard restored = emptyShard(declaration, options.ps_task);
  restored.origin = ps::EpochOrigin::kSnapshot;
  restored.position = ps::restoredPosition(declaration.replication, options.workers,
                                           manifest.worker_batches, manifest.global_step);
  restored.version = manifest.global_step;
  restored.clock = restoredClock(manifest.clocks, 0);
  const std::vector<std::string> slots = slotNames(declaration);
  const std::vector<ps::Slice>& slices = declaration.layout.shards[options.ps_task].slices;
  std::vector<checkpoint::WantedPart> wanted;
  for (size_t s = 0; s < slices.size(); ++s) {
    const ps::Slice& slice = slices[s];
    wanted.push_back({sliceName(s), 0, slice.count, restored.values.as<float>() + slice.offset});
    for (size_t i = 0; i < slots.size(); ++i)
      wanted.push_back({sliceName(s) + "/" + slots[i], 0, slice.count,
                        restored.slots[i].as<float>() + slice.offset});
  }
  folder.read(name, manifest, wanted);
  return restored;
}

}  // namespace dtf::psd
