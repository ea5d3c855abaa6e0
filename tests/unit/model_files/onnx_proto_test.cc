#include "common/model_files/onnx_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/model_files/onnx_texts.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using Names = std::vector<std::string>;

const OnnxValue kX{"x", DType::kFloat32, {4, 3}}, kY{"y", DType::kInt64, {}};

std::string finished(OnnxProto& proto, const std::map<std::string, std::string>& metadata = {}) {
  return proto.finish("net", std::array{kX}, std::array{kY}, metadata);
}
// Returns the whole numbers under `field` of a message.
std::vector<int64_t> numbersAt(const std::string& bytes, uint32_t field) {
  std::vector<int64_t> found;
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    if (reader.tag() == field && reader.wire_type() == protozero::pbf_wire_type::varint)
      found.push_back(reader.get_int64());
    else
      reader.skip();
  }
  return found;
}

TEST(OnnxProto, NodesKeepTheirOrderAndHaveNamesOfTheirOwn) {
  OnnxProto proto;
  proto.addNode("Relu", Names{"x"}, "a", {});
  proto.addNode("Add", Names{"a", "x"}, "y", {});
  const std::string onnx = finished(proto);
  EXPECT_THAT(textsAt(onnx, {7, 1, 4}), ElementsAre("Relu", "Add"));
  EXPECT_THAT(textsAt(onnx, {7, 1, 3}), ElementsAre("Relu_0", "Add_1"));
  EXPECT_THAT(textsAt(onnx, {7, 1, 1}), ElementsAre("x", "a", "x"));
  EXPECT_THAT(textsAt(onnx, {7, 1, 2}), ElementsAre("a", "y"));
}

TEST(OnnxProto, AnAttributeSaysItsType) {
  OnnxProto proto;
  const std::vector<OnnxAttribute> attributes = {
      {"axis", int64_t{-1}}, {"alpha", 0.5F}, {"perm", std::vector<int64_t>{0, 2, 1}}};
  proto.addNode("Test", Names{"x"}, "y", attributes);
  const std::vector<std::string> encoded = textsAt(finished(proto), {7, 1, 5});
  ASSERT_EQ(encoded.size(), 3u);
  EXPECT_THAT(numbersAt(encoded[0], 3), ElementsAre(-1));
  EXPECT_THAT(numbersAt(encoded[2], 8), ElementsAre(0, 2, 1));
  EXPECT_THAT(numbersAt(encoded[0], 20), ElementsAre(2)) << "INT";
  EXPECT_THAT(numbersAt(encoded[1], 20), ElementsAre(1)) << "FLOAT";
  EXPECT_THAT(numbersAt(encoded[2], 20), ElementsAre(7)) << "INTS";
}

TEST(OnnxProto, AConstantHasItsBytesAndItsShape) {
  OnnxProto proto;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  proto.addConstant("w", std::vector<int64_t>{2, 3}, values);
  proto.addConstant("shape", std::vector<int64_t>{-1, 6});
  const std::string onnx = finished(proto);
  EXPECT_EQ(initializer(onnx, "w"), values);
  const std::vector<std::string> tensors = textsAt(onnx, {7, 5});
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_THAT(numbersAt(tensors[0], 1), ElementsAre(2, 3));
  EXPECT_THAT(numbersAt(tensors[0], 2), ElementsAre(onnxType(DType::kFloat32)));
  EXPECT_THAT(numbersAt(tensors[1], 1), ElementsAre(2));
  EXPECT_THAT(numbersAt(tensors[1], 2), ElementsAre(onnxType(DType::kInt64)));
}

TEST(OnnxProto, TheFileSaysItsVersionsItsValuesAndItsMetadata) {
  OnnxProto proto;
  proto.addNode("Relu", Names{"x"}, "y", {});
  const std::string onnx = finished(proto, {{"job", "digits"}});
  EXPECT_THAT(numbersAt(onnx, 1), ElementsAre(kOnnxIrVersion));
  EXPECT_THAT(numbersAt(textsAt(onnx, {8}).at(0), 2), ElementsAre(kOnnxOpset));
  EXPECT_THAT(textsAt(onnx, {7, 2}), ElementsAre("net"));
  EXPECT_THAT(textsAt(onnx, {7, 11, 1}), ElementsAre("x"));
  EXPECT_THAT(textsAt(onnx, {7, 12, 1}), ElementsAre("y"));
  EXPECT_THAT(textsAt(onnx, {14, 1}), ElementsAre("job"));
  EXPECT_THAT(textsAt(onnx, {14, 2}), ElementsAre("digits"));
}

TEST(OnnxProtoDeathTest, ValuesFillTheirShape) {
  OnnxProto proto;
  EXPECT_DEATH(proto.addConstant("w", std::vector<int64_t>{2, 3}, std::vector<float>(5)), "w");
}

}  // namespace
}  // namespace dtf::model_files
