#pragma once

// The bytes of a data set: in memory if they are few, else in a mapped file, so that a data set
// larger than memory can be read the same way. The kernel's page cache keeps the bytes read last,
// shares them between the tasks of a host, and frees that memory when it is needed.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "common/base/check.h"

namespace dtf::data {

class ScratchFile;

// Larger blocks are on the disk.
inline constexpr size_t kResidentBytesMax = size_t{256} << 20;

// Bytes that are not zeroed before something writes them: a data set is large and filled once.
// Owns: the memory, or the mapping.
// Threads: thread-compatible.
// Blocks: an access to bytes on the disk reads them. A byte that can't be read, or is gone because
// the file became shorter, ends the process by SIGBUS.
class ByteBlock {
 public:
  ByteBlock() = default;

  // Allocates memory for up to `resident_max` bytes, else a file without a name in $TMPDIR, or
  // /var/tmp, which disappears with this object or its process.
  // Errors: kCannotWrite if there is no room.
  explicit ByteBlock(size_t bytes, size_t resident_max = kResidentBytesMax);

  // Maps the first `bytes`, more than 0, of a file that was written.
  // Errors: kBadData when they can't be mapped.
  ByteBlock(const ScratchFile& file, size_t bytes);

  // Maps bytes of a file, read-only.
  // Errors: kBadData when the file doesn't hold them any more, or can't be mapped; kPermission.
  static ByteBlock ofFile(const std::filesystem::path& path, uint64_t begin, size_t bytes);

  uint8_t* data() {
    DTF_CHECK(!read_only_);
    return data_.get();
  }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  bool onDisk() const { return data_.get_deleter().mapping != nullptr; }

  // Starts reading bytes of a block onDisk() that will be accessed soon.
  void willNeed(size_t begin, size_t bytes) const;

  // Hides the bytes beyond, without freeing their memory.
  void shrinkTo(size_t bytes) {
    DTF_CHECK(bytes <= bytes_);
    bytes_ = bytes;
  }

 private:
  // Value-initialised by the pointer that has it.
  struct Release {
    void* mapping;  // nullptr: the bytes are from new
    size_t mapped_bytes;
    void operator()(uint8_t* bytes) const;
  };
  void map(int fd, uint64_t begin, size_t bytes, const std::filesystem::path& path);

  std::unique_ptr<uint8_t[], Release> data_;
  size_t bytes_ = 0;
  bool read_only_ = false;
};

}  // namespace dtf::data
