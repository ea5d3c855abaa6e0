#pragma once

// A file's bytes in order, unpacked if it is gzip. For the readers of this library.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace dtf::data {

// Returns the bytes that all sources of this process have read so far, unpacked. Thread-safe.
uint64_t bytesRead();

// Owns: the file and the state of the unpacking.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: kBadData naming the file, from every call: it can't be opened or read, or its gzip data
// is damaged; kPermission from the constructor.
class ByteSource {
 public:
  // Opens a plain or gzip file, told apart by the first two bytes: no IDX file begins like a gzip
  // one, nor does one of CIFAR, whose first labels are below 20.
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();

  // Reads up to `bytes` bytes into `to`; fewer only at the end of the data. For gzip, the CRC is
  // checked at the end of the data; several members in one file are one stream, as in gunzip; bytes
  // 0 after a member are padding (tapes, and tools that write in blocks).
  size_t read(uint8_t* to, size_t bytes);

  bool packed() const;
  // Returns the most bytes that this file can hold when unpacked: its size, for gzip times
  // deflate's best ratio.
  uint64_t bytesMax() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dtf::data
