#include "common/summary/proto_writer.h"

#include <gtest/gtest.h>

namespace dtf::summary {

using namespace std::string_literals;

// The bytes of https://protobuf.dev/programming-guides/encoding/.
TEST(ProtoWriter, WritesVarints) {
  ProtoWriter proto;
  proto.integer(1, 150);
  EXPECT_EQ(proto.encoded(), "\x08\x96\x01"s);
}

TEST(ProtoWriter, WritesNegativeIntegersInTenBytes) {
  ProtoWriter proto;
  proto.integer(1, -2);
  EXPECT_EQ(proto.encoded(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(ProtoWriter, WritesBytesAndMessages) {
  ProtoWriter inner;
  inner.integer(1, 150);
  ProtoWriter proto;
  proto.bytes(2, "testing");
  proto.message(3, inner);
  EXPECT_EQ(proto.encoded(), "\x12\x07testing\x1a\x03\x08\x96\x01"s);
}

TEST(ProtoWriter, WritesFixedNumbersLittleEndian) {
  ProtoWriter proto;
  proto.number(1, 1.0);
  proto.single(2, 1.0f);
  EXPECT_EQ(proto.encoded(), "\x09\0\0\0\0\0\0\xf0\x3f\x15\0\0\x80\x3f"s);
}

TEST(ProtoWriter, WritesPackedNumbersAndLargeFieldNumbers) {
  const double values[] = {0, 1};
  ProtoWriter proto;
  proto.packed(16, values);
  EXPECT_EQ(proto.encoded(), "\x82\x01\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\x3f"s);
}

}  // namespace dtf::summary
