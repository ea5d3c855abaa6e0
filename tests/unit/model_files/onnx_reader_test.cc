// tests/e2e/import_python_test.py imports files that PyTorch wrote.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "common/base/error.h"
#include "common/model_files/onnx_proto.h"
#include "common/model_files/weight_order.h"
#include "tests/unit/model_files/found_values.h"
#include "tests/unit/model_files/onnx_protos.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string mistakeIn(const std::string& onnx) {
  try {
    parseOnnxWeights(onnx, "m.onnx");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  ADD_FAILURE() << "must throw";
  return "";
}

TEST(OnnxReader, TurnsFiltersAndTransposedMatrices) {
  OnnxProto proto;
  const std::vector<float> filter = countedTo(24), matrix = countedTo(6), bias = countedTo(3);
  proto.addConstant("filter", std::vector<int64_t>{4, 3, 2, 1}, filter);
  proto.addConstant("matrix", std::vector<int64_t>{3, 2}, matrix);
  proto.addConstant("plain", std::vector<int64_t>{3, 2}, matrix);
  proto.addConstant("bias", std::vector<int64_t>{3}, bias);
  proto.addConstant("integers", std::vector<int64_t>{1, 2});
  const OnnxAttribute transposed{"transB", int64_t{1}};
  const OnnxAttribute straight{"transB", int64_t{0}};
  proto.addNode("Conv", std::vector<std::string>{"x", "filter"}, "a", {});
  proto.addNode("Gemm", std::vector<std::string>{"a", "matrix", "bias"}, "b", {&transposed, 1});
  proto.addNode("Gemm", std::vector<std::string>{"b", "plain"}, "c", {&straight, 1});
  const OnnxValue value{"x", DType::kFloat32, {2}};
  const FoundWeights found =
      parseOnnxWeights(proto.finish("g", {&value, 1}, {&value, 1}, {}), "m.onnx");
  ASSERT_EQ(found.tensors.size(), 4u);
  EXPECT_EQ(found.tensors[0].value.shape(), (Shape{2, 1, 3, 4}));
  EXPECT_EQ(valuesOf(found.tensors[0]), channelsLast(Shape{4, 3, 2, 1}, filter));
  EXPECT_EQ(found.tensors[1].value.shape(), (Shape{2, 3}));
  EXPECT_THAT(valuesOf(found.tensors[1]), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_EQ(found.tensors[2].value.shape(), (Shape{3, 2}));
  EXPECT_EQ(valuesOf(found.tensors[2]), matrix);
  EXPECT_EQ(valuesOf(found.tensors[3]), bias);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].name, "integers");
  EXPECT_EQ(found.skipped[0].why,
            "its type is 7, and 1, 10, 11 and 16, floats of each width, are read");
}

// Published models are often in half precision.
TEST(OnnxReader, TakesFloatsOfEachWidth) {
  const FoundWeights found = parseOnnxWeights(
      modelProto({withRaw(tensorProto("half", {1}, 10), bytesOf<uint16_t>({0x3c00})),
                  withRaw(tensorProto("bfloat", {1}, 16), bytesOf<uint16_t>({0x3f80})),
                  withRaw(tensorProto("double", {1}, 11), bytesOf<double>({1})),
                  withRaw(tensorProto("large", {1}, 11), bytesOf<double>({1e300}))}),
      "m.onnx");
  ASSERT_EQ(found.tensors.size(), 3u);
  for (const FoundTensor& tensor : found.tensors)
    EXPECT_THAT(valuesOf(tensor), ElementsAre(1)) << tensor.name;
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].why, "element 0 is 1e+300, which float32 doesn't hold");
}

// Some exporters write weights as the values of nodes.
TEST(OnnxReader, TakesTheValuesOfConstantNodes) {
  const auto constant = [](const std::string& name, const std::string& attribute) {
    std::string node;
    protozero::pbf_writer proto(node);
    proto.add_string(2, name);
    proto.add_string(4, "Constant");
    proto.add_message(5, attribute);
    return node;
  };
  const auto valueOf = [](const std::string& tensor) {
    std::string attribute;
    protozero::pbf_writer proto(attribute);
    proto.add_string(1, "value");
    proto.add_message(5, tensor);
    return attribute;
  };
  std::string floats, product;
  const std::vector<float> three = {7, 8, 9};
  protozero::pbf_writer floats_proto(floats);
  floats_proto.add_string(1, "value_floats");
  floats_proto.add_packed_float(7, three.begin(), three.end());
  protozero::pbf_writer product_proto(product);
  for (const char* const input : {"x", "matrix"}) product_proto.add_string(1, input);
  product_proto.add_string(2, "y");
  product_proto.add_string(4, "MatMul");
  const FoundWeights found = parseOnnxWeights(
      modelProto(
          {},
          {constant("matrix", valueOf(withRaw(tensorProto("", {2, 1}, 1), bytesOf<float>({5, 6})))),
           constant("vector", floats),
           constant("factor", valueOf(withRaw(tensorProto("", {}, 1), bytesOf<float>({2})))),
           constant("sizes", valueOf(withRaw(tensorProto("", {1}, 7), bytesOf<int64_t>({2})))),
           product}),
      "m.onnx");
  EXPECT_TRUE(found.skipped.empty());
  ASSERT_EQ(found.tensors.size(), 2u);
  EXPECT_EQ(found.tensors[0].name, "matrix");
  EXPECT_EQ(found.tensors[0].layout, WeightLayout::kUnknownRows);  // a MatMul reads it
  EXPECT_THAT(valuesOf(found.tensors[0]), ElementsAre(5, 6));
  EXPECT_EQ(found.tensors[1].name, "vector");
  EXPECT_EQ(valuesOf(found.tensors[1]), three);
}

TEST(OnnxReader, TakesTensorsInOtherFiles) {
  const std::string model =
      modelProto({withPlace(tensorProto("t", {2}, 1), {{"location", "m.data"}, {"offset", "4"}})});
  const FoundWeights skipped = parseOnnxWeights(model, "m.onnx");
  ASSERT_EQ(skipped.skipped.size(), 1u);
  EXPECT_EQ(skipped.skipped[0].why, "its data are in another file");
  const FoundWeights found =
      parseOnnxWeights(model, "m.onnx", [](const OnnxPlace& place, uint64_t bytes) {
        EXPECT_EQ(place.location, "m.data");
        EXPECT_EQ(place.offset, 4u);
        EXPECT_EQ(bytes, 8u);
        return bytesOf<float>({1, 2});
      });
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_THAT(valuesOf(found.tensors[0]), ElementsAre(1, 2));
  try {
    parseOnnxWeights(model, "m.onnx", [](const OnnxPlace&, uint64_t) -> std::string {
      throw Error(ErrorCode::kBadData, "its data are gone");
    });
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "m.onnx: tensor 't': its data are gone");
  }
}

// Older exporters write such tensors.
TEST(OnnxReader, TakesNumbersThatAreNoBytes) {
  std::string tensor;
  protozero::pbf_writer proto(tensor);
  const std::vector<int64_t> dims = {2};
  proto.add_packed_int64(1, dims.begin(), dims.end());
  proto.add_int32(2, 1);
  const std::vector<float> values = {3, 4};
  proto.add_packed_float(4, values.begin(), values.end());
  proto.add_string(8, "t");
  std::string graph, model;
  protozero::pbf_writer(graph).add_message(5, tensor);
  protozero::pbf_writer(model).add_message(7, graph);
  const FoundWeights found = parseOnnxWeights(model, "m.onnx");
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_EQ(valuesOf(found.tensors[0]), values);
}

TEST(OnnxReader, RefusesWhatDoesNotFit) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{3}, {-1}, {int64_t{1} << 62, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 2}}) {
    std::string tensor, graph, model;
    protozero::pbf_writer proto(tensor);
    for (const int64_t dim : dims) proto.add_int64(1, dim);
    proto.add_int32(2, 1);
    proto.add_string(8, "t");
    proto.add_bytes(9, std::string(8, 'x'));
    protozero::pbf_writer(graph).add_message(5, tensor);
    protozero::pbf_writer(model).add_message(7, graph);
    EXPECT_THAT(mistakeIn(model), HasSubstr("m.onnx: tensor 't': its shape"));
    EXPECT_THAT(mistakeIn(model.substr(0, model.size() - 1)),
                HasSubstr("no ONNX model, or damaged"));
  }
}

// An empty entry is two bytes of the file, and many in memory.
TEST(OnnxReader, RefusesMoreEntriesThanItsBytesHold) {
  const auto modelOf = [](uint32_t field, size_t count, const std::string& entry) {
    std::string graph, model;
    protozero::pbf_writer proto(graph);
    for (size_t i = 0; i < count; ++i) proto.add_message(field, entry);
    protozero::pbf_writer(model).add_message(7, graph);
    return model;
  };
  std::string node;
  protozero::pbf_writer proto(node);
  proto.add_string(2, "y");
  proto.add_string(4, "Or");
  for (const uint32_t field : {1U, 5U, 11U}) {  // nodes, initializers, inputs
    EXPECT_THAT(mistakeIn(modelOf(field, 1000, "")), HasSubstr("m.onnx: it is no ONNX model, or "
                                                               "damaged: it has more nodes"));
  }
  EXPECT_TRUE(parseOnnxWeights(modelOf(1, 1000, node), "m.onnx").tensors.empty());
  EXPECT_THAT(mistakeIn(modelOf(1, (size_t{1} << 20) + 1, node)), HasSubstr("more than 1048576"));
}

// A file that dtf exported has dtf's layout, whatever its nodes look like.
TEST(OnnxReader, SaysWhatTheRowsOfAMatrixAre) {
  const auto layoutOf = [](const std::vector<int64_t>& example,
                           const std::map<std::string, std::string>& metadata) {
    OnnxProto proto;
    proto.addConstant("fc.weight", std::vector<int64_t>{3, 8}, countedTo(24));
    const OnnxAttribute transposed{"transB", int64_t{1}};
    proto.addNode("Flatten", std::vector<std::string>{"x"}, "rows", {});
    proto.addNode("Gemm", std::vector<std::string>{"rows", "fc.weight"}, "y", {&transposed, 1});
    const OnnxValue input{"x", DType::kFloat32, example}, output{"y", DType::kFloat32, {3}};
    const FoundWeights found =
        parseOnnxWeights(proto.finish("g", {&input, 1}, {&output, 1}, metadata), "m.onnx");
    EXPECT_EQ(found.input, example.size() == 3 ? example : std::vector<int64_t>{});
    EXPECT_TRUE(found.tensors[0].turned);
    return found.tensors[0].layout;
  };
  EXPECT_EQ(layoutOf({2, 2, 2}, {}), WeightLayout::kInputRows);
  EXPECT_EQ(layoutOf({8}, {}), WeightLayout::kUnknownRows);
  EXPECT_EQ(layoutOf({2, 2, 2}, {{"dtf_version", "1"}}), WeightLayout::kDtf);
}

}  // namespace
}  // namespace dtf::model_files
