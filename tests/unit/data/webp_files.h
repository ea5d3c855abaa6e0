#pragma once

// Writes WebP files, for tests.

#include <webp/encode.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/data/exif_files.h"

namespace dtf::data {

// `pixels`: red, green and blue. `quality`: 0 to 100; negative: lossless.
inline std::string webpOf(int width, int height, const std::vector<uint8_t>& pixels,
                          float quality = -1) {
  if (pixels.size() != static_cast<size_t>(width) * static_cast<size_t>(height) * 3) std::abort();
  uint8_t* bytes = nullptr;
  const size_t size = quality < 0
                          ? WebPEncodeLosslessRGB(pixels.data(), width, height, width * 3, &bytes)
                          : WebPEncodeRGB(pixels.data(), width, height, width * 3, quality, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

// Puts chunks behind the image of a simple WebP file; `flags` of VP8X: 8 for EXIF, 2 for an
// animation.
inline std::string webpWith(const std::string& webp, int width, int height, uint32_t flags,
                            const std::string& chunks) {
  const std::string head = "VP8X" + inBytes(10, 4, false) + inBytes(flags, 4, false) +
                           inBytes(static_cast<uint32_t>(width - 1), 3, false) +
                           inBytes(static_cast<uint32_t>(height - 1), 3, false);
  const std::string body = "WEBP" + head + webp.substr(12) + chunks;
  return "RIFF" + inBytes(static_cast<uint32_t>(body.size()), 4, false) + body;
}

inline std::string exifChunk(const std::string& exif) {
  return "EXIF" + inBytes(static_cast<uint32_t>(exif.size()), 4, false) + exif +
         std::string(exif.size() % 2, '\0');
}

}  // namespace dtf::data
