#include "common/wire/session/tensor_codec.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/net/reactor.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::wire {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A message and a stream, which nothing is written to: the writer only hands it the memory to keep.
struct Message {
  Message() : pipe(kj::newTwoWayPipe()), stream(net::wrapStream(kj::mv(pipe.ends[0]))) {}
  schema::Tensor::Builder root() { return message.initRoot<schema::Tensor>(); }
  net::Reactor reactor;
  kj::TwoWayPipe pipe;
  kj::Own<net::MessageStream> stream;
  capnp::MallocMessageBuilder message;
};

TEST(TensorCodec, ATensorComesBackWhateverItsSize) {
  for (const int64_t elements : {0, 1, 3, 1 << 13, (1 << 14) + 3}) {
    SCOPED_TRACE(elements);
    Tensor tensor(DType::kUInt8, {elements, 5});
    for (size_t i = 0; i < tensor.bytes(); ++i)
      tensor.data()[i] = static_cast<std::byte>(i * 7 % 251);
    Message message;
    auto root = message.root();
    TensorWriter(*message.stream)
        .write({tensor.dtype(), tensor.shape()}, {tensor.data(), tensor.bytes()}, root);
    const Tensor read = readTensor(root.asReader(), "it");
    EXPECT_EQ(read.dtype(), DType::kUInt8);
    EXPECT_EQ(read.shape(), tensor.shape());
    ASSERT_EQ(read.bytes(), tensor.bytes());
    EXPECT_TRUE(std::equal(read.data(), read.data() + read.bytes(), tensor.data()));
  }
}

TEST(TensorCodec, LargeTensorsTravelByReferenceSmallOnesAsCopies) {
  Message message;
  auto list = message.message.initRoot<schema::Part>().initFolded(2);
  const Tensor large(DType::kFloat32, {1 << 14}), small(DType::kFloat32, {2});
  TensorWriter writer(*message.stream);
  const auto write = [&](const Tensor& tensor, uint32_t i) {
    auto builder = list[i].initValue();
    writer.write({tensor.dtype(), tensor.shape()}, {tensor.data(), tensor.bytes()}, builder);
    return reinterpret_cast<const std::byte*>(builder.asReader().getBytes()[0].begin());
  };
  EXPECT_EQ(write(large, 0), large.data());
  EXPECT_NE(write(small, 1), small.data());
}

TEST(TensorCodec, ATensorTakesBlobsOfTheSizeOfTheLink) {
  Message message;
  auto root = message.root();
  Tensor tensor(DType::kUInt8, {100'000});
  tensor.as<uint8_t>()[99'999] = 7;
  TensorWriter(*message.stream, 1 << 14)
      .write({tensor.dtype(), tensor.shape()}, {tensor.data(), tensor.bytes()}, root);
  EXPECT_EQ(root.getBytes().size(), 7u);
  Buffer assembled;
  const engine::Bytes read = readBytes(root.asReader().getBytes(), 100'000, assembled, "it");
  EXPECT_EQ(read.data(), tensor.data()) << "where it lies";
}

// A message has at most 512 segments, and each reference is one.
TEST(TensorCodec, ReferencesOfAMessageAreBounded) {
  Message message;
  auto list = message.message.initRoot<schema::Part>().initFolded(600);
  const Tensor tensor(DType::kFloat32, {1 << 13});
  TensorWriter writer(*message.stream);
  for (uint32_t i = 0; i < list.size(); ++i)
    writer.write({tensor.dtype(), tensor.shape()}, {tensor.data(), tensor.bytes()},
                 list[i].initValue());
  EXPECT_LE(message.message.getSegmentsForOutput().size(), kTensorLimits.segments_max);
}

TEST(TensorCodec, WhatOneMessageCantHaveIsToldInWords) {
  uint64_t in_message = 0;
  addToMessage(in_message, kTensorBytesMax, "the first");
  EXPECT_EQ(in_message, kTensorBytesMax);
  EXPECT_THAT(errorText([&] { addToMessage(in_message, kTensorBytesMax, "the second"); }),
              AllOf(HasSubstr("with the second a message has 16.0 GiB of tensors"),
                    HasSubstr("feed and fetch less")));
  EXPECT_THAT(errorText([&] { addToMessage(in_message, kTensorBytesMax + 1, "the value of 'w'"); }),
              AllOf(HasSubstr("the value of 'w' has 8.0 GiB"), HasSubstr("split it")));
}

TEST(TensorCodec, WhatIsNotReferredToIsCopied) {
  EXPECT_EQ(copiedBytes(std::vector<uint64_t>{100, 1 << 20, 10}), 110u);
  EXPECT_EQ(copiedBytes(std::vector<uint64_t>{100, 1 << 20}, 1 << 10), (1 << 20) + 100u)
      << "1024 blobs are too many to be referred to";
  EXPECT_EQ(copiedBytes(std::vector<uint64_t>(500, 1 << 20)), 100u << 20);
}

TEST(TensorCodec, BlobsThatLieApartAreJoined) {
  Message message;
  auto root = message.root();
  root.setDtype(2);
  root.initShape(1).set(0, 5);
  auto blobs = root.initBytes(3);
  blobs.set(0, capnp::Data::Reader(reinterpret_cast<const kj::byte*>("ab"), 2));
  blobs.init(1, 0);
  blobs.set(2, capnp::Data::Reader(reinterpret_cast<const kj::byte*>("cde"), 3));
  const Tensor read = readTensor(root.asReader(), "it");
  EXPECT_EQ(std::memcmp(read.data(), "abcde", 5), 0);
}

TEST(TensorCodec, BlobsThatAreEmptyOrMissingDontMatter) {
  for (const uint32_t at : {0u, 1u, 2u}) {
    SCOPED_TRACE(at);
    Message message;
    auto root = message.root();
    root.setDtype(2);
    root.initShape(1).set(0, 5);
    auto blobs = root.initBytes(3);  // three null pointers at first
    blobs.set(at, capnp::Data::Reader(reinterpret_cast<const kj::byte*>("abcde"), 5));
    const Tensor read = readTensor(root.asReader(), "it");
    EXPECT_EQ(std::memcmp(read.data(), "abcde", 5), 0);
  }
}

TEST(TensorCodec, ClaimsThatDontHoldAreRefusedByName) {
  const auto refusal = [](uint8_t dtype, const std::vector<int64_t>& shape, uint32_t bytes) {
    Message message;
    auto root = message.root();
    root.setDtype(dtype);
    auto dims = root.initShape(static_cast<uint32_t>(shape.size()));
    for (uint32_t i = 0; i < dims.size(); ++i) dims.set(i, shape[i]);
    if (bytes > 0) root.initBytes(1).init(0, bytes);
    return errorText([&] { readTensor(root.asReader(), "feed 3"); });
  };
  EXPECT_EQ(refusal(1, {2}, 8), "");
  EXPECT_EQ(refusal(1, {0, int64_t{1} << 30}, 0), "");
  EXPECT_THAT(refusal(0, {2}, 8), HasSubstr("feed 3 has the unknown element type 0"));
  EXPECT_THAT(refusal(5, {2}, 8), HasSubstr("element type 5"));
  EXPECT_THAT(refusal(1, {2}, 9), HasSubstr("9 bytes instead of 8"));
  EXPECT_THAT(refusal(1, {-1}, 0), HasSubstr("dimension -1"));
  EXPECT_THAT(refusal(1, std::vector<int64_t>(17, 1), 4), HasSubstr("rank 17"));
  EXPECT_THAT(refusal(1, {int64_t{1} << 40, int64_t{1} << 40}, 0), HasSubstr("most of one tensor"));
  EXPECT_THAT(refusal(1, {int64_t{1} << 62, 0, int64_t{1} << 62}, 0),
              HasSubstr("most of one tensor"))
      << "a zero hides nothing";
  EXPECT_THAT(refusal(4, {int64_t{1} << 31}, 0), HasSubstr("most of one tensor"));
}

}  // namespace
}  // namespace dtf::wire
