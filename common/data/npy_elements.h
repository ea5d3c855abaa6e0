#pragma once

// The layout of a NumPy array in its file, and its normal form: one of five types, in the byte
// order of this host, by rows. Readers of arrays see the normal form alone.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/data/byte_block.h"

namespace dtf::data {

// The types of the normal form.
enum class NpyType : uint8_t { kFloat32, kFloat64, kUInt8, kInt32, kInt64 };

size_t npyTypeBytes(NpyType type);
std::string_view npyTypeName(NpyType type);  // "float32"

// Value type.
struct NpyElements {
  NpyType type = NpyType::kFloat32;
  // The type in the file: an index into a table of npy_elements.cc.
  uint8_t stored = 0;
  bool swapped = false;     // the bytes of an element, most significant first
  bool by_columns = false;  // Fortran's order: the first index changes fastest
  size_t bytes() const;     // of an element in the file
  // Whether the file has the normal form already.
  bool isPlain(size_t dims) const;
};

// Returns the elements of NumPy's 'descr': "<f2", ">i4", "|b1"; nullopt: they aren't read.
std::optional<NpyElements> npyElementsOf(std::string_view description);

inline constexpr std::string_view kNpyTypesRead =
    "float16 to float64, bool, and whole numbers of 8 to 64 bits";

// Returns how to save elements of a 'descr' that isn't read: texts can't be converted to numbers.
std::string_view npyRemedy(std::string_view description);

// Converts the elements of a file to the normal form. `stored` has bytes() for each element of
// `dims` (DTF_CHECK).
// Errors: kBadData beginning with `name` for a whole number beyond int64.
ByteBlock normalisedElements(std::span<const uint8_t> stored, const NpyElements& elements,
                             std::span<const int64_t> dims, const std::string& name);

// Converts IEEE 754's binary16.
float halfToFloat(uint16_t bits);

}  // namespace dtf::data
