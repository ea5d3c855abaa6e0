#include "common/model_files/weight_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/checkpoint/safetensors.h"
#include "common/model_files/npy.h"
#include "common/model_files/zip_writer.h"
#include "tests/support/process.h"
#include "tests/unit/model_files/found_values.h"
#include "tests/unit/model_files/onnx_protos.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WeightReader, OfSafetensorsTakesFloatsAndNamesTheRest) {
  std::string bytes = checkpoint::encodeSafetensorsHeader(
      std::vector<checkpoint::SafetensorsEntry>{{"a", "F32", {2}, 0, 8}, {"n", "I64", {1}, 8, 16}},
      {});
  const std::vector<float> values = {1.5F, -2};
  bytes.append(reinterpret_cast<const char*>(values.data()), 8).append(8, 0);
  testing::TemporaryFolder folder;
  const std::string path = folder.write("w.safetensors", bytes);
  const FoundWeights found = readWeights(path);  // a vector has only one layout
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_EQ(found.tensors[0].name, "a");
  EXPECT_EQ(valuesOf(found.tensors[0]), values);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].name, "n");
  EXPECT_EQ(found.skipped[0].why, "its type is I64, and F16, BF16, F32 and F64 are read");
  std::filesystem::create_symlink(path, folder.path() + "/link.safetensors");
  EXPECT_EQ(readWeights(folder.path() + "/link.safetensors").tensors.size(), 1u);
}

// Published weights are often in half precision.
TEST(WeightReader, FloatsOfEachWidthAreRead) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"F16", std::string("\x00\x3c\x00\xb8", 4)},
      {"BF16", std::string("\x80\x3f\x00\xbf", 4)},
      {"F64", std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\xbf", 16)}};
  testing::TemporaryFolder folder;
  for (const auto& [type, bytes] : all) {
    const std::string header = checkpoint::encodeSafetensorsHeader(
        std::vector<checkpoint::SafetensorsEntry>{{"a", type, {2}, 0, bytes.size()}}, {});
    const FoundWeights found = readWeights(folder.write("w.safetensors", header + bytes));
    ASSERT_EQ(found.tensors.size(), 1u) << type;
    EXPECT_EQ(valuesOf(found.tensors[0]), (std::vector<float>{1, -0.5F})) << type;
  }
}

TEST(WeightReader, ADoubleBeyondFloat32IsNotRead) {
  const double large = -1e300;
  const std::string bytes(reinterpret_cast<const char*>(&large), 8);
  testing::TemporaryFolder folder;
  const std::string header = checkpoint::encodeSafetensorsHeader(
      std::vector<checkpoint::SafetensorsEntry>{{"a", "F64", {1}, 0, 8}}, {});
  const FoundWeights found = readWeights(folder.write("w.safetensors", header + bytes));
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].why, "element 0 is -1e+300, which float32 doesn't hold");
}

// torch.onnx.export() writes large weights beside the model.
TEST(WeightReader, OfAnOnnxModelReadsTheFilesBesideIt) {
  testing::TemporaryFolder folder;
  folder.write("m.onnx.data", bytesOf<float>({0, 1, 2}));
  const std::string model = folder.write(
      "m.onnx", modelProto({withPlace(tensorProto("t", {2}, 1),
                                      {{"location", "m.onnx.data"}, {"offset", "4"}})}));
  const FoundWeights found = readWeights(model);
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_THAT(valuesOf(found.tensors[0]), ElementsAre(1, 2));
}

// Unreadable arrays are skipped, and the others are read.
TEST(WeightReader, OfAnArchiveTakesFloatsAndNamesTheRest) {
  ZipWriter zip;
  const float value = 1.5F;
  const std::string_view bytes(reinterpret_cast<const char*>(&value), 4);
  zip.add("a.npy", npyHeader(DType::kFloat32, Shape{1}), bytes);
  zip.add("steps.npy", npyHeader(DType::kInt32, Shape{1}), bytes);
  std::string text = npyHeader(DType::kFloat32, Shape{1});
  text.replace(text.find("<f4"), 3, "<U1");
  zip.add("words.npy", text, bytes);
  testing::TemporaryFolder folder;
  const FoundWeights found = readWeights(folder.write("w.npz", zip.finish()));
  ASSERT_EQ(found.tensors.size(), 1u);
  ASSERT_EQ(found.skipped.size(), 2u);
  EXPECT_EQ(found.skipped[0].why, "its elements are int32, and floats are read");
  EXPECT_EQ(found.skipped[1].why, "its elements are '<U1', and floats are read");
}

std::string usageMistake(const std::string& file, std::optional<WeightLayout> stated) {
  try {
    readWeights(file, stated);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  ADD_FAILURE() << "must throw";
  return "";
}

// A square matrix fits both layouts, so its shape decides nothing.
TEST(WeightReader, HowMatricesLieIsStatedByTheFileOrTheCaller) {
  testing::TemporaryFolder folder;
  const std::vector<checkpoint::SafetensorsEntry> entries = {
      {"fc.weight", "F32", {2, 2}, 0, 16}, {"bn.num_batches_tracked", "I64", {}, 16, 24}};
  const auto write = [&](const char* name, const std::map<std::string, std::string>& metadata) {
    return folder.write(
        name, checkpoint::encodeSafetensorsHeader(entries, metadata) + std::string(24, '\0'));
  };
  const std::string foreign = write("foreign.safetensors", {{"format", "pt"}});
  EXPECT_THAT(usageMistake(foreign, {}),
              HasSubstr("how fc.weight [2, 2] lies isn't said in the file, and its shape can't "
                        "tell. Add --layout pytorch"));
  for (const WeightLayout stated : {WeightLayout::kDtf, WeightLayout::kPyTorch})
    EXPECT_EQ(readWeights(foreign, stated).tensors[0].layout, stated);
  EXPECT_TRUE(readWeights(foreign, WeightLayout::kPyTorch).skipped.empty());
  const std::string own = write("own.safetensors", {{"dtf_version", "1"}});
  EXPECT_EQ(readWeights(own).tensors[0].layout, WeightLayout::kDtf);
  EXPECT_EQ(readWeights(own, WeightLayout::kDtf).tensors[0].layout, WeightLayout::kDtf);
  EXPECT_THAT(usageMistake(own, WeightLayout::kPyTorch), HasSubstr("its metadata say that dtf"));
  const std::string onnx = folder.write("m.onnx", "");
  EXPECT_THAT(usageMistake(onnx, WeightLayout::kPyTorch), HasSubstr("leave --layout out"));
}

TEST(WeightReader, AnArchiveOfDtfSaysSoInItsMetadata) {
  testing::TemporaryFolder folder;
  const std::vector<float> values = countedTo(4);
  const auto write = [&](const char* name, const std::string& metadata) {
    ZipWriter zip;
    zip.add("fc/weights.npy", npyHeader(DType::kFloat32, Shape{2, 2}),
            {reinterpret_cast<const char*>(values.data()), 16});
    if (!metadata.empty()) zip.add("metadata.json", metadata, "");
    return folder.write(name, zip.finish());
  };
  EXPECT_EQ(readWeights(write("own.npz", R"({"dtf_version": "1"})")).tensors[0].layout,
            WeightLayout::kDtf);
  for (const char* const metadata : {"", "{", "[]", R"({"version": "1"})"})
    EXPECT_THAT(usageMistake(write("foreign.npz", metadata), {}), HasSubstr("Add --layout"));
}

TEST(WeightReader, SaysWhatItCanRead) {
  for (const auto& [file, code] : {std::pair{"m.pt", ErrorCode::kUsage},
                                   {"/no/m.safetensors", ErrorCode::kBadData},
                                   {"/no/m.onnx", ErrorCode::kBadData}}) {
    try {
      readWeights(file);
      ADD_FAILURE() << "must throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_THAT(error.message(), HasSubstr(file));
    }
  }
}

}  // namespace
}  // namespace dtf::model_files
