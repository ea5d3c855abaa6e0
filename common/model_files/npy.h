#pragma once

// The header of NumPy's file format of one array, version 1.0.

#include <string>

#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace dtf::model_files {

// Returns magic, version and the dictionary of a row-major little-endian array, padded so that the
// array's bytes, which follow, begin at a multiple of 64.
std::string npyHeader(DType dtype, const Shape& shape);

}  // namespace dtf::model_files
