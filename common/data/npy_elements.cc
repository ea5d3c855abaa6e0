#include "common/data/npy_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::data {

namespace {

struct TypeRow {
  std::string_view name;
  size_t bytes;
};
// In the order of the enum.
constexpr TypeRow kTypes[] = {
    {"float32", 4}, {"float64", 8}, {"uint8", 1}, {"int32", 4}, {"int64", 8},
};

struct StoredRow {
  std::string_view code;  // of NumPy, without the order of bytes
  size_t bytes;
  NpyType as;
};
constexpr StoredRow kStoredTypes[] = {
    {"f4", 4, NpyType::kFloat32}, {"f8", 8, NpyType::kFloat64}, {"u1", 1, NpyType::kUInt8},
    {"i4", 4, NpyType::kInt32},   {"i8", 8, NpyType::kInt64},   {"f2", 2, NpyType::kFloat32},
    {"b1", 1, NpyType::kInt32},   {"i1", 1, NpyType::kInt32},   {"i2", 2, NpyType::kInt32},
    {"u2", 2, NpyType::kInt32},   {"u4", 4, NpyType::kInt64},   {"u8", 8, NpyType::kInt64},
};
constexpr size_t kAsTheyAre = 5;  // the first rows: stored as they are read

// Converts one stored number, in the byte order of this host. False: it is beyond the type.
bool readAs(size_t stored, const uint8_t* from, uint8_t* to) {
  const auto put = [to](auto value) {
    std::memcpy(to, &value, sizeof(value));
    return true;
  };
  const auto get = [from](auto zero) {
    std::memcpy(&zero, from, sizeof(zero));
    return zero;
  };
  const std::string_view code = kStoredTypes[stored].code;
  if (code == "f2") return put(halfToFloat(get(uint16_t{})));
  if (code == "b1") return put(int32_t{*from != 0});
  if (code == "i1") return put(int32_t{get(int8_t{})});
  if (code == "i2") return put(int32_t{get(int16_t{})});
  if (code == "u2") return put(int32_t{get(uint16_t{})});
  if (code == "u4") return put(int64_t{get(uint32_t{})});
  DTF_CHECK_MSG(code == "u8", std::string(code));
  const auto value = get(uint64_t{});
  return value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) &&
         put(static_cast<int64_t>(value));
}

// Iterates over the elements of an array by rows; place() is an element's place in the file.
class Places {
 public:
  Places(std::span<const int64_t> dims, bool by_columns) : dims_(dims), at_(dims.size()) {
    strides_.resize(dims.size());
    uint64_t stride = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t dim = by_columns ? i : dims.size() - 1 - i;
      strides_[dim] = stride;
      stride *= static_cast<uint64_t>(dims[dim]);
    }
  }
  uint64_t place() const { return place_; }
  void next() {
    for (size_t dim = dims_.size(); dim-- > 0;) {
      place_ += strides_[dim];
      if (++at_[dim] < dims_[dim]) return;
      place_ -= strides_[dim] * static_cast<uint64_t>(dims_[dim]);
      at_[dim] = 0;
    }
  }

 private:
  const std::span<const int64_t> dims_;
  std::vector<int64_t> at_;
  std::vector<uint64_t> strides_;
  uint64_t place_ = 0;
};

}  // namespace

size_t npyTypeBytes(NpyType type) {
  DTF_CHECK(static_cast<size_t>(type) < std::size(kTypes));
  return kTypes[static_cast<size_t>(type)].bytes;
}

std::string_view npyTypeName(NpyType type) {
  DTF_CHECK(static_cast<size_t>(type) < std::size(kTypes));
  return kTypes[static_cast<size_t>(type)].name;
}

size_t NpyElements::bytes() const {
  DTF_CHECK(stored < std::size(kStoredTypes));
  return kStoredTypes[stored].bytes;
}

bool NpyElements::isPlain(size_t dims) const {
  return stored < kAsTheyAre && !swapped && !(by_columns && dims > 1);
}

std::optional<NpyElements> npyElementsOf(std::string_view description) {
  bool swapped = false;
  if (!description.empty() && std::string_view("<>|=").find(description[0]) != std::string::npos) {
    swapped = description[0] == '>' && std::endian::native == std::endian::little;
    description.remove_prefix(1);
  }
  for (size_t i = 0; i < std::size(kStoredTypes); ++i)
    if (kStoredTypes[i].code == description)
      return NpyElements{kStoredTypes[i].as, static_cast<uint8_t>(i),
                         swapped && kStoredTypes[i].bytes > 1};
  return std::nullopt;
}

ByteBlock normalisedElements(std::span<const uint8_t> stored, const NpyElements& elements,
                             std::span<const int64_t> dims, const std::string& name) {
  const size_t width = elements.bytes(), read_width = npyTypeBytes(elements.type);
  DTF_CHECK_MSG(stored.size() % width == 0, name);
  const uint64_t count = stored.size() / width;
  ByteBlock read(count * read_width);
  Places places(dims, elements.by_columns);
  std::array<uint8_t, 8> element{};
  for (uint64_t i = 0; i < count; ++i, places.next()) {
    DTF_CHECK_MSG(places.place() < count, name);
    std::memcpy(element.data(), stored.data() + places.place() * width, width);
    if (elements.swapped) std::reverse(element.begin(), element.begin() + width);
    uint8_t* const to = read.data() + i * read_width;
    if (elements.stored < kAsTheyAre)
      std::memcpy(to, element.data(), width);
    else if (!readAs(elements.stored, element.data(), to))
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: element {} is beyond 9223372036854775807", name, i));
  }
  return read;
}

std::string_view npyRemedy(std::string_view description) {
  switch (const std::string_view code = description.substr(
              std::min(description.find_first_not_of("<>|="), description.size()));
          code.empty() ? '\0' : code[0]) {
    case 'U':
    case 'S':
      return "these are texts: number them, as np.unique(a, return_inverse=True)[1] does, or save "
             "a table (format: csv), which has class_names and categorical_columns";
    case 'O':
      return "these are objects of Python: build an array of numbers from them, as with "
             "np.array(a.tolist(), 'float32')";
    case 'c':
      return "these are complex numbers: save a.real and a.imag";
    case 'V':
      return "these are records: save one array for each part";
    default:
      return "convert it, as with a.astype('float32'), or whole numbers with a.astype('int64')";
  }
}

float halfToFloat(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

}  // namespace dtf::data
