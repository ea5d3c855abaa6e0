#include "common/data/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/base/check.h"

namespace dtf::data {

namespace {

// Value type.
struct Magic {
  std::string_view bytes;
  std::string_view kind;
  size_t at = 0;
  bool may_begin_text = false;  // a kind only if the other bytes are no text
};

constexpr std::string_view kUtf16 = "text in UTF-16 (save it as UTF-8)";
constexpr std::string_view kUtf32 = "text in UTF-32 (save it as UTF-8)";

constexpr Magic kMagics[] = {
    // Images
    {"\x89PNG", "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"WEBPVP8", "a WebP image", 8},
    {"GIF87a", "a GIF image"},
    {"GIF89a", "a GIF image"},
    {"BM", "a BMP image", 0, true},
    {{"II*\0", 4}, "a TIFF image"},
    {{"MM\0*", 4}, "a TIFF image"},
    {"ftypavif", "an AVIF image", 4},
    {"ftypheic", "a HEIC image", 4},
    {"ftypmif1", "a HEIC image", 4},
    {{"\0\0\0\x0cJXL ", 8}, "a JPEG XL image"},
    {{"\0\0\0\x0cjP  ", 8}, "a JPEG 2000 image"},
    {{"\0\0\1\0", 4}, "an ICO image"},
    {"8BPS", "a Photoshop image", 0, true},
    // Arrays and tables
    {"\x93NUMPY", "a NumPy array (.npy)"},
    {"\x89HDF", "an HDF5 file"},
    {"CDF\x01", "a NetCDF file"},
    {"CDF\x02", "a NetCDF file"},
    {"MATLAB 5.0 MAT-file", "a MATLAB file"},
    {"PAR1", "a Parquet file", 0, true},
    {"ARROW1", "an Arrow file", 0, true},
    {"\xff\xff\xff\xff", "an Arrow stream"},
    {"Obj\x01", "an Avro file"},
    {"ORC\x0a", "an ORC file", 0, true},
    {"SQLite format 3", "an SQLite database"},
    {"\xd0\xcf\x11\xe0", "an old Excel or Word file"},
    {"\x80\x02", "a pickle of Python"},
    {"\x80\x03", "a pickle of Python"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    // Archives
    {"PK\x03\x04", "a zip archive (.npz is one, and .xlsx and .pt)"},
    {"\x1f\x8b", "a file packed by gzip"},
    {"BZh91AY&SY", "a file packed by bzip2"},
    {"\xfd"
     "7zXZ",
     "a file packed by xz"},
    {"\x28\xb5\x2f\xfd", "a file packed by zstd"},
    {"\x04\x22\x4d\x18", "a file packed by lz4"},
    {"7z\xbc\xaf", "a 7z archive"},
    {"Rar!\x1a", "a RAR archive"},
    {"ustar", "a tar archive", 257},
    // Texts
    {{"\xff\xfe\0\0", 4}, kUtf32},
    {{"\0\0\xfe\xff", 4}, kUtf32},
    {"\xff\xfe", kUtf16},
    {"\xfe\xff", kUtf16},
    {"%PDF-", "a PDF document"},
    {"version https://git-lfs", "a pointer of Git LFS (git lfs pull fetches the file)"},
};

// The element types of IDX (http://yann.lecun.com/exdb/mnist/), by the third byte.
std::string_view idxElements(uint8_t type) {
  switch (type) {
    case 0x08:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return "";
  }
}

constexpr size_t kTextBytes = 32;  // that decide, and are shown

bool isText(std::string_view text) {
  text = text.substr(0, kTextBytes);
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0x7F);
  });
}

// Whether it is UTF-16 without a byte order mark: ASCII characters, with a byte 0 beside each.
bool isUtf16(std::string_view text) {
  constexpr size_t kLeast = 8;
  text = text.substr(0, kTextBytes);
  if (text.size() < kLeast) return false;
  for (const size_t zero : {size_t{0}, size_t{1}}) {
    bool all = true;
    for (size_t i = 0; i + 1 < text.size() && all; i += 2)
      all = text[i + zero] == 0 && isText(text.substr(i + 1 - zero, 1));
    if (all) return true;
  }
  return false;
}

// Returns the kind by a magic number; empty: there is none.
std::string_view magicKind(std::string_view text) {
  for (const Magic& magic : kMagics)
    if (text.size() >= magic.at && text.substr(magic.at).starts_with(magic.bytes) &&
        !(magic.may_begin_text && isText(text)))
      return magic.kind;
  return isUtf16(text) ? kUtf16 : "";
}

bool isPage(std::string_view text) {
  for (const std::string_view begin : {"<!DOCTYPE", "<!doctype", "<html", "<HTML", "<?xml"})
    if (text.starts_with(begin)) return true;
  return false;
}

std::string_view textOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kKindBytes)};
}

}  // namespace

std::string fileKind(std::span<const uint8_t> first) {
  DTF_CHECK(!first.empty());
  const std::string_view text = textOf(first);
  if (const std::string_view kind = magicKind(text); !kind.empty()) return std::string(kind);
  if (first.size() >= 4 && first[0] == 0 && first[1] == 0 && !idxElements(first[2]).empty())
    return fmt::format("an IDX file of {} with {} dimension{}", idxElements(first[2]), first[3],
                       first[3] == 1 ? ", as labels have" : "s");
  if (isText(text)) {
    const std::string_view shown = text.substr(0, kTextBytes);
    const std::string_view line = shown.substr(0, shown.find_first_of("\r\n"));
    if (line.starts_with('<')) return fmt::format("a web page or XML, '{}'", line);
    return fmt::format("text such as CSV, '{}'", line);
  }
  std::string bytes;
  for (const uint8_t byte : first.first(std::min<size_t>(first.size(), 8)))
    bytes += fmt::format("{}{:02x}", bytes.empty() ? "" : " ", byte);
  return "data of an unknown kind, " + bytes;
}

std::string knownKind(std::span<const uint8_t> first) {
  const std::string_view text = textOf(first);
  return !magicKind(text).empty() || isPage(text) ? fileKind(first) : "";
}

}  // namespace dtf::data
