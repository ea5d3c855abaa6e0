#include "common/train/data_fit.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

TEST(DataFit, NamesTheColumnsThatAreCounted) {
  cluster::CsvSpec spec;
  data::TrainedColumns columns;
  columns.features = {"a", "b\x1b", "c"};
  columns.categories = {{"city", "street"}};
  EXPECT_EQ(featureColumns(columns, spec), "a, b?, c");
  spec.no_features = true;
  EXPECT_EQ(featureColumns(columns, spec), "city, street");
}

TEST(DataFit, OfManyColumnsTheFirstAndTheLastAreNamed) {
  data::TrainedColumns columns;
  for (int i = 1; i <= 784; ++i) columns.features.push_back(std::to_string(i));
  EXPECT_EQ(featureColumns(columns, {}),
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, ..., 784");
  columns.features.resize(21);
  EXPECT_TRUE(featureColumns(columns, {}).ends_with("19, 20, 21"));
}

TEST(DataFit, TheRemedyIsOneThatTheDataAllow) {
  EXPECT_NE(shapeRemedy("a, b", Shape{2}, true).find("set model.input.shape to [2], or choose"),
            std::string::npos);
  EXPECT_EQ(shapeRemedy("", Shape{2}, true), "") << "that of all formats";
  EXPECT_EQ(shapeRemedy("a, b", Shape{2}, false).find("model.input.shape"), std::string::npos)
      << "the training data have the right one";
  EXPECT_NE(shapeRemedy("", Shape{2}, false), "");
}

TEST(DataFit, MoreClassesThanUnitsAreRefusedAtTheLayer) {
  model::LayerSpec layer;
  layer.name = "d";
  layer.mark = {"job.yaml", 4, 5};
  model::ModelOutput output;
  output.layer = &layer;
  output.units = 1;
  checkClassCount(output, "class_names", 2);
  try {
    checkClassCount(output, "class_names", 3);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "job.yaml:4:5: error: class_names have 3 classes, but layer 'd' has 1 unit: give it "
              "at least 3");
  }
}

}  // namespace
}  // namespace dtf::train
