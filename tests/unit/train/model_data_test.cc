#include "common/train/model_data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/error.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

using model::ModelSpec;
using model::softmaxModel;

data::Dataset dataset(Shape shape, uint8_t label) {
  data::ByteBlock images(static_cast<size_t>(shape.elements()));
  std::fill_n(images.data(), images.size(), uint8_t{0});
  data::ByteBlock labels(1);
  labels.data()[0] = label;
  return {{{data::kFeatures, DType::kUInt8, std::move(shape)}, "images.gz", std::move(images)},
          {{data::kLabels, DType::kUInt8, Shape()}, "labels.gz", std::move(labels)}};
}

std::string mismatch(data::Dataset dataset, const ModelSpec& model = softmaxModel()) {
  try {
    checkedDataset(model, std::make_shared<data::Dataset>(std::move(dataset)));
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(CheckDataset, RefusesImagesOfAnotherShapeAndLabelsWithoutUnit) {
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 9)), "no error");
  EXPECT_EQ(
      mismatch(dataset({32, 32, 3}, 9)),
      "job.yaml:4:10: error: the model reads examples of shape [28, 28, 1], but got "
      "[32, 32, 3] from images.gz: set model.input.shape to [32, 32, 3], or use other images");
  EXPECT_NE(mismatch(dataset({28, 28, 3}, 9)), "no error");
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 10)),
            "labels.gz: example 0 has label 10, but layer 'softmax' has 10 units (labels 0 to 9): "
            "give it at least 11 "
            "units, or use other labels");
}

TEST(CheckDataset, TheShapeToSetHasTheChannelsThatALayerNeeds) {
  ModelSpec model = softmaxModel();
  model.input_shape = {28, 28};
  EXPECT_NE(mismatch(dataset({16, 16}, 9), model).find("set model.input.shape to [16, 16], or"),
            std::string::npos);
  model.layers.insert(model.layers.begin(),
                      model::layerOf("conv2d", "{filters: 2, kernel_size: 3}", "conv"));
  EXPECT_NE(mismatch(dataset({16, 16}, 9), model).find("set model.input.shape to [16, 16, 1], or"),
            std::string::npos);
}

TEST(CheckDataset, UnitsOfClassesThatNoExampleHasAreFound) {
  ModelSpec model = softmaxModel();
  EXPECT_EQ(classesWithoutExamples(model, dataset({28, 28, 1}, 9)),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  model.layers.back() = model::dense("softmax", kClassesCheckedMax + 1);
  EXPECT_TRUE(classesWithoutExamples(model, dataset({28, 28, 1}, 9)).empty());
}

TEST(CheckDataset, TypesAreThoseThatTheModelWasBuiltFor) {
  const auto floats = [](float target) {
    return data::Dataset(data::partOf<float>(data::kFeatures, Shape{2}, {1, 2}, "f.npy"),
                         data::partOf<float>(data::kLabels, Shape(), {target}, "t.npy"));
  };
  ModelSpec model = softmaxModel();
  model.input_shape = {2};
  model.layers = {model::dense("out", 1)};
  model.accuracy = false;
  model.loss.kind = model::Loss::kMse;
  EXPECT_EQ(mismatch(floats(7), model),
            "job.yaml:4:10: error: the model reads uint8 examples, but got float32 from f.npy: "
            "evaluate on data of the format that it trains on");
  model.input_dtype = DType::kFloat32;
  EXPECT_EQ(mismatch(floats(7), model),
            "job.yaml:3:1: error: the model learns uint8 labels, but got float32 from t.npy: "
            "evaluate on data of the format that it trains on");
  model.labels_dtype = DType::kFloat32;
  EXPECT_EQ(mismatch(floats(7), model), "no error");
  model.loss.kind = model::Loss::kHinge;
  EXPECT_EQ(mismatch(floats(7), model),
            "t.npy: example 0 has target 7, but this loss wants 0 or 1");
  EXPECT_EQ(mismatch(floats(1), model), "no error");
}

TEST(CheckDataset, ASingleChannelNeedsNoDimensionOfItsOwn) {
  ModelSpec model = softmaxModel();
  model.input_shape = {28, 28};
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 9), model), "no error");
  EXPECT_NE(mismatch(dataset({28, 28, 3}, 9), model), "no error");
  model.input_shape = {28, 27};
  EXPECT_NE(mismatch(dataset({28, 28, 1}, 9), model), "no error");
}

}  // namespace
}  // namespace dtf::train
