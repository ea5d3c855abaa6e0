#pragma once

// NumPy's arrays in files (.npy, format versions 1 to 3:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), plain or gzip: a header
// that is a Python dictionary, then the elements (npy_elements.h).
//
// Files are untrusted: the size in the header is compared with the most that the file can hold
// before memory is allocated.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/data/npy_elements.h"
#include "common/data/part.h"

namespace dtf::data {

struct NpyHeader {
  NpyType type = NpyType::kFloat32;  // of the elements when they are read
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

// Reads the whole array. The elements of a large one stay in their file (byte_block.h), unless it
// is packed or they must be converted.
// Errors: see readNpyHeader(); kBadData for one of more than `bytes_max` bytes, truncated, with
// trailing bytes, or damaged gzip data.
NpyArray readNpy(const std::filesystem::path& path, uint64_t bytes_max = kNpyBytesMax);

// Parses the header from the first bytes of an array of `whole_bytes`; kNpyHeaderBytesMax are
// always enough.
inline constexpr size_t kNpyHeaderBytesMax = 65536 + 12;
NpyHeader parseNpyHeader(std::span<const uint8_t> first, uint64_t whole_bytes,
                         const std::string& name);

// Returns the type of elements that dtf can't read, from the header ("<U5", texts). Empty: dtf
// reads them, or the header is damaged. `dims` receives the shape of an array of such elements.
std::string unreadNpyElements(std::span<const uint8_t> bytes, std::vector<int64_t>* dims = nullptr);

// Parses an array in memory; `name` is for messages.
NpyArray parseNpy(std::span<const uint8_t> bytes, const std::string& name,
                  uint64_t bytes_max = kNpyBytesMax);

}  // namespace dtf::data
