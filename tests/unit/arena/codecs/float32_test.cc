#include "common/arena/codecs/float32.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace dtf::arena {
namespace {

TEST(Float32Codec, IsTheArenaItself) {
  const Float32Codec codec(4);
  EXPECT_TRUE(codec.isIdentity());
  EXPECT_EQ(codec.bytes(), 16u);
  const std::vector<float> values = {1, -0.0F, std::bit_cast<float>(0x7f800001), 4};
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(codec.encode({.values = values.data()}, {0, 3}, bytes.data()), 12u);
  EXPECT_EQ(codec.encode({.values = values.data()}, {3, 4}, bytes.data()), 16u);
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(values))));
}

}  // namespace
}  // namespace dtf::arena
