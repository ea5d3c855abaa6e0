#pragma once

// The floating-point numbers in files of weights, converted to float32.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtf::model_files {

enum class StoredFloat : uint8_t { kFloat16, kBFloat16, kFloat32, kFloat64 };

size_t storedBytes(StoredFloat type);

// Returns the type of safetensors' "F16", "BF16", "F32" or "F64"; nullopt for another name.
std::optional<StoredFloat> storedFloatOf(std::string_view safetensors);

// Converts little-endian numbers; `bytes` holds one for each element of `to` (DTF_CHECK). Returns
// why the numbers can't be used: "element 3 is 1e+300, which float32 doesn't hold". Infinities and
// NaNs stay as they are.
std::optional<std::string> readFloats(StoredFloat type, std::string_view bytes,
                                      std::span<float> to);

}  // namespace dtf::model_files
