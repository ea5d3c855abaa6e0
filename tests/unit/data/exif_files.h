#pragma once

// Orientations in files, for tests.

#include <zlib.h>

#include <cstdint>
#include <string>

namespace dtf::data {

inline std::string inBytes(uint32_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    const int place = big_endian ? bytes - 1 - i : i;
    text.push_back(static_cast<char>(value >> (8 * place)));
  }
  return text;
}

// EXIF metadata with an entry before the orientation.
inline std::string exifOf(uint32_t orientation, bool big_endian = false, uint32_t type = 3) {
  const auto number = [big_endian](uint32_t value, int bytes) {
    return inBytes(value, bytes, big_endian);
  };
  return (big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
         number(0x0100, 2) + number(4, 2) + number(1, 4) + number(77, 4) +  //
         number(0x0112, 2) + number(type, 2) + number(1, 4) + number(orientation, 2) +
         std::string(2, '\0') + std::string(4, '\0');
}

inline std::string withExif(const std::string& head) {
  return std::string("Exif\0\0", 6) + head;
}

// Puts metadata into a JPEG or PNG file.
inline std::string jpegWith(const std::string& jpeg, const std::string& exif) {
  const std::string segment = withExif(exif);
  return jpeg.substr(0, 2) + "\xff\xe1" +
         inBytes(static_cast<uint32_t>(segment.size() + 2), 2, true) + segment + jpeg.substr(2);
}

inline std::string pngWith(const std::string& png, const std::string& exif) {
  constexpr size_t kHeaderEnd = 33;
  const std::string chunk = "eXIf" + exif;
  const auto sum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size())));
  return png.substr(0, kHeaderEnd) + inBytes(static_cast<uint32_t>(exif.size()), 4, true) + chunk +
         inBytes(sum, 4, true) + png.substr(kHeaderEnd);
}

}  // namespace dtf::data
