#pragma once

// CRC-32C (Castagnoli), the checksum of TensorFlow's record files.

#include <cstdint>
#include <string_view>

namespace dtf::summary {

// Returns the checksum of `bytes`, with the processor's instruction (SSE 4.2) if available, else
// from a table.
uint32_t crc32c(std::string_view bytes);

// The same value from the table, on any processor.
uint32_t crc32cByTable(std::string_view bytes);

// The form in record files: rotated and offset, because the plain checksum of bytes that contain
// their own checksum is a constant.
uint32_t maskedCrc32c(std::string_view bytes);

}  // namespace dtf::summary
