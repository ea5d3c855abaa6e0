#pragma once

// Makes valid and damaged .npy and .npz files, byte by byte as NumPy writes them.

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtf::data {

inline std::string littleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// `dictionary` in NumPy's form, without padding.
inline std::string npyOf(const std::string& dictionary, std::string_view elements,
                         int version = 1) {
  const std::string padded = dictionary + std::string(64 - dictionary.size() % 64, ' ') + "\n";
  return std::string("\x93NUMPY", 6) + static_cast<char>(version) + std::string(1, '\0') +
         littleEndian(padded.size(), version == 1 ? 2 : 4) + padded + std::string(elements);
}

template <class T>
std::string npyOf(const std::string& type, const std::string& shape, const std::vector<T>& values,
                  int version = 1) {
  std::string elements(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(elements.data(), values.data(), elements.size());
  return npyOf("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }",
               elements, version);
}

// Returns an archive of these files, deflated if `deflate` is set.
inline std::string zipOf(const std::vector<std::pair<std::string, std::string>>& files,
                         bool deflate = false) {
  std::string archive, directory;
  for (const auto& [name, bytes] : files) {
    std::string packed = bytes;
    if (deflate) {
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
      packed.resize(deflateBound(&stream, bytes.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(bytes.size());
      stream.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_out = static_cast<uInt>(packed.size());
      ::deflate(&stream, Z_FINISH);
      packed.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    const std::string head = littleEndian(20, 2) + littleEndian(0, 2) +
                             littleEndian(deflate ? 8 : 0, 2) + littleEndian(0, 4) +
                             littleEndian(crc, 4);
    // As in NumPy, the sizes before the file are in a zip64 field, and the sizes in the directory
    // aren't.
    const std::string sizes64 = littleEndian(1, 2) + littleEndian(16, 2) +
                                littleEndian(bytes.size(), 8) + littleEndian(packed.size(), 8);
    const uint64_t offset = archive.size();
    archive += "PK\x03\x04" + head + littleEndian(0xFFFFFFFF, 4) + littleEndian(0xFFFFFFFF, 4) +
               littleEndian(name.size(), 2) + littleEndian(sizes64.size(), 2) + name + sizes64 +
               packed;
    directory += std::string("PK\x01\x02") + littleEndian(20, 2) + head +
                 littleEndian(packed.size(), 4) + littleEndian(bytes.size(), 4) +
                 littleEndian(name.size(), 2) + littleEndian(0, 2) + littleEndian(0, 2) +
                 littleEndian(0, 2) + littleEndian(0, 2) + littleEndian(0, 4) +
                 littleEndian(offset, 4) + name;
  }
  return archive + directory + std::string("PK\x05\x06") + littleEndian(0, 4) +
         littleEndian(files.size(), 2) + littleEndian(files.size(), 2) +
         littleEndian(directory.size(), 4) + littleEndian(archive.size(), 4) + littleEndian(0, 2);
}

}  // namespace dtf::data
