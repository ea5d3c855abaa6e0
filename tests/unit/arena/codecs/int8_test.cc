#include "common/arena/codecs/int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dtf::arena {
namespace {

TEST(Int8Codec, AQuarterOfTheBytesAndAScaleForEachBlockAreSent) {
  EXPECT_EQ(Int8Codec(0).bytes(), 0u);
  EXPECT_EQ(Int8Codec(256).bytes(), 264u) << "260, in whole words";
  EXPECT_EQ(Int8Codec(258).bytes(), 272u) << "260 and 8";
  constexpr uint64_t kLarge = 1 << 20;
  EXPECT_LT(Int8Codec(kLarge).bytes(), 0.27 * kLarge * sizeof(float));
}

// The scale is the power of two that the largest value needs.
TEST(Int8Codec, AValueIsRoundedToTheNearestOf255) {
  std::vector<float> values = {127, -127, 1.4F, 1.6F, 2.5F, 3.5F}, residual(6), came(6);
  const Int8Codec codec(values.size());
  std::vector<std::byte> bytes(codec.bytes());
  codec.encode({values.data(), {}, residual.data()}, {0, values.size()}, bytes.data());
  codec.decode(bytes, {}, came.data());
  EXPECT_EQ(came, (std::vector<float>{127, -127, 1, 2, 2, 4}));
  values = {127.5F, 0, 0, 0, 0, 0};
  residual = std::vector<float>(6);
  codec.encode({values.data(), {}, residual.data()}, {0, values.size()}, bytes.data());
  codec.decode(bytes, {}, came.data());
  EXPECT_EQ(came[0], 128) << "in steps of two";
  EXPECT_EQ(residual[0], -0.5F);
}

// The smallest and the largest numbers lose nothing either.
TEST(Int8Codec, TheResidualLosesNothingAtTheEndsOfFloat32) {
  for (const float size :
       {0x1p-149F, 0x1p-130F, 0x1p-126F, 0x1.fffffep-120F, 1.0F, 0x1p120F, 0x1.fffffep126F}) {
    std::vector<float> values = {size, -size, size / 3, 0, -0.0F, size / 1000}, residual(6),
                       came(6);
    const Int8Codec codec(values.size());
    std::vector<std::byte> bytes(codec.bytes());
    codec.encode({values.data(), {}, residual.data()}, {0, values.size()}, bytes.data());
    codec.decode(bytes, {}, came.data());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(came[i] + residual[i], values[i]) << size;
  }
}

}  // namespace
}  // namespace dtf::arena
