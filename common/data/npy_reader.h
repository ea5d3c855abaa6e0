#pragma once

// NumPy's arrays in files (.npy, format versions 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), plain or gzip: a header
// that is a Python dictionary, then the elements (npy_elements.h).
//
// Files are untrusted: what the header promises is compared with what the file can hold before
// memory is taken for it.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/data/npy_elements.h"
#include "common/data/part.h"

namespace dtf::data {

struct NpyHeader {
  NpyType type = NpyType::kFloat32;  // as what the elements are read
  std::vector<int64_t> dims;
  NpyElements elements = {};                                    // in the file
  int64_t count() const { return dims.empty() ? 0 : dims[0]; }  // of examples
  Shape exampleShape() const;                                   // one dimension or more (DTF_CHECK)
};

struct NpyArray {
  NpyHeader header;
  ByteBlock bytes;
};

inline constexpr uint64_t kNpyBytesMax = uint64_t{1} << 40;

// Blocks: on the disk, shortly.
// Errors: kBadData naming the file: missing, no .npy (and what it looks like), elements that are no
// numbers, a header that can't be read, sizes that the file can't hold; kPermission.
NpyHeader readNpyHeader(const std::filesystem::path& path);

// The whole array; the elements of a large one that is not packed stay in their file
// (byte_block.h), if they lie there as they are read.
// Errors: as readNpyHeader(), and kBadData for one of more than `bytes_max` bytes, truncated, with
// trailing bytes, or damaged gzip data.
NpyArray readNpy(const std::filesystem::path& path, uint64_t bytes_max = kNpyBytesMax);

// Of an array whose first bytes these are, of `whole_bytes`; kNpyHeaderBytesMax are always enough.
inline constexpr size_t kNpyHeaderBytesMax = 65536 + 12;
NpyHeader parseNpyHeader(std::span<const uint8_t> first, uint64_t whole_bytes,
                         const std::string& name);

// The type of elements that dtf can't read, as the header has it ("<U5", texts). Empty: dtf reads
// them, or the header is damaged.
std::string unreadNpyElements(std::span<const uint8_t> bytes);

// The same of bytes in memory; `name` is what messages call them.
NpyArray parseNpy(std::span<const uint8_t> bytes, const std::string& name,
                  uint64_t bytes_max = kNpyBytesMax);

}  // namespace dtf::data
