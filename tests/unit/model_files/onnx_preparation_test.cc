// tests/e2e/prepared_table_test.py compares the numbers with onnxruntime's, where there is one.

#include "common/model_files/onnx_preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/model_files/weight_reader.h"
#include "tests/unit/model_files/onnx_texts.h"

namespace dtf::model_files {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Pair;

constexpr char kSignature[] =
    R"({"kind":"table","header":true,"table_columns":3,"inputs":[{"name":"features","columns":)"
    R"(["a","b"],"preparation":[{"op":"fill","columns":["a"],"with":["median"],"values":[7]},)"
    R"({"op":"missing_indicator","columns":["a"]},{"op":"log1p","columns":["b"]},)"
    R"({"op":"standardize","columns":["b"],"mean":[2],"stddev":[0.5]}]}],"targets":)"
    R"([{"name":"labels","columns":["kind"],"preparation":[]}]})";

std::string onnxWith(const std::string& signature, int64_t width) {
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {width};
  model.input_dtype = DType::kFloat32;
  model.layers = {model::dense("out", 10)};
  const std::vector<NamedTensor> variables = zerosFor(model);
  return encodeOnnx({"job", 7, false, model, variables, "", signature});
}

constexpr int64_t kFloat = 1, kDouble = 11;  // TensorProto.DataType

// Counts the nodes of Cast whose attribute, `to`, is this type.
int castsTo(const std::string& onnx, int64_t type) {
  int count = 0;
  for (const std::string& node : textsAt(onnx, {7, 1})) {
    if (textsAt(node, {4}) != std::vector<std::string>{"Cast"}) continue;
    const std::string bytes = textsAt(node, {5}).at(0);
    protozero::pbf_reader attribute(bytes);
    while (attribute.next())
      if (attribute.tag() == 3)  // AttributeProto.i
        count += attribute.get_int64() == type ? 1 : 0;
      else
        attribute.skip();
  }
  return count;
}

// An import must not name constants of the preparation as weights that the model lacks.
TEST(OnnxPreparation, AnImportReadsTheVariablesAlone) {
  const FoundWeights found = parseOnnxWeights(onnxWith(kSignature, 3), "own.onnx");
  std::vector<std::string> names;
  for (const FoundTensor& tensor : found.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("out/weights", "out/biases"));
  EXPECT_TRUE(found.skipped.empty()) << found.skipped[0].name;
}

TEST(OnnxPreparation, TheFileReadsTheColumnsOfTheTable) {
  const std::string onnx = onnxWith(kSignature, 3);
  EXPECT_THAT(opsOf(onnx),
              IsSupersetOf({Pair("IsNaN", 1), Pair("Where", 3), Pair("Log", 1), Pair("Sub", 2),
                            Pair("Div", 2), Pair("Gather", 1), Pair("Concat", 1)}));
  EXPECT_THAT(textsAt(onnx, {7, 11, 1}), ElementsAre("features"));
  EXPECT_EQ(initializer(onnx, "preparation/fill").at(0), 7);
  EXPECT_TRUE(std::isnan(initializer(onnx, "preparation/fill").at(1))) << "b isn't filled";
  EXPECT_THAT(initializer(onnx, "preparation/mean"), ElementsAre(0, 2));
  EXPECT_THAT(initializer(onnx, "preparation/stddev"), ElementsAre(1, 0.5));
  EXPECT_THAT(textsAt(onnx, {14, 2}), Contains("features: float32 [batch, 2], NaN if missing"));
}

TEST(OnnxPreparation, LogarithmsAndDeviationsAreDoublesRoundedOnce) {
  const std::string onnx = onnxWith(kSignature, 3);
  EXPECT_EQ(castsTo(onnx, kDouble), 4) << "the table's numbers, 1, mean and stddev";
  EXPECT_EQ(castsTo(onnx, kFloat), 2) << "the features and the indicators";
  EXPECT_EQ(opsOf(onnx).at("Equal"), 1) << "a number that 1 + x loses is its own log1p";
}

TEST(OnnxPreparation, FeaturesThatAreReadAsTheyAreNeedNoNode) {
  EXPECT_TRUE(preparedColumnsOf("", 2).empty());
  const std::string plain =
      R"({"kind":"table","header":true,"table_columns":2,"inputs":[{"name":"features","columns":)"
      R"(["a"],"preparation":[]}],"targets":[]})";
  EXPECT_TRUE(preparedColumnsOf(plain, 1).empty());
  EXPECT_EQ(opsOf(onnxWith(plain, 1)).count("IsNaN"), 0u);
}

TEST(OnnxPreparation, AnotherNumberOfFeaturesIsRefused) {
  EXPECT_EQ(preparedColumnsOf(kSignature, 3).size(), 2u);
  EXPECT_THROW(preparedColumnsOf(kSignature, 2), Error);
}

}  // namespace
}  // namespace dtf::model_files
