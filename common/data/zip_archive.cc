#include "common/data/zip_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/file_kind.h"
#include "common/yaml/key_table.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

namespace {

constexpr size_t kEndBytes = 22;            // of the end of the central directory
constexpr size_t kCommentBytesMax = 65535;  // after it
constexpr size_t kCentralBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr size_t kDirectoryBytesMax = size_t{16} << 20;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the number is in the zip64 field
constexpr uint64_t kBestRatio = 1032;   // of deflate
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

// A little-endian number of `bytes` bytes.
uint64_t numberAt(std::string_view text, size_t at, size_t bytes) {
  DTF_CHECK(at + bytes <= text.size() && bytes <= 8);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value |= uint64_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
  return value;
}

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

// Packed data are read in pieces of this size.
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path)
    : path_(path), fd_(::open(yaml::placeOfData(path).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (!fd_.valid())
    throw Error(errno == EACCES ? ErrorCode::kPermission : ErrorCode::kBadData,
                path.string() + ": cannot open it: " + errnoText(errno));
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) fail("cannot read it: " + errnoText(errno));
  if (!S_ISREG(info.st_mode)) fail("not a regular file");
  file_bytes_ = static_cast<uint64_t>(info.st_size);
  readDirectory();
}

void ZipArchive::fail(const std::string& why) const {
  throw Error(ErrorCode::kBadData, printable(path_.string() + ": " + why));
}

void ZipArchive::readAt(uint64_t offset, std::span<uint8_t> to) const {
  if (offset > file_bytes_ || to.size() > file_bytes_ - offset)
    fail("damaged zip archive: a part of it would lie beyond its end");
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_.get(), to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read it: " + errnoText(errno));
    if (n == 0) fail("the file became shorter while it was read");
    offset += static_cast<uint64_t>(n);
    to = to.subspan(static_cast<size_t>(n));
  }
}

std::string ZipArchive::readAt(uint64_t offset, size_t bytes) const {
  // Checks before it allocates.
  if (offset > file_bytes_ || bytes > file_bytes_ - offset)
    fail("damaged zip archive: a part of it would lie beyond its end");
  std::string text(bytes, '\0');
  readAt(offset, {reinterpret_cast<uint8_t*>(text.data()), bytes});
  return text;
}

void ZipArchive::failNoArchive() const {
  std::array<uint8_t, kKindBytes> first{};
  const size_t held = std::min<uint64_t>(file_bytes_, first.size());
  if (held == 0) fail("the file is empty");
  readAt(0, std::span(first).first(held));
  if (first[0] == 'P' && first[1] == 'K') fail("truncated: the zip archive lacks its directory");
  fail(fmt::format("this looks like {}; expected a zip archive (.npz is one)",
                   fileKind(std::span(first).first(held))));
}

void ZipArchive::readDirectory() {
  const auto tail_bytes =
      static_cast<size_t>(std::min<uint64_t>(file_bytes_, kEndBytes + kCommentBytesMax));
  const std::string tail = readAt(file_bytes_ - tail_bytes, tail_bytes);
  const size_t end = tail.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string::npos || tail.size() - end < kEndBytes) failNoArchive();
  const uint64_t count = numberAt(tail, end + 10, 2);
  const uint64_t bytes = numberAt(tail, end + 12, 4);
  const uint64_t offset = numberAt(tail, end + 16, 4);
  if (count == 0xFFFF || offset == kIn64 || bytes > kDirectoryBytesMax)
    fail("the archive has too many files, or its directory lies beyond 4 GiB");
  const std::string directory = readAt(offset, static_cast<size_t>(bytes));
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) entries_.push_back(readEntry(directory, at));
  // Files that share bytes would unpack to more than the archive's size can.
  uint64_t held = 0;
  for (const Entry& entry : entries_)
    if (__builtin_add_overflow(held, entry.packed_bytes, &held) ||
        __builtin_add_overflow(held, uint64_t{kLocalBytes}, &held) || held > file_bytes_)
      fail("damaged zip archive: files in it overlap");
}

ZipArchive::Entry ZipArchive::readEntry(std::string_view directory, size_t& at) const {
  if (directory.size() - at < kCentralBytes ||
      directory.substr(at, 4) != std::string_view("PK\x01\x02", 4))
    fail("damaged zip archive: its directory can't be read");
  Entry entry;
  entry.method = static_cast<uint16_t>(numberAt(directory, at + 10, 2));
  entry.crc = static_cast<uint32_t>(numberAt(directory, at + 16, 4));
  entry.packed_bytes = numberAt(directory, at + 20, 4);
  entry.bytes = numberAt(directory, at + 24, 4);
  entry.offset = numberAt(directory, at + 42, 4);
  const size_t name_bytes = numberAt(directory, at + 28, 2);
  const size_t extra_bytes = numberAt(directory, at + 30, 2);
  const size_t comment_bytes = numberAt(directory, at + 32, 2);
  const bool encrypted = (numberAt(directory, at + 8, 2) & 1) != 0;
  at += kCentralBytes;
  if (directory.size() - at < name_bytes + extra_bytes + comment_bytes)
    fail("damaged zip archive: its directory is cut off");
  entry.name = std::string(directory.substr(at, name_bytes));
  if (encrypted) fail(fmt::format("'{}' in it is encrypted", entry.name));
  std::string_view extra = directory.substr(at + name_bytes, extra_bytes);
  at += name_bytes + extra_bytes + comment_bytes;
  while (extra.size() >= 4) {
    const uint64_t kind = numberAt(extra, 0, 2);
    const auto held = static_cast<size_t>(numberAt(extra, 2, 2));
    if (extra.size() - 4 < held) fail("damaged zip archive: an extra field is cut off");
    std::string_view field = extra.substr(4, held);
    extra.remove_prefix(4 + held);
    if (kind != 1) continue;
    for (uint64_t* number : {&entry.bytes, &entry.packed_bytes, &entry.offset}) {
      if (*number != kIn64) continue;
      if (field.size() < 8) fail("damaged zip archive: a zip64 field is cut off");
      *number = numberAt(field, 0, 8);
      field.remove_prefix(8);
    }
  }
  return entry;
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

const ZipArchive::Entry& ZipArchive::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [name](const Entry& entry) { return entry.name == name; });
  if (found == entries_.end()) {
    const std::vector<std::string> all = names();
    const std::vector<std::string_view> words(all.begin(), all.end());
    // Names of arrays are short: 'y' is as near to 'x' as a misspelling.
    constexpr size_t kListedMax = 20;
    fail(fmt::format(
        "there is no '{}' in the archive{}", name,
        words.size() > kListedMax ? yaml::suggestion(name, words) : ": it has " + join(all, ", ")));
  }
  if (found->method != kStored && found->method != kDeflated)
    fail(fmt::format("'{}' is packed by method {}; stored and deflated files are read", name,
                     found->method));
  const uint64_t most =
      found->method == kStored ? found->packed_bytes : found->packed_bytes * kBestRatio;
  if (found->packed_bytes > file_bytes_ || found->bytes > most)
    failDamaged(*found, "its sizes lie");
  return *found;
}

void ZipArchive::failDamaged(const Entry& entry, const std::string& why) const {
  fail(fmt::format("'{}' in the archive is damaged{}{}", entry.name, why.empty() ? "" : ": ", why));
}

// Fills `to` with the first bytes of a file; with all of them if `whole`.
void ZipArchive::unpack(const Entry& entry, std::span<uint8_t> to, bool whole) const {
  DTF_CHECK(to.size() <= entry.bytes && (!whole || to.size() == entry.bytes));
  const std::string local = readAt(entry.offset, kLocalBytes);
  if (local.substr(0, 4) != std::string_view("PK\x03\x04", 4)) failDamaged(entry, "it isn't there");
  const uint64_t begin =
      entry.offset + kLocalBytes + numberAt(local, 26, 2) + numberAt(local, 28, 2);
  if (entry.method == kDeflated) {
    if (!inflate(begin, entry.packed_bytes, to, whole)) failDamaged(entry, "");
    return;
  }
  if (entry.packed_bytes != entry.bytes) failDamaged(entry, "its sizes differ");
  readAt(begin, to);
}

// Returns false if the data are damaged, or of another size.
bool ZipArchive::inflate(uint64_t begin, uint64_t packed_bytes, std::span<uint8_t> to,
                         bool whole) const {
  z_stream stream{};
  constexpr int kRaw = -15;
  if (inflateInit2(&stream, kRaw) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, InflateEnd> end(&stream);
  constexpr uint64_t kRoomMax = uint64_t{1} << 30;  // zlib counts in 32 bits
  std::string piece;
  uint64_t read = 0, written = 0;
  uint8_t none = 0;
  for (;;) {
    if (!whole && written == to.size()) return true;
    if (stream.avail_in == 0 && read < packed_bytes) {
      piece = readAt(begin + read, std::min<uint64_t>(kPieceBytes, packed_bytes - read));
      stream.next_in = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_in = static_cast<uInt>(piece.size());
      read += piece.size();
    }
    const auto room = static_cast<uInt>(std::min<uint64_t>(kRoomMax, to.size() - written));
    stream.next_out = room > 0 ? to.data() + written : &none;
    stream.avail_out = room;
    const uInt held = stream.avail_in;
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    written += room - stream.avail_out;
    if (status == Z_STREAM_END) return written == to.size();
    const bool moved = held != stream.avail_in || room != stream.avail_out;
    if (status != Z_OK || !moved) return false;
  }
}

ByteBlock ZipArchive::read(std::string_view name, uint64_t bytes_max) const {
  const Entry& entry = find(name);
  if (entry.bytes > bytes_max)
    fail(fmt::format("'{}' has {} bytes, at most {} are read", name, entry.bytes, bytes_max));
  ByteBlock bytes(static_cast<size_t>(entry.bytes));
  unpack(entry, {bytes.data(), bytes.size()}, true);
  if (crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()) != entry.crc)
    failDamaged(entry, "its checksum is another");
  return bytes;
}

ZipArchive::Beginning ZipArchive::readBeginning(std::string_view name, size_t bytes) const {
  const Entry& entry = find(name);
  Beginning beginning;
  beginning.whole_bytes = entry.bytes;
  beginning.bytes.resize(std::min<uint64_t>(bytes, entry.bytes));
  unpack(entry, beginning.bytes, false);
  return beginning;
}

}  // namespace dtf::data
