#include "common/tensor/dtype.h"

#include "common/base/check.h"

namespace dtf {

size_t dtypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kUInt8:
      return 1;
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
  }
  DTF_CHECK(false);
}

std::string_view dtypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kUInt8:
      return "uint8";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
  }
  DTF_CHECK(false);
}

std::optional<DType> parseDType(std::string_view name) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64})
    if (dtypeName(dtype) == name) return dtype;
  return std::nullopt;
}

}  // namespace dtf
