#include "common/model_files/trained_model.h"

#include <gtest/gtest.h>

#include "tests/unit/model/models.h"

namespace dtf::model_files {
namespace {

std::map<std::string, std::string> metadata(const model::ModelSpec& model,
                                            const std::string& classes = "") {
  return metadataOf({"digits", 7, true, model, {}, classes});
}

TEST(TrainedModel, ItsMetadataSayWhatAPersonMustKnow) {
  const auto texts = metadata(model::softmaxModel());
  EXPECT_EQ(texts.at("job"), "digits");
  EXPECT_EQ(texts.at("step"), "7");
  EXPECT_EQ(texts.at("moving_averages"), "true");
  EXPECT_EQ(texts.at("dtf_version"), DTF_VERSION);
  EXPECT_EQ(texts.at("input"), "features: uint8 [batch, 28, 28, 1]");
  EXPECT_EQ(texts.at("scaling"), "features / 255: pixels from 0 to 255 become 0 to 1");
  EXPECT_EQ(texts.at("output"),
            "probabilities: float32 [batch, 10], the softmax of the last layer; classes 0 to 9, "
            "the largest one counts");
  EXPECT_FALSE(texts.contains("classes")) << "their names are not known";
  EXPECT_EQ(metadata(model::softmaxModel(), R"(["a"])").at("classes"), R"(["a"])");
}

TEST(TrainedModel, OneUnitChoosesBetweenTwoClasses) {
  model::ModelSpec model = model::softmaxModel();
  model.layers = {model::flatten(), model::dense("last", 1)};
  model.loss.kind = model::Loss::kSigmoidCrossEntropy;
  EXPECT_TRUE(metadata(model).at("output").ends_with(
      ", the sigmoid of each unit of the last layer; class 1 beyond the middle, else class 0"))
      << metadata(model).at("output");
}

TEST(TrainedModel, FeaturesThatAreNoPixelsAreNotScaled) {
  model::ModelSpec model = model::softmaxModel();
  model.input_dtype = DType::kFloat32;
  EXPECT_EQ(scalingText(model), "none: features are read as they are");
}

TEST(TrainedModel, CategoriesAreInputsBesideTheFeaturesOrInTheirPlace) {
  model::ModelSpec model = model::softmaxModel();
  model.categories = {{"user", 1}, {"tags", 3}};
  EXPECT_EQ(metadata(model).at("input"),
            "features: uint8 [batch, 28, 28, 1]; categories/user: int32 [batch, 1]; "
            "categories/tags: int32 [batch, 3]");
  model.features_are_categories = true;
  EXPECT_EQ(metadata(model).at("input"),
            "categories/user: int32 [batch, 1]; categories/tags: int32 [batch, 3]");
}

}  // namespace
}  // namespace dtf::model_files
