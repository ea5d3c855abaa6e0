#pragma once

// What one ps task writes of a checkpoint: its parts of the variables and their slots, as one
// safetensors file. CHECKPOINT.md gives the bytes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file_system.h"
#include "common/tensor/shape.h"

namespace dtf::checkpoint {

// Of a variable: its bytes can be counted in 64 bits.
inline constexpr uint64_t kElementsMax = uint64_t{1} << 60;

// Elements [begin, begin + count) of a variable ("softmax/weights") or of one of its slots
// ("softmax/weights/Adagrad"; a slot has its variable's shape).
// Borrows: `data`.
struct TensorPart {
  std::string name;
  Shape shape;  // of the whole variable
  uint64_t begin = 0;
  uint64_t count = 0;
  const float* data = nullptr;
};

// The same on disk.
struct StoredPart {
  std::string name;
  uint64_t begin = 0;     // first element
  uint64_t count = 0;     // elements
  uint64_t offset = 0;    // of its first byte, in the file
  uint64_t checksum = 0;  // XXH3-64 of its 4 * count bytes
  bool operator==(const StoredPart&) const = default;
};

struct ShardFile {
  std::string file;       // shardFileName(ps_task, ps_tasks)
  uint64_t bytes = 0;     // of the file
  uint64_t checksum = 0;  // XXH3-64 of the file
  std::vector<StoredPart> parts;
  std::string host{};  // a label: where it stays, see staying_shards.h
  bool operator==(const ShardFile&) const = default;
};

// "shard-0-of-2.safetensors"
std::string shardFileName(uint32_t ps_task, uint32_t ps_tasks);

// The tensor's name in the file: a whole variable has its own name and shape; a part is
// "name@begin:count" with shape [count].
std::string storedName(std::string_view name, uint64_t begin, uint64_t count, uint64_t elements);

// 1 to 512 of [A-Za-z0-9_.\-/]: what a variable may be called in a checkpoint.
bool isVariableName(std::string_view name);

// 1 to 128 of [A-Za-z0-9._\-], no dot in front: what a file or a folder of a checkpoint may be
// called by a manifest or another task. So it is never a path.
bool isPlainName(std::string_view name);

// Gives `take` the bytes of the file of ps `ps_task`, front to back, first its header whole, then
// the values where they lie in the caller's memory, at most kChecksumChunkBytes at a time.
// Errors: kBadConfig when a part's name or range can't be stored; those of `take`.
ShardFile streamShard(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts,
                      const std::function<void(const char* data, uint64_t bytes)>& take);

// Writes, fsyncs and closes folder/shardFileName(...), which must not exist yet. Streams from the
// caller's memory: no copy of the data is made, and the checksums are taken on the way.
// Blocks: on the disk; call it where that disturbs nobody. `parts` must not change meanwhile.
// Errors: kCannotWrite; the file then is worthless and stays for the chief to sweep, and a second
// try needs another folder. kBadConfig when a part's name or range can't be stored.
ShardFile writeShard(FileSystem& file_system, const std::filesystem::path& folder, uint32_t ps_task,
                     uint32_t ps_tasks, std::span<const TensorPart> parts);

}  // namespace dtf::checkpoint
