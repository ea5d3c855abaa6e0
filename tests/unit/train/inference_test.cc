#include "common/train/inference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/arena/initial_value.h"
#include "common/train/initial_values.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

class InferenceTest : public ::testing::Test {
 protected:
  std::vector<float> outputsOf(const model::ModelSpec& model, std::span<const std::byte> examples) {
    Inference inference(model, kernels_, device_);
    EXPECT_EQ(inference.units(), 10);
    EXPECT_EQ(inference.features(), (graph::TensorSpec{DType::kUInt8, Shape{28, 28, 1}}));
    inference.bindValues(values_);
    std::vector<float> all;
    inference.run({&examples, 1}, [&](int64_t first, std::span<const float> outputs) {
      EXPECT_EQ(static_cast<size_t>(first) * 10, all.size()) << "one piece after another";
      all.insert(all.end(), outputs.begin(), outputs.end());
    });
    return all;
  }

  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  const Tensor weights_ = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const Tensor biases_ = arena::initialValue("glorot_uniform", Shape{10}, 3, 1);
  const std::vector<const float*> values_ = {weights_.as<float>().data(),
                                             biases_.as<float>().data()};
};

std::vector<std::byte> someImages(size_t count) {
  std::vector<std::byte> bytes(count * 784);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 % 251);
  return bytes;
}

TEST_F(InferenceTest, GivesTheSoftmaxOfEachExampleWhateverTheirNumber) {
  for (const size_t count : {1, 249, 250, 251, 503}) {
    const std::vector<std::byte> images = someImages(count);
    const std::vector<float> outputs = outputsOf(model::softmaxModel(), images);
    ASSERT_EQ(outputs.size(), count * 10);
    for (size_t i = 0; i < count; ++i) {
      std::array<double, 10> logits{};
      double sum = 0;
      for (size_t c = 0; c < 10; ++c) {
        logits[c] = biases_.as<float>()[c];
        for (size_t p = 0; p < 784; ++p)
          logits[c] +=
              static_cast<int>(images[i * 784 + p]) / 255.0 * weights_.as<float>()[p * 10 + c];
        sum += std::exp(logits[c]);
      }
      for (size_t c = 0; c < 10; ++c)
        ASSERT_NEAR(outputs[i * 10 + c], std::exp(logits[c]) / sum, 1e-5) << i << " " << c;
    }
  }
}

TEST_F(InferenceTest, LeavesDropoutOut) {
  const std::vector<std::byte> images = someImages(7);
  model::ModelSpec dropping = model::softmaxModel();
  dropping.layers.insert(dropping.layers.begin() + 1, model::dropout("dropout", 0.9));
  EXPECT_EQ(outputsOf(dropping, images), outputsOf(model::softmaxModel(), images));
}

}  // namespace
}  // namespace dtf::train
