#pragma once

// The bytes of the file that writeShard() would write, readable from any offset: a chief fetches
// them piece by piece (shard_transfer.h).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/shard_file.h"

namespace dtf::checkpoint {

// Owns: the file's header.
// Borrows: the data of the parts, which must not change or be freed while this lives.
// Threads: any number may read at the same time.
// Blocks: the constructor, while it computes the checksums, at the speed of memory.
class ShardImage {
 public:
  // Errors: as streamShard().
  ShardImage(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts);

  const ShardFile& file() const { return file_; }
  // Copies bytes [offset, offset + out.size()) of the file, which must lie in it.
  void read(uint64_t offset, std::span<char> out) const;

 private:
  struct Piece {
    uint64_t offset = 0;  // in the file
    const char* data = nullptr;
    uint64_t bytes = 0;
  };

  std::string header_;
  std::vector<Piece> pieces_;  // after the header, without gaps
  ShardFile file_;
};

}  // namespace dtf::checkpoint
