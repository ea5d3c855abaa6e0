#include "common/model_files/onnx_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/model_files/onnx_texts.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OnnxValuesTest : public ::testing::Test {
 protected:
  // Returns the ops of all nodes so far.
  std::vector<std::string> ops() {
    const OnnxValue value{"x", DType::kFloat32, {1}};
    return textsAt(values_.proto().finish("g", std::array{value}, std::array{value}, {}),
                   {7, 1, 4});
  }
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  const graph::Output images_ = b_.placeholder("images", DType::kFloat32, {1, 4, 4, 3});
  const graph::Output rows_ = b_.placeholder("rows", DType::kFloat32, {1, 5});
  OnnxValues values_{graph_};
};

TEST_F(OnnxValuesTest, ATensorIsTurnedOnceAndOnlyWhenItIsAskedFor) {
  values_.setInput(images_, "features");
  EXPECT_EQ(values_.in(Layout::kRows, images_), "features");
  EXPECT_FALSE(values_.isImages(images_));
  const std::string turned = values_.in(Layout::kImages, images_);
  EXPECT_NE(turned, "features");
  EXPECT_EQ(values_.in(Layout::kImages, images_), turned);
  EXPECT_TRUE(values_.isImages(images_));
  EXPECT_THAT(ops(), ElementsAre("Transpose"));
}

TEST_F(OnnxValuesTest, WhatIsThereInOneLayoutStaysInIt) {
  values_.setInput(images_, "features");
  values_.setInput(rows_, "rows");
  EXPECT_EQ(values_.layoutFor(std::array{images_}), Layout::kRows) << "it is not turned for that";
  values_.in(Layout::kImages, images_);
  EXPECT_EQ(values_.layoutFor(std::array{images_}), Layout::kImages);
  EXPECT_EQ(values_.layoutFor(std::array{images_, rows_}), Layout::kRows)
      << "rows have no other layout";
}

TEST_F(OnnxValuesTest, AWeightBecomesAConstantWhenItIsRead) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5};
  values_.setWeight(rows_, {"w", Shape{1, 5}, numbers});
  ASSERT_NE(values_.weight(rows_), nullptr);
  EXPECT_EQ(values_.weight(images_), nullptr) << "it depends on the input";
  EXPECT_EQ(values_.in(Layout::kRows, rows_), "w");
  EXPECT_EQ(values_.in(Layout::kRows, rows_), "w") << "once";
  EXPECT_THAT(ops(), IsEmpty());
}

TEST_F(OnnxValuesTest, NamesAreNotGivenTwice) {
  const std::string first = values_.scalar(1), second = values_.scalar(2);
  EXPECT_NE(first, second);
  EXPECT_NE(values_.add("Relu", std::array{first}), values_.add("Relu", std::array{second}));
  values_.setInput(images_, "constant");
  EXPECT_NE(values_.in(Layout::kRows, images_), first);
}

TEST_F(OnnxValuesTest, AnOutputIsNamedAfterItsNode) {
  values_.setInput(rows_, "rows");
  const graph::Output y = b_.relu(rows_), same = b_.relu(rows_);
  values_.add(y, Layout::kRows, "Relu", std::array{values_.in(Layout::kRows, rows_)});
  EXPECT_EQ(values_.in(Layout::kRows, y), "Relu");
  values_.alias(same, Layout::kRows, values_.in(Layout::kRows, y));
  EXPECT_EQ(values_.in(Layout::kRows, same), "Relu");
  EXPECT_DEATH(values_.alias(same, Layout::kRows, "again"), "again");
}

}  // namespace
}  // namespace dtf::model_files
