#pragma once

// The file of one ps task in a checkpoint: its parts of the variables and their slots, in
// safetensors format. CHECKPOINT.md gives the bytes.

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

// Most elements of a variable: the number of its bytes fits into 64 bits.
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

// A TensorPart on disk.
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
  std::string host{};  // of the ps that keeps the file, as a label: see staying_shards.h
  bool operator==(const ShardFile&) const = default;
};

// "shard-0-of-2.safetensors"
std::string shardFileName(uint32_t ps_task, uint32_t ps_tasks);

// Returns the tensor's name in the file: a whole variable has its own name and shape; a part is
// "name@begin:count" with shape [count].
std::string storedName(std::string_view name, uint64_t begin, uint64_t count, uint64_t elements);

// Whether a variable of a checkpoint may have this name: 1 to 512 of [A-Za-z0-9_.\-/].
bool isVariableName(std::string_view name);

// Whether a manifest or another task may give a file or a folder this name: 1 to 128 of
// [A-Za-z0-9._\-], not beginning with a dot. So it is never a path.
bool isPlainName(std::string_view name);

// Passes the bytes of the file of ps `ps_task` to `take`, front to back: first the whole header,
// then the values, straight from the caller's memory, at most kChecksumChunkBytes at a time.
// Errors: kBadConfig when a part's name or range can't be stored; kCannotWrite when the header is
// too large; the errors of `take`.
ShardFile streamShard(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts,
                      const std::function<void(const char* data, uint64_t bytes)>& take);

// Writes, fsyncs and closes folder/shardFileName(...), which must not exist yet. Streams from the
// caller's memory without a copy, and computes the checksums on the way. `parts` must not change
// meanwhile.
// Blocks: on the disk, so never call it on an I/O loop.
// Errors: kCannotWrite; the chief sweeps the partial file later, and a second try needs another
// folder. kBadConfig when a part's name or range can't be stored.
ShardFile writeShard(FileSystem& file_system, const std::filesystem::path& folder, uint32_t ps_task,
                     uint32_t ps_tasks, std::span<const TensorPart> parts);

}  // namespace dtf::checkpoint
