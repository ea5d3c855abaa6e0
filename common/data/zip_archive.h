#pragma once

// The files in a zip archive, as NumPy writes them into .npz: stored or deflated, also with the
// sizes of zip64 (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT). No encryption, no
// archives in parts.
//
// Archives are untrusted: offsets and sizes are compared with the file's, and unpacked data with
// their checksum.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/data/part.h"

namespace dtf::data {

// Owns: the open file and its directory.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: kBadData naming the archive: missing, no zip archive, damaged, a file in it that is
// missing, too large, or packed otherwise; kPermission.
class ZipArchive {
 public:
  explicit ZipArchive(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  uint64_t bytes() const { return file_bytes_; }  // of the archive
  // Reads a whole file of the archive.
  ByteBlock read(std::string_view name, uint64_t bytes_max) const;

  // The first bytes of a file of the archive, without a check of its checksum, and its size.
  struct Beginning {
    std::vector<uint8_t> bytes;
    uint64_t whole_bytes = 0;
  };
  Beginning readBeginning(std::string_view name, size_t bytes) const;

 private:
  struct Entry {
    std::string name;
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t packed_bytes = 0, bytes = 0, offset = 0;
  };
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void failNoArchive() const;
  [[noreturn]] void failDamaged(const Entry& entry, const std::string& why) const;
  void readAt(uint64_t offset, std::span<uint8_t> to) const;
  std::string readAt(uint64_t offset, size_t bytes) const;
  const Entry& find(std::string_view name) const;
  void unpack(const Entry& entry, std::span<uint8_t> to, bool whole) const;
  bool inflate(uint64_t begin, uint64_t packed_bytes, std::span<uint8_t> to, bool whole) const;
  void readDirectory();
  Entry readEntry(std::string_view record, size_t& at) const;

  const std::filesystem::path path_;
  Fd fd_;
  uint64_t file_bytes_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace dtf::data
