#include "common/tensor/buffer.h"

#include <gtest/gtest.h>

#include "common/base/shared_memory.h"

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
  EXPECT_EQ(Buffer::shared(0).data(), nullptr);
  EXPECT_EQ(Buffer::shared(0).sharedMemory(), nullptr);
}

TEST(Buffer, MayLieWhereOthersCanReadIt) {
  Buffer buffer = Buffer::shared(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0u);
  EXPECT_EQ(buffer.bytes(), 100u);
  EXPECT_EQ(buffer.sharedMemory()->data(), buffer.data());
  EXPECT_EQ(buffer.sharedMemory()->bytes(), 128u) << "padded as any other";
  EXPECT_EQ(Buffer(100).sharedMemory(), nullptr);
  Buffer moved = std::move(buffer);
  moved.data()[127] = std::byte{1};
  moved = Buffer(8);
  EXPECT_EQ(moved.sharedMemory(), nullptr);
}

}  // namespace dtf
