#pragma once

// The file that writeShard() would write, as bytes that can be read from any offset: for a chief
// that fetches them piece by piece (shard_transfer.h).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/shard_file.h"

namespace dtf::checkpoint {

// Owns: the file's header.
// Borrows: the data of the parts, which must neither change nor go while this lives.
// Threads: any number that read.
// Blocks: the constructor, while it takes the checksums: at the speed of memory.
class ShardImage {
 public:
  // Errors: those of streamShard().
  ShardImage(uint32_t ps_task, uint32_t ps_tasks, std::span<const TensorPart> parts);

  const ShardFile& file() const { return file_; }
  // Bytes [offset, offset + out.size()) of the file, which must lie in it.
  void read(uint64_t offset, std::span<char> out) const;

 private:
  struct Piece {
    uint64_t offset = 0;  // in the file
    const char* data = nullptr;
    uint64_t bytes = 0;
  };

  std::string header_;
  std::vector<Piece> pieces_;  // behind the header, without gaps
  ShardFile file_;
};

}  // namespace dtf::checkpoint
