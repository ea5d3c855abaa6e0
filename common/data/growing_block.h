#pragma once

// A block of bytes that grows by appending.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/data/byte_block.h"
#include "common/data/scratch_file.h"

namespace dtf::data {

// Collects a ByteBlock whose size isn't known beforehand: in memory, and from `resident_max` bytes
// on in a scratch file, so that memory holds no more than about twice that.
// Owns: the appended bytes.
// Threads: thread-compatible.
// Errors: kCannotWrite where the disk has no room for it.
class GrowingBlock {
 public:
  explicit GrowingBlock(size_t resident_max = kResidentBytesMax) : resident_max_(resident_max) {}

  // Blocks: on the disk, beyond `resident_max` bytes.
  void append(const void* bytes, size_t count);
  size_t size() const { return size_; }

  // Returns all bytes, and leaves none here.
  ByteBlock finish();

 private:
  void flush();

  const size_t resident_max_;
  size_t size_ = 0;
  std::string held_;  // all bytes, or with a file only bytes not yet written to it
  std::optional<ScratchFile> file_;
};

}  // namespace dtf::data
