#pragma once

// Bytes that come one after another until nobody has more.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/data/byte_block.h"
#include "common/data/scratch_file.h"

namespace dtf::data {

// Collects a ByteBlock whose size isn't known beforehand: in memory, and from `resident_max` bytes
// on in a scratch file, so that memory holds no more than about twice that.
// Owns: what was appended.
// Threads: thread-compatible.
// Errors: kCannotWrite where the disk has no room for it.
class GrowingBlock {
 public:
  explicit GrowingBlock(size_t resident_max = kResidentBytesMax) : resident_max_(resident_max) {}

  // Blocks: on the disk, once what came is too much for memory.
  void append(const void* bytes, size_t count);
  size_t size() const { return size_; }

  // All of it; nothing is left here.
  ByteBlock finish();

 private:
  void flush();

  const size_t resident_max_;
  size_t size_ = 0;
  std::string held_;  // all, or once there is a file what isn't written to it yet
  std::optional<ScratchFile> file_;
};

}  // namespace dtf::data
