#include "common/data/data_signature.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::data {
namespace {

using Names = std::vector<std::string>;

DataSignature ofTable(const Names& features, const std::string& label = "kind") {
  DataSignature signature;
  signature.kind = "table";
  signature.header = true;
  signature.table_columns = static_cast<int64_t>(features.size()) + 1;
  signature.inputs = {{"features", features},
                      {"city", {"city"}, {{{"op", "hash"}, {"buckets", 100}}}}};
  signature.targets = {{"labels", {label}}};
  return signature;
}

DataSignature withWords(const Names& words) {
  DataSignature signature = ofTable({"a"});
  signature.targets[0].preparation = {{{"op", "vocabulary"}, {"words", words}}};
  return signature;
}

TEST(DataSignature, IsReadBackAsItWasWritten) {
  DataSignature signature = withWords({"cat", "a \"dog\"", "\xc3\xa9t\xc3\xa9", "line\nend"});
  EXPECT_EQ(decodeSignature(encodeSignature(signature), "f"), signature);
  signature.kind = "images";
  signature.table_columns = 0;
  signature.header = false;
  EXPECT_EQ(decodeSignature(encodeSignature(signature), "f"), signature);
  EXPECT_EQ(encodeSignature(signature).find('\n'), std::string::npos);
}

TEST(DataSignature, ATextThatIsNoneIsRefused) {
  for (const char* const text :
       {"", "{", "[]", "{}", R"({"kind":"table","inputs":[],"targets":1})",
        R"({"kind":"arrays","inputs":[{"name":"f","columns":[1],"preparation":[]}],"targets":[]})",
        R"({"kind":"arrays","inputs":[{"name":"f","columns":[],"preparation":[{}]}],"targets":[]})",
        R"({"kind":"table","header":false,"table_columns":3,"targets":[],)"
        R"("inputs":[{"name":"f","columns":["a"],"preparation":[]}]})",
        R"({"kind":"table","header":false,"table_columns":3,"targets":[],)"
        R"("inputs":[{"name":"f","columns":["4"],"preparation":[]}]})",
        R"({"kind":"table","table_columns":3,"inputs":[],"targets":[]})"}) {
    try {
      decodeSignature(text, "step-7");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData) << text;
      EXPECT_EQ(error.message().find("step-7: "), 0u) << error.message();
    }
  }
}

TEST(DataSignature, WhatALaterVersionAddsIsKeptAndIsAnotherPreparation) {
  const std::string later =
      R"({"kind":"arrays","inputs":[{"name":"features","columns":[],"preparation":)"
      R"([{"op":"fill","value":0.5}]}],"targets":[],"more":1})";
  const DataSignature signature = decodeSignature(later, "f");
  EXPECT_EQ(signature.inputs[0].preparation[0].at("value").asDouble(), 0.5);
  DataSignature ours = signature;
  ours.inputs[0].preparation.clear();
  EXPECT_EQ(signatureDifference(signature, ours, "t.csv"),
            "  features: the model was trained with the preparation fill value=0.5, and t.csv "
            "has the preparation none");
}

TEST(DataSignature, ColumnsInAnotherOrderAreShownFromBothSides) {
  EXPECT_EQ(signatureDifference(ofTable({"a", "b"}), ofTable({"a", "b"}), "t.csv"), "");
  EXPECT_EQ(signatureDifference(ofTable({"a", "b"}), ofTable({"b", "a"}), "t.csv"),
            "  features: the model was trained on the columns a, b, and t.csv has them in the "
            "order b, a: say the model's with feature_columns or categorical_columns");
  EXPECT_EQ(signatureDifference(ofTable({"a", "b"}), ofTable({"a", "c"}), "t.csv"),
            "  features: the model was trained on the columns a, b, and t.csv gives it a, c");
}

TEST(DataSignature, AnotherTargetIsShown) {
  EXPECT_EQ(signatureDifference(ofTable({"a"}), ofTable({"a"}, "sort"), "t.csv"),
            "  labels: the model was trained on the column kind, and t.csv gives it sort");
}

TEST(DataSignature, OtherWordsAreShown) {
  const std::string advice =
      ": say their order with class_names, or take the folder away that is new";
  EXPECT_EQ(
      signatureDifference(withWords({"bee", "cow"}), withWords({"bee", "cow", "dog"}), "f"),
      "  class 2 is none of the 2 that the model was trained on, and 'dog' of the 3 of f" + advice);
  EXPECT_EQ(
      signatureDifference(withWords({"bee", "cow"}), withWords({"bee"}), "f"),
      "  class 1 is 'cow' of the 2 that the model was trained on, and none of the 1 of f" + advice);
  EXPECT_NE(signatureDifference(withWords({"bee"}), ofTable({"a"}), "f"), "")
      << "numbers are no words";
}

TEST(DataSignature, AnotherPreparationOfAnInputIsShown) {
  DataSignature other = ofTable({"a"});
  other.inputs[1].preparation = {{{"op", "hash"}, {"buckets", 50}}};
  EXPECT_EQ(signatureDifference(ofTable({"a"}), other, "t.csv"),
            "  city: the model was trained with the preparation hash buckets=100, and t.csv "
            "has the preparation hash buckets=50");
}

TEST(DataSignature, DataOfAnotherKindHaveNoNamesToCompare) {
  DataSignature arrays;
  arrays.kind = "arrays";
  arrays.inputs = {{"features", {}}};
  arrays.targets = {{"labels", {}}};
  EXPECT_EQ(signatureDifference(ofTable({"a", "b"}), arrays, "x.npz"), "");
}

TEST(DataSignature, ATableWithoutNamesIsNotThatOfOneWith) {
  DataSignature nameless = ofTable({"a"});
  nameless.header = false;
  EXPECT_NE(signatureDifference(ofTable({"a"}), nameless, "t.csv").find("have none"),
            std::string::npos)
      << signatureDifference(ofTable({"a"}), nameless, "t.csv");
}

TEST(DataSignature, WhatAFileSaysIsPrintedHarmlessly) {
  const std::string text =
      signatureDifference(ofTable({"a\x1b[31m"}), ofTable({"b\nforged line"}), "t.csv");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace dtf::data
