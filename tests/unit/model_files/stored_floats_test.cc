#include "common/model_files/stored_floats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;

template <class T>
std::string bytesOf(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

TEST(StoredFloats, OfEachWidthAreConverted) {
  std::vector<float> to(2);
  const std::pair<const char*, std::string> all[] = {{"F16", bytesOf<uint16_t>({0x3c00, 0xb800})},
                                                     {"BF16", bytesOf<uint16_t>({0x3f80, 0xbf00})},
                                                     {"F32", bytesOf<float>({1, -0.5F})},
                                                     {"F64", bytesOf<double>({1, -0.5})}};
  for (const auto& [name, bytes] : all) {
    const auto type = storedFloatOf(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(storedBytes(*type) * 2, bytes.size()) << name;
    EXPECT_EQ(readFloats(*type, bytes, to), std::nullopt) << name;
    EXPECT_THAT(to, ElementsAre(1, -0.5F)) << name;
  }
  EXPECT_EQ(storedFloatOf("I64"), std::nullopt);
  EXPECT_EQ(storedFloatOf("F8_E4M3"), std::nullopt);
}

// A number that would become infinite is no number of the file.
TEST(StoredFloats, ADoubleBeyondFloat32IsReported) {
  std::vector<float> to(3);
  EXPECT_EQ(readFloats(StoredFloat::kFloat64, bytesOf<double>({1, -1e300, 1e301}), to),
            "element 1 is -1e+300, which float32 doesn't hold");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      readFloats(StoredFloat::kFloat64, bytesOf<double>({infinity, std::nan(""), 1e-320}), to),
      std::nullopt);
  EXPECT_TRUE(std::isinf(to[0]) && std::isnan(to[1]));
  EXPECT_EQ(to[2], 0);
}

TEST(StoredFloats, OfNoElementsNeedNoBytes) {
  for (const auto type : {StoredFloat::kFloat32, StoredFloat::kFloat64})
    EXPECT_EQ(readFloats(type, "", {}), std::nullopt);
}

}  // namespace
}  // namespace dtf::model_files
