#include "common/train/gathered_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/former_variables.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/safetensors.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"

namespace dtf::train {

namespace {

constexpr uint64_t kPieceElements = checkpoint::kPieceBytesMax / sizeof(float);

// Returns the largest size of the file of a ps's shard.
uint64_t fileBytesMax(const arena::ModelDeclaration& declaration, uint32_t ps_task) {
  uint64_t elements = 0;
  for (const arena::Slice& slice : declaration.layout.shards[ps_task].slices)
    elements += slice.count * (1 + optimizer::slotCount(declaration.optimizer));
  return elements * sizeof(float) + checkpoint::kSafetensorsHeaderBytesMax + sizeof(uint64_t);
}

// Checks the ps's reply, which becomes the name and size of a file on this disk.
void checkSaved(const checkpoint::ShardFile& file, const arena::ModelDeclaration& declaration,
                uint32_t ps_task, TaskId host) {
  const auto ps_tasks = static_cast<uint32_t>(declaration.layout.shards.size());
  const std::string name = checkpoint::shardFileName(ps_task, ps_tasks);
  if (file.file != name)
    throw Error(ErrorCode::kBadData, fmt::format("{} calls its shard '{}', which is '{}'",
                                                 host.name(), file.file, name));
  const uint64_t most = fileBytesMax(declaration, ps_task);
  if (file.bytes == 0 || file.bytes > most)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} reports {} bytes for its shard, which has at most {}", host.name(),
                            file.bytes, most));
}

void gatherOne(FileSystem& file_system, checkpoint::ShardTransfer& transfer,
               const std::filesystem::path& folder, uint32_t ps_task, TaskId host,
               const checkpoint::ShardFile& shard) {
  const auto file = file_system.create(folder / shard.file);
  DTF_FAILPOINT("checkpoint.after_shard_create");
  Checksum checksum;
  for (uint64_t at = 0; at < shard.bytes;) {
    const std::string piece = transfer.fetch(ps_task, at, shard.bytes);
    DTF_CHECK(!piece.empty() && piece.size() <= shard.bytes - at);
    DTF_FAILPOINT("checkpoint.in_shard_write");
    checksum.update(piece.data(), piece.size());
    file->write(piece.data(), piece.size());
    at += piece.size();
  }
  if (checksum.value() != shard.checksum)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the shard of {} came with the checksum {}, it says {}", host.name(),
                            hexOf(checksum.value()), hexOf(shard.checksum)));
  DTF_FAILPOINT("checkpoint.after_shard_write");
  file->sync();
  DTF_FAILPOINT("checkpoint.after_shard_sync");
  file->close();
  DTF_FAILPOINT("checkpoint.after_shard_close");
}

// Adds a part for each variable and slot of the ps's shard.
void wantShard(checkpoint::ShardTransfer& transfer, const arena::ModelDeclaration& declaration,
               uint32_t ps_task, std::vector<checkpoint::WantedPart>& wanted) {
  const auto want = [&](const std::string& name, const arena::Slice& slice, uint32_t arena) {
    const auto take = [&transfer, ps_task, arena, slice](uint64_t from,
                                                         std::span<const float> values) {
      DTF_CHECK(from >= slice.begin && from + values.size() <= slice.begin + slice.count);
      for (size_t at = 0; at < values.size(); at += kPieceElements)
        transfer.bring(ps_task, {arena, slice.offset + (from - slice.begin) + at},
                       values.subspan(at, std::min<size_t>(kPieceElements, values.size() - at)));
    };
    wanted.push_back({name, slice.begin, slice.count, nullptr, take});
  };
  for (const arena::Slice& slice : declaration.layout.shards[ps_task].slices) {
    const arena::VariableInfo& variable = declaration.layout.variables[slice.variable];
    want(variable.name, slice, 0);
    for (uint32_t i = 0; i < optimizer::slotCount(declaration.optimizer, variable); ++i)
      want(variable.name + "/" + optimizer::slotName(declaration.optimizer, i), slice, 1 + i);
  }
}

}  // namespace

std::vector<checkpoint::SavedShard> gatherShards(FileSystem& file_system,
                                                 checkpoint::ShardTransfer& transfer,
                                                 const std::filesystem::path& folder,
                                                 const CutPosition& position,
                                                 const arena::ModelDeclaration& declaration,
                                                 const ShardHosts& hosts) {
  std::vector<checkpoint::SavedShard> saved = transfer.stage(position);
  DTF_CHECK(saved.size() == declaration.layout.shards.size());
  for (uint32_t i = 0; i < saved.size(); ++i) {
    checkSaved(saved[i].file, declaration, i, hosts.of(i));
    gatherOne(file_system, transfer, folder, i, hosts.of(i), saved[i].file);
  }
  return saved;
}

void bringShards(FileSystem& file_system, checkpoint::ShardTransfer& transfer,
                 const std::filesystem::path& folder, const checkpoint::Manifest& manifest,
                 const arena::ModelDeclaration& declaration, checkpoint::StayingFiles* staying) {
  transfer.expect({manifest.global_step, manifest.worker_batches, manifest.clocks});
  std::vector<checkpoint::WantedPart> wanted;
  for (uint32_t i = 0; i < declaration.layout.shards.size(); ++i)
    wantShard(transfer, declaration, i, wanted);
  checkpoint::readParts(
      file_system, folder,
      checkpoint::underNames(manifest, checkpoint::namesOf(declaration.layout.variables)), wanted,
      staying);
}

}  // namespace dtf::train
