#include "common/train/model_data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/error.h"
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
  return {{"images.gz", "labels.gz"}, std::move(shape), std::move(images), std::move(labels)};
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
  EXPECT_EQ(mismatch(dataset({32, 32, 3}, 9)),
            "job.yaml:4:10: error: the model reads examples of shape [28, 28, 1], those of "
            "images.gz have [32, 32, 3]: set model.input.shape to it, or use other images");
  EXPECT_NE(mismatch(dataset({28, 28, 3}, 9)), "no error");
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 10)),
            "labels.gz: example 0 has label 10, but layer 'softmax' has 10 units (labels 0 to 9): "
            "give it at least 11 "
            "units, or use other labels");
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
