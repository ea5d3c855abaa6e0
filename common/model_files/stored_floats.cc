#include "common/model_files/stored_floats.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/data/npy_elements.h"

namespace dtf::model_files {

namespace {

template <class Stored, class Read>
void readAll(std::string_view bytes, std::span<float> to, const Read& read) {
  for (size_t i = 0; i < to.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    to[i] = read(stored);
  }
}

std::optional<std::string> readDoubles(std::string_view bytes, std::span<float> to) {
  // The conversion of a larger number is undefined.
  constexpr double kMax = std::numeric_limits<float>::max();
  std::optional<std::string> mistake;
  size_t at = 0;
  readAll<double>(bytes, to, [&](double value) {
    const bool fits = !std::isfinite(value) || std::abs(value) <= kMax;
    if (!fits && !mistake)
      mistake = fmt::format("element {} is {}, which float32 doesn't hold", at, value);
    ++at;
    return fits ? static_cast<float>(value) : 0.0F;
  });
  return mistake;
}

}  // namespace

size_t storedBytes(StoredFloat type) {
  switch (type) {
    case StoredFloat::kFloat16:
    case StoredFloat::kBFloat16:
      return 2;
    case StoredFloat::kFloat32:
      return 4;
    case StoredFloat::kFloat64:
      return 8;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(type)));
}

std::optional<StoredFloat> storedFloatOf(std::string_view safetensors) {
  if (safetensors == "F16") return StoredFloat::kFloat16;
  if (safetensors == "BF16") return StoredFloat::kBFloat16;
  if (safetensors == "F32") return StoredFloat::kFloat32;
  if (safetensors == "F64") return StoredFloat::kFloat64;
  return std::nullopt;
}

std::optional<std::string> readFloats(StoredFloat type, std::string_view bytes,
                                      std::span<float> to) {
  DTF_CHECK(bytes.size() == to.size() * storedBytes(type));
  switch (type) {
    case StoredFloat::kFloat16:
      readAll<uint16_t>(bytes, to, data::halfToFloat);
      break;
    case StoredFloat::kBFloat16:
      readAll<uint16_t>(bytes, to,
                        [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); });
      break;
    case StoredFloat::kFloat32:
      if (!to.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
      break;
    case StoredFloat::kFloat64:
      return readDoubles(bytes, to);
  }
  return std::nullopt;
}

}  // namespace dtf::model_files
