#pragma once

// NumPy's arrays in files (.npy, format versions 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), plain or gzip: a header that
// is a Python dictionary, then the elements. Little-endian, rows first; numbers of the types below.
//
// Files are untrusted: what the header promises is compared with what the file can hold before memory
// is taken for it.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/data/part.h"

namespace dtf::data {

enum class NpyType : uint8_t { kFloat32, kFloat64, kUInt8, kInt32, kInt64 };

size_t npyTypeBytes(NpyType type);
std::string_view npyTypeName(NpyType type);  // "float32"

struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  std::vector<int64_t> dims;
  int64_t count() const { return dims.empty() ? 0 : dims[0]; }  // of examples
  Shape exampleShape() const;                                   // one dimension or more (DTF_CHECK)
};

struct NpyArray {
  NpyHeader header;
  ByteBlock bytes;
};

inline constexpr uint64_t kNpyBytesMax = uint64_t{1} << 40;

// Blocks: on the disk, shortly.
// Errors: kBadData naming the file: missing, no .npy (and what it looks like), another type or order
// of elements, a header that can't be read, sizes that the file can't hold; kPermission.
NpyHeader readNpyHeader(const std::filesystem::path& path);

// The whole array; the elements of a large one that is not packed stay in their file (byte_block.h).
// Errors: as readNpyHeader(), and kBadData for one of more than `bytes_max` bytes, truncated, with
// trailing bytes, or damaged gzip data.
NpyArray readNpy(const std::filesystem::path& path, uint64_t bytes_max = kNpyBytesMax);

// Of an array whose first bytes these are, of `whole_bytes`; kNpyHeaderBytesMax are always enough.
inline constexpr size_t kNpyHeaderBytesMax = 65536 + 12;
NpyHeader parseNpyHeader(std::span<const uint8_t> first, uint64_t whole_bytes,
                         const std::string& name);

// The same of bytes in memory; `name` is what messages call them.
NpyArray parseNpy(std::span<const uint8_t> bytes, const std::string& name,
                  uint64_t bytes_max = kNpyBytesMax);

}  // namespace dtf::data
