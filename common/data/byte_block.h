#pragma once

// The bytes of a data set: a few in memory, many in a file that is mapped into it, so that what is
// larger than memory can be read like what is not. The kernel keeps in its page cache what was read
// last, shared by the tasks of a host, and gives that memory back when it is wanted elsewhere.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "common/base/check.h"

namespace dtf::data {

class ScratchFile;

// More bytes than this are on the disk.
inline constexpr size_t kResidentBytesMax = size_t{256} << 20;

// Bytes that are not zeroed before something writes them: a data set is large and filled once.
// Owns: the memory, or the mapping.
// Threads: thread-compatible.
// Blocks: bytes on the disk are read when they are looked at. One that the disk can't give, or that
// is gone because its file became shorter, ends the process by SIGBUS.
class ByteBlock {
 public:
  ByteBlock() = default;

  // In memory up to `resident_max` bytes, else in a file without a name in $TMPDIR, or /var/tmp,
  // which is gone with this object or its process.
  // Errors: kCannotWrite where there is no room for it.
  explicit ByteBlock(size_t bytes, size_t resident_max = kResidentBytesMax);

  // The first `bytes` of what was written to it, more than 0.
  // Errors: kBadData when they can't be mapped.
  ByteBlock(const ScratchFile& file, size_t bytes);

  // The bytes of a file where they are, to be read alone.
  // Errors: kBadData when the file doesn't hold them any more, or can't be mapped; kPermission.
  static ByteBlock ofFile(const std::filesystem::path& path, uint64_t begin, size_t bytes);

  uint8_t* data() {
    DTF_CHECK(!read_only_);
    return data_.get();
  }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  bool onDisk() const { return data_.get_deleter().mapping != nullptr; }

  // Of a block onDisk(): what will be read soon, so that the disk brings it meanwhile.
  void willNeed(size_t begin, size_t bytes) const;

  // What is beyond stays taken, and is not seen any more.
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
