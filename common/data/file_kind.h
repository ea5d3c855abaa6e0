#pragma once

// The kind of a file by its first bytes, for messages: people give CSV files, pictures, pickles
// and web pages in a data set's place. One table of magic numbers serves all readers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dtf::data {

inline constexpr size_t kKindBytes = 512;  // fileKind() looks at no more

// Returns "a PNG image", "text such as CSV, 'label,pixel0,pixel1'", or "data of an unknown kind,
// 01 02 03 04", from the first bytes of a file, unpacked. `first` is not empty (DTF_CHECK);
// control characters are not repeated.
std::string fileKind(std::span<const uint8_t> first);

// Returns fileKind() where a magic number, or the beginning of a web page, leaves no doubt. Empty:
// there is none, or there are no bytes.
std::string knownKind(std::span<const uint8_t> first);

}  // namespace dtf::data
