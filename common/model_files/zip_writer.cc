#include "common/model_files/zip_writer.h"

#include <zlib.h>

#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::model_files {

namespace {

constexpr uint64_t kArchiveBytesMax = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kArchiveFilesMax = std::numeric_limits<uint16_t>::max() - 1;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kDirectorySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint16_t kVersionNeeded = 20;
constexpr uint16_t kNamesAreUtf8 = 1 << 11;
constexpr uint16_t kStored = 0;
constexpr uint16_t kNoDate = 1 << 5 | 1;  // 1 January 1980: the same model gives the same bytes

void append16(std::string& to, uint64_t value) {
  DTF_CHECK(value <= std::numeric_limits<uint16_t>::max());
  for (int shift = 0; shift < 16; shift += 8) to += static_cast<char>(value >> shift & 0xFF);
}

void append32(std::string& to, uint64_t value) {
  DTF_CHECK(value <= std::numeric_limits<uint32_t>::max());
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(value >> shift & 0xFF);
}

uint64_t crcOf(std::string_view head, std::string_view body) {
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
  return crc32_z(crc, reinterpret_cast<const Bytef*>(body.data()), body.size());
}

// The fields that a file's own header and the directory have in common.
std::string fieldsOf(std::string_view name, uint64_t crc, uint64_t size) {
  std::string fields;
  append16(fields, kVersionNeeded);
  append16(fields, kNamesAreUtf8);
  append16(fields, kStored);
  append16(fields, 0);  // the time
  append16(fields, kNoDate);
  append32(fields, crc);
  append32(fields, size);  // stored
  append32(fields, size);  // unpacked
  append16(fields, name.size());
  append16(fields, 0);  // no extra field
  return fields;
}

[[noreturn]] void failTooLarge() {
  throw Error(ErrorCode::kCannotWrite,
              "an .npz file holds at most 4 GiB: export to .safetensors, which has no such limit");
}

}  // namespace

void ZipWriter::add(std::string_view name, std::string_view head, std::string_view body) {
  DTF_CHECK(!name.empty() && name.size() <= std::numeric_limits<uint16_t>::max());
  const uint64_t size = uint64_t{head.size()} + body.size();
  constexpr uint64_t kHeadersMax = 128;  // the headers of one file, without its name
  if (bytes_.size() + directory_.size() + size + 2 * name.size() + 2 * kHeadersMax >
          kArchiveBytesMax ||
      files_ == kArchiveFilesMax)
    failTooLarge();
  const std::string fields = fieldsOf(name, crcOf(head, body), size);
  const uint64_t at = bytes_.size();
  append32(bytes_, kLocalSignature);
  bytes_.append(fields).append(name).append(head).append(body);
  append32(directory_, kDirectorySignature);
  append16(directory_, kVersionNeeded);  // made by
  directory_ += fields;
  append16(directory_, 0);  // no comment
  append16(directory_, 0);  // the first disk
  append16(directory_, 0);  // attributes
  append32(directory_, 0);
  append32(directory_, at);
  directory_ += name;
  ++files_;
}

std::string ZipWriter::finish() {
  const uint64_t at = bytes_.size();
  bytes_ += directory_;
  append32(bytes_, kEndSignature);
  append16(bytes_, 0);  // this disk
  append16(bytes_, 0);  // the directory's disk
  append16(bytes_, files_);
  append16(bytes_, files_);
  append32(bytes_, directory_.size());
  append32(bytes_, at);
  append16(bytes_, 0);  // no comment
  return std::move(bytes_);
}

}  // namespace dtf::model_files
