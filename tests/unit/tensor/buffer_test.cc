#include "common/tensor/buffer.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(Buffer, IsAlignedZeroedAndMovable) {
  Buffer buffer(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0u);
  for (size_t i = 0; i < buffer.bytes(); ++i) EXPECT_EQ(buffer.data()[i], std::byte{0});
  std::byte* data = buffer.data();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
}

TEST(Buffer, OfNothingIsNull) {
  EXPECT_EQ(Buffer(0).data(), nullptr);
}

}  // namespace dtf
