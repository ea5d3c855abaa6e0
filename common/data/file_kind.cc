#include "common/data/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace dtf::data {

namespace {

// By their first bytes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kKinds = {{
    {"\x89PNG", "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"GIF8", "a GIF image"},
    {"BM", "a BMP image"},
    {"PK\x03\x04", "a zip archive (.npz is one, too)"},
    {"\x93NUMPY", "a NumPy array (.npy)"},
    {"\x89HDF", "an HDF5 file"},
    {"PAR1", "a Parquet file"},
    {"BZh", "a file packed by bzip2"},
    {"\xfd"
     "7zXZ",
     "a file packed by xz"},
    {"\x28\xb5\x2f\xfd", "a file packed by zstd"},
    {std::string_view("II*\0", 4), "a TIFF image"},
    {std::string_view("MM\0*", 4), "a TIFF image"},
    {"\xff\xfe", "text in UTF-16 (save it as UTF-8)"},
    {"\xfe\xff", "text in UTF-16 (save it as UTF-8)"},
    {"ARROW1", "an Arrow file"},
    {"\xff\xff\xff\xff", "an Arrow stream"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
}};

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

bool isText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0x7F);
  });
}

}  // namespace

std::string fileKind(std::span<const uint8_t> first) {
  DTF_CHECK(!first.empty());
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  for (const auto& [begin, kind] : kKinds)
    if (text.starts_with(begin)) return std::string(kind);
  if (text.starts_with("RIFF") && text.substr(std::min<size_t>(8, text.size())).starts_with("WEBP"))
    return "a WebP image";
  if (first.size() >= 4 && first[0] == 0 && first[1] == 0 && !idxElements(first[2]).empty())
    return fmt::format("an IDX file of {} with {} dimension{}", idxElements(first[2]), first[3],
                       first[3] == 1 ? ", as labels have" : "s");
  if (isText(text)) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    if (line.starts_with('<')) return fmt::format("a web page or XML, '{}'", line);
    return fmt::format("text such as CSV, '{}'", line);
  }
  std::string bytes;
  for (const uint8_t byte : first.first(std::min<size_t>(first.size(), 8)))
    bytes += fmt::format("{}{:02x}", bytes.empty() ? "" : " ", byte);
  return "data of an unknown kind, " + bytes;
}

}  // namespace dtf::data
