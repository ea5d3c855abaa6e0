#include "common/model_files/weight_files.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "common/checkpoint/safetensors.h"
#include "tests/unit/model/models.h"

namespace dtf::model_files {
namespace {

std::vector<NamedTensor> softmaxVariables() {
  std::vector<NamedTensor> variables;
  variables.push_back({"softmax/weights", Tensor(DType::kFloat32, Shape{784, 10})});
  variables.push_back({"softmax/biases", Tensor(DType::kFloat32, Shape{10})});
  for (NamedTensor& variable : variables) {
    const std::span<float> values = variable.value.as<float>();
    std::iota(values.begin(), values.end(), 0.5F);
  }
  return variables;
}

TEST(WeightFiles, SafetensorsHoldsEachVariableWholeAndSaysWhatItReads) {
  const model::ModelSpec model = model::softmaxModel();
  const std::vector<NamedTensor> variables = softmaxVariables();
  const std::string bytes = encodeSafetensors({"digits", 7, true, model, variables});
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const checkpoint::SafetensorsHeader header = checkpoint::parseSafetensorsHeader(
      bytes.substr(8, header_bytes), bytes.size() - 8 - header_bytes);
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "softmax/weights");
  EXPECT_EQ(header.entries[0].shape, (std::vector<uint64_t>{784, 10}));
  EXPECT_EQ(std::memcmp(bytes.data() + 8 + header_bytes + header.entries[1].begin,
                        variables[1].value.data(), 40),
            0);
  EXPECT_EQ(header.metadata.at("job"), "digits");
  EXPECT_EQ(header.metadata.at("step"), "7");
  EXPECT_EQ(header.metadata.at("moving_averages"), "true");
  EXPECT_EQ(header.metadata.at("input"), "features: uint8 [batch, 28, 28, 1]");
  EXPECT_EQ(header.metadata.at("scaling"), "features / 255: pixels from 0 to 255 become 0 to 1");
  EXPECT_EQ(header.metadata.at("layouts").find("matrices [inputs, units]"), 0u);
  EXPECT_EQ(
      header.metadata.at("output"),
      "probabilities: float32 [batch, 10], the softmax of the last layer; classes 0 to 9, the "
      "largest one counts");
  EXPECT_NE(header.metadata.at("model").find("dense softmax: units=10"), std::string::npos);
}

TEST(WeightFiles, NpzHoldsTheSame) {
  model::ModelSpec model = model::softmaxModel();
  model.input_dtype = DType::kFloat32;
  model.labels_dtype = DType::kFloat32;
  model.loss.kind = model::Loss::kMse;
  model.accuracy = false;
  const std::vector<NamedTensor> variables = softmaxVariables();
  const std::string bytes = encodeNpz({"digits", 7, false, model, variables});
  EXPECT_NE(bytes.find("softmax/weights.npy"), std::string::npos);
  const std::string values(reinterpret_cast<const char*>(variables[0].value.data()),
                           variables[0].value.bytes());
  EXPECT_NE(bytes.find(values), std::string::npos);
  const size_t begin = bytes.find("{\n  \""), end = bytes.find("\n}", begin);
  const Json metadata = Json::parse(bytes.substr(begin, end + 2 - begin));
  EXPECT_EQ(metadata["scaling"], "none: features are read as they are");
  EXPECT_EQ(metadata["output"], "outputs: float32 [batch, 10]");
}

}  // namespace
}  // namespace dtf::model_files
