#include "common/model_files/npy.h"

#include <bit>

#include "common/base/check.h"

namespace dtf::model_files {

namespace {

static_assert(std::endian::native == std::endian::little, "'<' says little-endian");

constexpr size_t kNpyAlignment = 64;

const char* descriptionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "<f4";
    case DType::kUInt8:
      return "|u1";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    case DType::kBFloat16:
      break;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(dtype)));
}

}  // namespace

std::string npyHeader(DType dtype, const Shape& shape) {
  std::string dictionary =
      std::string("{'descr': '") + descriptionOf(dtype) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : shape.dims()) dictionary += std::to_string(dim) + ", ";
  if (shape.rank() > 1) dictionary.resize(dictionary.size() - 2);
  dictionary += "), }";
  const std::string magic("\x93NUMPY\x01\x00", 8);
  const size_t used = magic.size() + 2 + dictionary.size() + 1;
  dictionary.append((kNpyAlignment - used % kNpyAlignment) % kNpyAlignment, ' ');
  dictionary += '\n';
  DTF_CHECK(dictionary.size() <= 0xFFFF);
  const std::string length = {static_cast<char>(dictionary.size() & 0xFF),
                              static_cast<char>(dictionary.size() >> 8)};
  DTF_CHECK((magic.size() + length.size() + dictionary.size()) % kNpyAlignment == 0);
  return magic + length + dictionary;
}

}  // namespace dtf::model_files
