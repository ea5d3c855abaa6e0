#pragma once

// Writes BMP files of each kind, for tests.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace dtf::data {

struct BmpKind {
  int bits = 24;
  uint32_t compression = 0;
  uint32_t head_bytes = 40;  // 12: OS/2's
  uint32_t colours = 0;      // as stated for the palette
  std::string behind = {};   // behind the header: masks, a palette
};

// `rows` as in the file, padded to four bytes. A negative height: the first row is the top one.
inline std::string bmpOf(int32_t width, int32_t height, const std::string& rows,
                         const BmpKind& kind = {}) {
  std::string file = "BM";
  const auto put = [&file](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<char>(value >> (8 * i)));
  };
  const size_t pixels_at = 14 + kind.head_bytes + kind.behind.size();
  put(pixels_at + rows.size(), 4);
  put(0, 4);
  put(pixels_at, 4);
  put(kind.head_bytes, 4);
  const int size_bytes = kind.head_bytes == 12 ? 2 : 4;
  put(static_cast<uint32_t>(width), size_bytes);
  put(static_cast<uint32_t>(height), size_bytes);
  put(1, 2);
  put(static_cast<uint32_t>(kind.bits), 2);
  if (kind.head_bytes > 12) {
    put(kind.compression, 4);
    put(rows.size(), 4);
    put(0, 8);
    put(kind.colours, 4);
    file.resize(14 + kind.head_bytes, '\0');
  }
  if (file.size() != 14 + kind.head_bytes) std::abort();
  return file + kind.behind + rows;
}

}  // namespace dtf::data
