#pragma once

// What a file that is no IDX file looks like, for messages: people give CSV files, pictures, and
// web pages that were saved in a data set's place.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dtf::data {

inline constexpr size_t kKindBytes = 32;  // as many as fileKind() looks at

// "a PNG image", "text such as CSV, 'label,pixel0,pixel1'", "data of an unknown kind, 01 02 03 04",
// from the first bytes of a file, unpacked. `first` is not empty (DTF_CHECK); control characters
// are not repeated.
std::string fileKind(std::span<const uint8_t> first);

}  // namespace dtf::data
