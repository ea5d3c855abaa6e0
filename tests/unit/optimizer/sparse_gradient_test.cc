#include "common/optimizer/sparse_gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/random.h"

namespace dtf::optimizer {
namespace {

template <class T>
LookUp lookUp(const std::vector<T>& ids, const std::vector<float>& gradients) {
  return {DTypeOf<T>::value, reinterpret_cast<const std::byte*>(ids.data()), ids.size(),
          gradients.data()};
}

template <class T>
void expectRows() {
  SparseGradient gradient(200, 2);
  const std::vector<float> gradients = {1, 2, 10, 20, 100, 200, 4, 8};
  gradient.set(lookUp<T>({7, 199, 7, 0}, gradients));
  EXPECT_EQ(std::vector<uint32_t>(gradient.rows().begin(), gradient.rows().end()),
            (std::vector<uint32_t>{0, 7, 199}));
  EXPECT_EQ(std::vector<float>(gradient.values().begin(), gradient.values().end()),
            (std::vector<float>{4, 8, 101, 202, 10, 20}));
}

template <class T>
void expectFound() {
  const std::vector<T> ids = {7, 199, 7, 0, 12};
  std::vector<uint32_t> found = {3}, spare;
  findRows(DTypeOf<T>::value, reinterpret_cast<const std::byte*>(ids.data()), ids.size(), 200,
           found, spare);
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 7, 12, 199}));
  findRows(DTypeOf<T>::value, reinterpret_cast<const std::byte*>(ids.data()), ids.size(), 12, found,
           spare);
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 7})) << "those of the table";
}

TEST(FindRows, EachOnceWhateverTheTypeOfTheIds) {
  expectFound<uint8_t>();
  expectFound<int32_t>();
  expectFound<int64_t>();
  expectFound<float>();
}

TEST(FindRows, WhatNoTableHasIsLeftOut) {
  const std::vector<float> ids = {-1, 1e30F, 2, std::nanf("")};
  std::vector<uint32_t> found, spare;
  findRows(DType::kFloat32, reinterpret_cast<const std::byte*>(ids.data()), ids.size(), 5, found,
           spare);
  EXPECT_EQ(found, (std::vector<uint32_t>{2}));
}

TEST(SparseGradient, HasEachRowOnceWhateverTheTypeOfItsIds) {
  expectRows<uint8_t>();
  expectRows<int32_t>();
  expectRows<int64_t>();
  expectRows<float>();
}

TEST(SparseGradient, IsOfTheLastLookUpAlone) {
  SparseGradient gradient(4, 1);
  gradient.set(lookUp<int32_t>({0, 1, 2, 3}, {1, 1, 1, 1}));
  gradient.set(lookUp<int32_t>({3}, {5}));
  ASSERT_EQ(gradient.rows().size(), 1u);
  EXPECT_EQ(gradient.rows()[0], 3u);
  EXPECT_EQ(gradient.values()[0], 5);
}

// A sparse run and a dense one have the same bits.
TEST(SparseGradient, SumsAsTheDenseGradientDoes) {
  constexpr size_t kRows = 5, kCount = 400;
  Random random(4, 0);
  std::vector<int32_t> ids;
  std::vector<float> gradients, dense(kRows, 0);
  for (size_t i = 0; i < kCount; ++i) {
    ids.push_back(static_cast<int32_t>(random.below(kRows)));
    gradients.push_back(random.uniform(-1, 1));
    dense[static_cast<size_t>(ids[i])] += gradients[i];
  }
  SparseGradient gradient(kRows, 1);
  gradient.set(lookUp(ids, gradients));
  EXPECT_EQ(std::vector<float>(gradient.values().begin(), gradient.values().end()), dense);
}

TEST(SparseGradient, TheFirstIdBeyondTheTableIsFound) {
  const std::vector<float> none;
  EXPECT_EQ(firstBeyond(lookUp<int32_t>({0, 3, 1}, none), 4), std::nullopt);
  EXPECT_EQ(firstBeyond(lookUp<int32_t>({0, 4, 5}, none), 4), 1u);
  EXPECT_EQ(firstBeyond(lookUp<int64_t>({-1}, none), 4), 0u);
  EXPECT_EQ(firstBeyond(lookUp<float>({3.5F, std::nanf("")}, none), 4), 1u);
  EXPECT_EQ(rowAt(lookUp<float>({0, 3.5F}, none), 1), 3u);
}

TEST(SparseGradient, AnIdBeyondTheTableIsABug) {
  SparseGradient gradient(4, 1);
  EXPECT_DEATH(gradient.set(lookUp<int32_t>({4}, {1})), "table_rows_");
  EXPECT_DEATH(gradient.set(lookUp<int32_t>({-1}, {1})), "table_rows_");
}

}  // namespace
}  // namespace dtf::optimizer
