#include "common/optimizer/sparse_gradient.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/radix_sort.h"

namespace dtf::optimizer {

namespace {

// Calls `use` with a value of the type that `dtype` names.
template <class Use>
void asIdType(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::kUInt8:
      return use(uint8_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kInt64:
      return use(int64_t{});
    case DType::kFloat32:
      return use(float{});
    case DType::kBFloat16:
      DTF_CHECK_MSG(false, "an index of bfloat16");
  }
}

// Converts as the look-up kernel does. The comparison comes first, as a float may fit no integer.
template <class T>
bool isRow(T id, uint64_t rows) {
  return id >= 0 && static_cast<double>(id) < static_cast<double>(rows);
}

}  // namespace

std::optional<size_t> firstBeyond(const LookUp& look_up, uint64_t rows) {
  std::optional<size_t> found;
  asIdType(look_up.dtype, [&](auto id) {
    for (size_t i = 0; i < look_up.count && !found; ++i) {
      std::memcpy(&id, look_up.ids + i * sizeof(id), sizeof(id));
      if (!isRow(id, rows)) found = i;
    }
  });
  return found;
}

uint32_t rowAt(const LookUp& look_up, size_t place) {
  DTF_CHECK(place < look_up.count);
  uint32_t row = 0;
  asIdType(look_up.dtype, [&](auto id) {
    std::memcpy(&id, look_up.ids + place * sizeof(id), sizeof(id));
    row = static_cast<uint32_t>(id);
  });
  return row;
}

void findRows(DType dtype, const std::byte* ids, size_t count, uint64_t rows,
              std::vector<uint32_t>& found, std::vector<uint32_t>& spare) {
  found.clear();
  asIdType(dtype, [&](auto id) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
      if (isRow(id, rows)) found.push_back(static_cast<uint32_t>(id));
    }
  });
  radixSort(found, spare, rows, [](uint32_t row) { return uint64_t{row}; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

SparseGradient::SparseGradient(uint64_t rows, uint64_t row_elements)
    : table_rows_(rows), row_elements_(row_elements) {
  DTF_CHECK(rows <= UINT32_MAX && row_elements > 0);
}

template <class T>
void SparseGradient::sort(const LookUp& look_up) {
  for (uint64_t i = 0; i < look_up.count; ++i) {
    T id{};
    std::memcpy(&id, look_up.ids + i * sizeof(T), sizeof(T));
    const auto row = static_cast<uint64_t>(id);
    DTF_CHECK(row < table_rows_);
    order_.push_back(row << 32 | i);
  }
  radixSort(order_, spare_, table_rows_, [](uint64_t entry) { return entry >> 32; });
}

void SparseGradient::set(const LookUp& look_up) {
  DTF_CHECK(look_up.count <= UINT32_MAX);
  order_.clear();
  rows_.clear();
  asIdType(look_up.dtype, [&]<class T>(T) { sort<T>(look_up); });
  for (const uint64_t entry : order_)
    if (const auto row = static_cast<uint32_t>(entry >> 32); rows_.empty() || rows_.back() != row)
      rows_.push_back(row);
  values_.assign(rows_.size() * row_elements_, 0.0f);
  float* sum = values_.data();
  for (size_t i = 0; i < order_.size(); ++i) {
    if (i > 0 && order_[i] >> 32 != order_[i - 1] >> 32) sum += row_elements_;
    addInto(sum, look_up.gradients + (order_[i] & UINT32_MAX) * row_elements_, row_elements_);
  }
}

}  // namespace dtf::optimizer
