#include "common/host/shard_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/log.h"
#include "common/base/wall_time.h"
#include "common/checkpoint/former_variables.h"
#include "common/checkpoint/restore.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "common/replication/replication_rules.h"

namespace dtf::host {

namespace {

// Every ps has applied the same updates. So any clock is right for a job with another number of ps
// than the checkpoint, which has one for each ps.
optimizer::OptimizerClock::State restoredClock(const std::vector<checkpoint::ClockState>& clocks,
                                               uint32_t ps_task) {
  if (clocks.empty())
    throw Error(ErrorCode::kBadData, "the checkpoint's manifest has no optimizer clock");
  const checkpoint::ClockState& clock = clocks[std::min<size_t>(ps_task, clocks.size() - 1)];
  return {clock.applies, clock.beta1_power, clock.beta2_power};
}

// Training can't recover from such a checkpoint, and it would take the place of a good one.
void refuseNonFinite(const std::vector<checkpoint::TensorPart>& parts, TaskId host) {
  for (const checkpoint::TensorPart& part : parts) {
    const std::optional<uint64_t> at = optimizer::firstNonFinite({part.data, part.count});
    if (!at) continue;
    throw Error(ErrorCode::kTrainingFailed,
                fmt::format("'{}' on {} has {} at element {}: this checkpoint is not written, "
                            "the last one stays; a smaller learning_rate or gradient clipping may "
                            "help",
                            part.name, host.name(), part.data[*at], part.begin + *at));
  }
}

// Returns the name of a variable in a snapshot, which holds one shard: each slice is a variable.
std::string sliceName(size_t slice) {
  return fmt::format("slice-{}", slice);
}

std::vector<std::string> slotNames(const arena::ModelDeclaration& declaration) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < optimizer::slotCount(declaration.optimizer); ++i)
    names.push_back(optimizer::slotName(declaration.optimizer, i));
  return names;
}

// Identifies the model of a snapshot's shard, whichever task hosts it.
std::string modelText(const arena::ModelDeclaration& declaration, uint32_t ps_task) {
  return fmt::format("{} on ps/{}", hexOf(declaration.layout.fingerprint()), ps_task);
}

// Returns a shard with the values of one that was never saved. They remain where nothing is read,
// as in the padding.
shard::RestoredShard emptyShard(const arena::ModelDeclaration& declaration, uint32_t ps_task) {
  const uint64_t elements = declaration.layout.shards[ps_task].elements;
  shard::RestoredShard restored;
  restored.values = Buffer(elements * sizeof(float));
  std::fill_n(restored.values.as<float>(), elements, 0.0f);
  for (uint32_t i = 0; i < optimizer::slotCount(declaration.optimizer); ++i) {
    Buffer slot(elements * sizeof(float));
    const float padding = optimizer::isMovingAverage(declaration.optimizer, i)
                              ? 0.0f
                              : optimizer::initialSlotValue(declaration.optimizer, i);
    std::fill_n(slot.as<float>(), elements, padding);
    restored.slots.push_back(std::move(slot));
  }
  return restored;
}

}  // namespace

std::vector<checkpoint::TensorPart> savedParts(NamedShard shard,
                                               const shard::CapturedShard& captured) {
  const arena::ParameterLayout& layout = captured.declaration.layout;
  std::vector<checkpoint::TensorPart> parts;
  for (const arena::Slice& slice : layout.shards[shard.index].slices) {
    const arena::VariableInfo& variable = layout.variables[slice.variable];
    parts.push_back({variable.name, variable.shape, slice.begin, slice.count,
                     captured.capture->parameters->data() + slice.offset});
    for (uint32_t i = 0; i < optimizer::slotCount(captured.declaration.optimizer, variable); ++i)
      parts.push_back({variable.name + "/" + optimizer::slotName(captured.declaration.optimizer, i),
                       variable.shape, slice.begin, slice.count,
                       captured.capture->slots[i].as<float>() + slice.offset});
  }
  refuseNonFinite(parts, shard.host);
  return parts;
}

checkpoint::SavedShard savedShard(checkpoint::ShardFile file,
                                  const shard::CapturedShard& captured) {
  const optimizer::OptimizerClock::State& clock = captured.capture->clock;
  return {std::move(file),
          {clock.applies, clock.beta1_power, clock.beta2_power},
          toSeconds(captured.capture->stall)};
}

checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 NamedShard shard, const shard::CapturedShard& captured) {
  const std::vector<checkpoint::TensorPart> parts = savedParts(shard, captured);
  const auto ps_tasks = static_cast<uint32_t>(captured.declaration.layout.shards.size());
  try {
    return savedShard(checkpoint::writeShard(file_system, folder, shard.index, ps_tasks, parts),
                      captured);
  } catch (const Error& error) {
    // Both logs have the error: the chief's gets it through the exception, and the person in charge
    // of this disk may have access to this host alone.
    log::warning("event=save_failed folder={} reason=\"{}\"", folder.string(), error.message());
    throw Error(error.code(), fmt::format("{}: {}", shard.host.name(), error.message()));
  }
}

shard::RestoredShard roomFor(const checkpoint::CutHead& head, uint32_t ps_task,
                             const arena::ModelDeclaration& declaration, uint32_t workers) {
  shard::RestoredShard restored = emptyShard(declaration, ps_task);
  restored.position = replication::restoredPosition(declaration.replication, workers,
                                                    head.worker_batches, head.global_step);
  restored.step = head.global_step;
  restored.clock = restoredClock(head.clocks, ps_task);
  return restored;
}

// Checkpoints hold no slots of variables that the optimizer doesn't change. The moving average of
// such a variable is its value.
void completeRestored(shard::RestoredShard& restored, uint32_t ps_task,
                      const arena::ModelDeclaration& declaration) {
  for (uint32_t slot = 0; slot < restored.slots.size(); ++slot) {
    if (!optimizer::isMovingAverage(declaration.optimizer, slot)) continue;
    for (const optimizer::MovingRange& range : optimizer::movingRanges(declaration.layout, ps_task))
      std::copy(restored.values.as<float>() + range.begin, restored.values.as<float>() + range.end,
                restored.slots[slot].as<float>() + range.begin);
  }
}

shard::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                                  uint32_t ps_task, const arena::ModelDeclaration& declaration,
                                  uint32_t workers) {
  const checkpoint::Manifest manifest =
      checkpoint::underNames(checkpoint::readManifest(file_system, folder),
                             checkpoint::namesOf(declaration.layout.variables));
  const arena::ShardLayout& shard = declaration.layout.shards[ps_task];
  shard::RestoredShard restored =
      roomFor({manifest.global_step, manifest.worker_batches, manifest.clocks}, ps_task,
              declaration, workers);
  std::vector<checkpoint::WantedPart> wanted;
  for (const arena::Slice& slice : shard.slices) {
    const arena::VariableInfo& variable = declaration.layout.variables[slice.variable];
    const std::string& name = variable.name;
    wanted.push_back({name, slice.begin, slice.count, restored.values.as<float>() + slice.offset});
    for (uint32_t i = 0; i < optimizer::slotCount(declaration.optimizer, variable); ++i)
      wanted.push_back({name + "/" + optimizer::slotName(declaration.optimizer, i), slice.begin,
                        slice.count, restored.slots[i].as<float>() + slice.offset});
  }
  checkpoint::readParts(file_system, folder, manifest, wanted);
  completeRestored(restored, ps_task, declaration);
  return restored;
}

// ---- snapshots

checkpoint::KeptSnapshot saveSnapshot(checkpoint::SnapshotFolder& folder,
                                      const checkpoint::CutName& name,
                                      const std::optional<checkpoint::CutName>& keep,
                                      const CheckpointOptions& options,
                                      const shard::CapturedShard& captured) {
  const arena::ModelDeclaration& declaration = captured.declaration;
  const std::vector<std::string> slots = slotNames(declaration);
  const std::vector<arena::Slice>& slices = declaration.layout.shards[options.ps_task].slices;
  DTF_CHECK(slots.size() == captured.capture->slots.size());
  checkpoint::Manifest manifest;
  std::vector<checkpoint::TensorPart> parts;
  for (size_t s = 0; s < slices.size(); ++s) {
    const arena::Slice& slice = slices[s];
    const Shape shape{static_cast<int64_t>(slice.count)};
    manifest.variables.push_back({sliceName(s), shape, slots});
    parts.push_back(
        {sliceName(s), shape, 0, slice.count, captured.capture->parameters->data() + slice.offset});
    for (size_t i = 0; i < slots.size(); ++i)
      parts.push_back({sliceName(s) + "/" + slots[i], shape, 0, slice.count,
                       captured.capture->slots[i].as<float>() + slice.offset});
  }
  refuseNonFinite(parts, options.shard().host);
  const optimizer::OptimizerClock::State& clock = captured.capture->clock;
  manifest.job = options.job;
  manifest.global_step = name.step;
  manifest.worker_batches = replication::batchesDone(declaration.replication, options.workers,
                                                     captured.capture->position, name.step);
  manifest.clocks = {{clock.applies, clock.beta1_power, clock.beta2_power}};
  manifest.model_fingerprint = modelText(declaration, options.ps_task);
  manifest.created = wallTimeText();
  manifest.dtf_version = DTF_VERSION;
  const uint64_t bytes = folder.write(name, keep, std::move(manifest), parts);
  return {bytes, toSeconds(captured.capture->stall)};
}

shard::RestoredShard restoreSnapshot(const checkpoint::SnapshotFolder& folder,
                                     const checkpoint::CutName& name,
                                     const CheckpointOptions& options,
                                     const arena::ModelDeclaration& declaration) {
  const checkpoint::Manifest manifest = folder.manifest(name);
  const std::string model = modelText(declaration, options.ps_task);
  if (manifest.model_fingerprint != model)
    throw Error(ErrorCode::kBadData, fmt::format("the snapshot of step {} is of the model {}, this "
                                                 "job's is {}",
                                                 name.step, manifest.model_fingerprint, model));
  shard::RestoredShard restored = emptyShard(declaration, options.ps_task);
  restored.origin = checkpoint::EpochOrigin::kSnapshot;
  restored.position = replication::restoredPosition(declaration.replication, options.workers,
                                                    manifest.worker_batches, manifest.global_step);
  restored.step = manifest.global_step;
  restored.clock = restoredClock(manifest.clocks, 0);
  const std::vector<std::string> slots = slotNames(declaration);
  const std::vector<arena::Slice>& slices = declaration.layout.shards[options.ps_task].slices;
  std::vector<checkpoint::WantedPart> wanted;
  for (size_t s = 0; s < slices.size(); ++s) {
    const arena::Slice& slice = slices[s];
    wanted.push_back({sliceName(s), 0, slice.count, restored.values.as<float>() + slice.offset});
    for (size_t i = 0; i < slots.size(); ++i)
      wanted.push_back({sliceName(s) + "/" + slots[i], 0, slice.count,
                        restored.slots[i].as<float>() + slice.offset});
  }
  folder.read(name, manifest, wanted);
  return restored;
}

}  // namespace dtf::host
