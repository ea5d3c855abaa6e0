#pragma once

// NumPy's file format of one array, version 1.0: what stands before its bytes.

#include <string>

#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace dtf::model_files {

// Magic, version and the dictionary of a row-major little-endian array, padded so that the data
// begin at a multiple of 64. The array's bytes follow.
std::string npyHeader(DType dtype, const Shape& shape);

}  // namespace dtf::model_files
