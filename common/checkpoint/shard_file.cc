#include "common/checkpoint/shard_file.h"

#include <algorithm>
#include <memory>
#include <set>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/safetensors.h"

namespace dtf::checkpoint {

namespace {

void checkPart(const TensorPart& part) {
  const auto elements = static_cast<uint64_t>(part.shape.elements());
  if (!isVariableName(part.name))
    throw Error(ErrorCode::kBadConfig, "a checkpoint can't hold a variable called '" +
                                           part.name.substr(0, 200) +
                                           "': use letters, digits and _ . - /");
  if (elements > kElementsMax || part.begin > elements || part.count > elements - part.begin)
    throw Error(ErrorCode::kBadConfig, "elements " + std::to_string(part.begin) + " to " +
                                           std::to_string(part.begin + part.count) + " of " +
                                           part.name + " are outside its shape " +
                                           part.shape.str());
}

struct Plan {
  std::vector<const TensorPart*> parts;  // those with elements
  std::vector<SafetensorsEntry> entries;
};

Plan planFile(std::span<const TensorPart> parts) {
  Plan plan;
  std::set<std::string> names;
  uint64_t at = 0;
  for (const TensorPart& part : parts) {
    checkPart(part);
    if (part.count == 0) continue;
    DTF_CHECK(part.data != nullptr);
    SafetensorsEntry entry;
    const auto elements = static_cast<uint64_t>(part.shape.elements());
    entry.name = storedName(part.name, part.begin, part.count, elements);
    if (!names.insert(entry.name).second)
      throw Error(ErrorCode::kBadConfig, entry.name + " occurs twice in one shard");
    entry.dtype = "F32";
    if (part.count == elements)
      entry.shape.assign(part.shape.dims().begin(), part.shape.dims().end());
    else
      entry.shape = {part.count};
    entry.begin = at;
    entry.end = at += part.count * sizeof(float);
    plan.parts.push_back(&part);
    plan.entries.push_back(std::move(entry));
  }
  DTF_CHECK(plan.parts.size() == plan.entries.size());
  return plan;
}

}  // namespace

std::string shardFileName(uint32_t ps_task, uint32_t ps_tasks) {
  DTF_CHECK(ps_task < ps_tasks);
  return "shard-" + std::to_string(ps_task) + "-of-" + std::to_string(ps_tasks) + ".safetensors";
}

std::string storedName(std::string_view name, uint64_t begin, uint64_t count, uint64_t elements) {
  DTF_CHECK(begin <= elements && count <= elements - begin);
  if (count == elements) return std::string(name);
  return std::string(name) + "@" + std::to_string(begin) + ":" + std::to_string(count);
}

bool isVariableName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";
  return !name.empty() && name.size() <= 512 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool isPlainName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 128 && name[0] != '.' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

ShardFile streamShard(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts,
                      const std::function<void(const char* data, uint64_t bytes)>& take) {
  const Plan plan = planFile(parts);
  const std::string header = encodeSafetensorsHeader(
      plan.entries, {{"dtf_checkpoint", "1"},
                     {"shard", std::to_string(ps_task) + " of " + std::to_string(ps_tasks)}});
  ShardFile shard;
  shard.file = shardFileName(ps_task, ps_tasks);
  Checksum of_file;
  Checksum of_part;
  of_file.update(header.data(), header.size());
  take(header.data(), header.size());
  shard.bytes = header.size();
  for (const TensorPart* part : plan.parts) {
    of_part.reset();
    const auto* at = reinterpret_cast<const char*>(part->data);
    const uint64_t offset = shard.bytes;
    for (uint64_t left = part->count * sizeof(float); left > 0;) {
      const uint64_t bytes = std::min(left, kChecksumChunkBytes);
      of_part.update(at, bytes);
      of_file.update(at, bytes);
      take(at, bytes);
      at += bytes;
      left -= bytes;
      shard.bytes += bytes;
    }
    shard.parts.push_back({part->name, part->begin, part->count, offset, of_part.value()});
  }
  DTF_CHECK(plan.entries.empty() || shard.bytes == header.size() + plan.entries.back().end);
  shard.checksum = of_file.value();
  return shard;
}

ShardFile writeShard(FileSystem& file_system, const std::filesystem::path& folder, uint32_t ps_task,
                     uint32_t ps_tasks, std::span<const TensorPart> parts) {
  std::unique_ptr<WritableFile> file;
  const ShardFile shard =
      streamShard(ps_task, ps_tasks, parts, [&](const char* data, uint64_t bytes) {
        if (!file) {
          file = file_system.create(folder / shardFileName(ps_task, ps_tasks));
          DTF_FAILPOINT("checkpoint.after_shard_create");
        } else {
          DTF_FAILPOINT("checkpoint.in_shard_write");
        }
        file->write(data, bytes);
      });
  DTF_FAILPOINT("checkpoint.after_shard_write");
  file->sync();
  DTF_FAILPOINT("checkpoint.after_shard_sync");
  file->close();
  DTF_FAILPOINT("checkpoint.after_shard_close");
  return shard;
}

}  // namespace dtf::checkpoint
