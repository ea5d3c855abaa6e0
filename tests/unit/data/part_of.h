#pragma once

// Parts of data sets from their values, for tests.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/data/dataset.h"

namespace dtf::data {

template <class T>
Part partOf(const std::string& name, Shape shape, const std::vector<T>& values,
            const std::string& source = "data.npy") {
  ByteBlock bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {{name, DTypeOf<T>::value, std::move(shape)}, source, std::move(bytes)};
}

}  // namespace dtf::data
