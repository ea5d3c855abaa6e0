#include "common/model_files/onnx_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/model_files/onnx_protos.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;

std::vector<float> numbersOf(const std::string& proto) {
  const OnnxTensor tensor = readOnnxTensor(protozero::pbf_reader(proto));
  const std::optional<StoredFloat> type = onnxFloatOf(tensor);
  if (!type) return {};
  const std::string_view bytes = ownBytes(tensor);
  EXPECT_EQ(onnxBytes(tensor, *type), bytes.size());
  std::vector<float> numbers(bytes.size() / storedBytes(*type));
  EXPECT_EQ(readFloats(*type, bytes, numbers), std::nullopt);
  return numbers;
}

TEST(OnnxTensor, FloatsOfEachWidthAreReadAsBytes) {
  EXPECT_THAT(numbersOf(withRaw(tensorProto("t", {2}, 1), bytesOf<float>({1, 2}))),
              ElementsAre(1, 2));
  EXPECT_THAT(numbersOf(withRaw(tensorProto("t", {1, 1}, 10), bytesOf<uint16_t>({0x3c00}))),
              ElementsAre(1));
  EXPECT_THAT(numbersOf(withRaw(tensorProto("t", {1}, 16), bytesOf<uint16_t>({0xbf80}))),
              ElementsAre(-1));
  EXPECT_THAT(numbersOf(withRaw(tensorProto("t", {}, 11), bytesOf<double>({0.5}))),
              ElementsAre(0.5F));
}

// Fields float_data, int32_data and double_data.
TEST(OnnxTensor, FloatsOfEachWidthAreReadAsNumbers) {
  const std::vector<float> floats = {3, 4};
  const std::vector<int32_t> halves = {0x3c00, 0xc000};
  const std::vector<double> doubles = {0.25};
  std::string f32 = tensorProto("t", {2}, 1), f16 = tensorProto("t", {2}, 10),
              f64 = tensorProto("t", {1}, 11);
  protozero::pbf_writer(f32).add_packed_float(4, floats.begin(), floats.end());
  protozero::pbf_writer(f16).add_packed_int32(5, halves.begin(), halves.end());
  protozero::pbf_writer(f64).add_packed_double(10, doubles.begin(), doubles.end());
  EXPECT_THAT(numbersOf(f32), ElementsAre(3, 4));
  EXPECT_THAT(numbersOf(f16), ElementsAre(1, -2));
  EXPECT_THAT(numbersOf(f64), ElementsAre(0.25F));
}

TEST(OnnxTensor, OtherTypesAreNoFloats) {
  for (const int32_t type : {0, 2, 6, 7, 8, 9, 14, 17}) {
    const std::string proto = tensorProto("t", {1}, type);
    EXPECT_EQ(onnxFloatOf(readOnnxTensor(protozero::pbf_reader(proto))), std::nullopt) << type;
  }
}

TEST(OnnxTensor, AShapeHasASizeOrNone) {
  OnnxTensor tensor;
  EXPECT_EQ(onnxBytes(tensor, StoredFloat::kFloat64), 8u);
  tensor.dims = {3, 0};
  EXPECT_EQ(onnxBytes(tensor, StoredFloat::kFloat32), 0u);
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{-1}, {int64_t{1} << 62, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    tensor.dims = dims;
    EXPECT_EQ(onnxBytes(tensor, StoredFloat::kFloat16), std::nullopt);
  }
}

TEST(OnnxTensor, APlaceInAnotherFileIsRead) {
  const auto placeOf = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::string proto = withPlace(tensorProto("t", {1}, 1), entries);
    return readOnnxTensor(protozero::pbf_reader(proto)).elsewhere.value();
  };
  const OnnxPlace place =
      placeOf({{"location", "m.data"}, {"offset", "64"}, {"length", "4"}, {"checksum", "x"}});
  EXPECT_EQ(place.location, "m.data");
  EXPECT_EQ(place.offset, 64u);
  EXPECT_EQ(place.length, 4u);
  EXPECT_EQ(place.mistake, "");
  EXPECT_EQ(placeOf({{"location", "m.data"}}).length, std::nullopt);
  EXPECT_EQ(placeOf({{"offset", "-1"}}).mistake, "its offset '-1' is no number");
  EXPECT_EQ(placeOf({{"length", "18446744073709551616"}}).mistake,
            "its length '18446744073709551616' is no number");
  const std::string here = tensorProto("t", {1}, 1);
  EXPECT_FALSE(readOnnxTensor(protozero::pbf_reader(here)).elsewhere);
}

}  // namespace
}  // namespace dtf::model_files
