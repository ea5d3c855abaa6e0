#pragma once

// CRC-32C (Castagnoli), the checksum of TensorFlow's record files.

#include <cstdint>
#include <string_view>

namespace dtf::summary {

// Of `bytes`. By the processor's instruction where it has one (SSE 4.2), else by a table.
uint32_t crc32c(std::string_view bytes);

// The table's way, on any processor: the same value.
uint32_t crc32cByTable(std::string_view bytes);

// As record files store it: rotated and offset, so that the checksum of bytes that hold a checksum
// is no fixed point.
uint32_t maskedCrc32c(std::string_view bytes);

}  // namespace dtf::summary
