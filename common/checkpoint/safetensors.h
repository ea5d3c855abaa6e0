#pragma once

// The safetensors file format: 8 bytes of header size (little-endian), a JSON header, the tensors.
// The reader trusts nothing: sizes are compared with the file before memory is taken, and a file
// with holes, overlaps, duplicate names, or more or fewer bytes than its header says is refused.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file_system.h"

namespace dtf::checkpoint {

inline constexpr uint64_t kSafetensorsHeaderBytesMax = 100'000'000;  // the format's own limit
inline constexpr size_t kSafetensorsRankMax = 32;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<uint64_t> shape;
  uint64_t begin = 0;  // in the data section; in the file: + SafetensorsHeader::data_begin
  uint64_t end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  uint64_t data_begin = 0;                      // offset of the data section in the file
  std::map<std::string, std::string> metadata;  // "__metadata__"
  std::vector<SafetensorsEntry> entries;        // in the order of their data; they tile it exactly
};

// Parses the header alone, `json`; `data_bytes`: size of the data after it. `data_begin` stays 0.
// Errors: kBadData with the reason and the tensor.
SafetensorsHeader parseSafetensorsHeader(std::string_view json, uint64_t data_bytes);

// Errors: kBadData beginning with `path`.
SafetensorsHeader readSafetensorsHeader(const ReadableFile& file,
                                        const std::filesystem::path& path);

// Returns the bytes before the data: size, JSON and padding to a multiple of 8.
// Errors: kCannotWrite when the header would be larger than the format allows.
std::string encodeSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace dtf::checkpoint
