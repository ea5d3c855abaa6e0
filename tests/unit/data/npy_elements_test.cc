#include "common/data/npy_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/data/npy_reader.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

// Returns the elements that the reader gives for an array.
template <class T>
std::vector<T> read(const std::string& file, NpyType type) {
  const NpyArray array =
      parseNpy({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.npy");
  EXPECT_EQ(array.header.type, type);
  const ByteBlock& bytes = array.bytes;
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

TEST(NpyElements, WholeNumbersOfEachSizeAreRead) {
  EXPECT_EQ(read<int32_t>(npyOf<int8_t>("|i1", "(2,)", {-1, 127}), NpyType::kInt32),
            (std::vector<int32_t>{-1, 127}));
  EXPECT_EQ(read<int32_t>(npyOf<int16_t>("<i2", "(2,)", {-300, 300}), NpyType::kInt32),
            (std::vector<int32_t>{-300, 300}));
  EXPECT_EQ(read<int32_t>(npyOf<uint16_t>("<u2", "(1,)", {65535}), NpyType::kInt32),
            (std::vector<int32_t>{65535}));
  EXPECT_EQ(read<int64_t>(npyOf<uint32_t>("<u4", "(1,)", {4294967295U}), NpyType::kInt64),
            (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(read<int64_t>(npyOf<uint64_t>("<u8", "(1,)", {7}), NpyType::kInt64),
            (std::vector<int64_t>{7}));
  EXPECT_EQ(read<int32_t>(npyOf<uint8_t>("|b1", "(3,)", {0, 1, 1}), NpyType::kInt32),
            (std::vector<int32_t>{0, 1, 1}));
  try {
    read<int64_t>(npyOf<uint64_t>("<u8", "(2,)", {1, uint64_t{1} << 63}), NpyType::kInt64);
    ADD_FAILURE() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "x.npy: element 1 is beyond 9223372036854775807");
  }
}

TEST(NpyElements, OfAnotherOrderOfBytesAreTurned) {
  EXPECT_EQ(read<float>(npyOf("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                              std::string("\x3f\xc0\x00\x00", 4)),
                        NpyType::kFloat32),
            (std::vector<float>{1.5F}));
  EXPECT_EQ(read<int32_t>(npyOf("{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }",
                                std::string("\x01\x02", 2)),
                          NpyType::kInt32),
            (std::vector<int32_t>{258}));
}

// pandas writes such arrays: [[1, 2, 3], [4, 5, 6]] is stored as 1 4 2 5 3 6.
TEST(NpyElements, ColumnByColumnBecomesRowByRow) {
  const std::vector<int32_t> stored = {1, 4, 2, 5, 3, 6};
  std::string bytes(stored.size() * 4, '\0');
  std::memcpy(bytes.data(), stored.data(), bytes.size());
  const auto of = [&](const char* shape) {
    return read<int32_t>(
        npyOf(std::string("{'descr': '<i4', 'fortran_order': True, 'shape': ") + shape + ", }",
              bytes),
        NpyType::kInt32);
  };
  EXPECT_EQ(of("(2, 3)"), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(of("(6,)"), stored);
  // a[i, j, k] lies at i + j + 3 k; for one row that is [3, 2] by columns.
  EXPECT_EQ(of("(1, 3, 2)"), (std::vector<int32_t>{1, 5, 4, 3, 2, 6}));
}

TEST(NpyElements, HalvesAreRead) {
  EXPECT_EQ(halfToFloat(0x3c00), 1.0F);
  EXPECT_EQ(halfToFloat(0xc000), -2.0F);
  EXPECT_EQ(halfToFloat(0x7bff), 65504.0F) << "the largest";
  EXPECT_EQ(halfToFloat(0x0400), std::ldexp(1.0F, -14)) << "the smallest that is normal";
  EXPECT_EQ(halfToFloat(0x0001), std::ldexp(1.0F, -24)) << "the smallest";
  EXPECT_EQ(halfToFloat(0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
  EXPECT_EQ(read<float>(npyOf<uint16_t>("<f2", "(2,)", {0x3c00, 0xb800}), NpyType::kFloat32),
            (std::vector<float>{1.0F, -0.5F}));
}

TEST(NpyElements, OthersAreNotRead) {
  for (const char* description : {"<U5", "|O", "<c8", "<M8[ns]", "|S3", "f16", ""})
    EXPECT_FALSE(npyElementsOf(description)) << description;
  EXPECT_TRUE(npyElementsOf("f4")) << "without an order";
  EXPECT_TRUE(npyElementsOf("=f4"));
}

}  // namespace
}  // namespace dtf::data
