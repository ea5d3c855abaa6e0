// A loss and scalars that the ops of a model's `graph` compute.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/model/model_graph.h"
#include "common/model/model_text.h"
#include "common/model/read_model.h"
#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnLossTest : public ::testing::Test {
 protected:
  // The network is in lines 2 to 9, `more` begins in line 10.
  ModelSpec read(const std::string& more) {
    files_.write("model.yaml", R"(input: {shape: [3]}
graph:
  ops:
    - Variable: {name: w, shape: [3, 2], initializer: zeros}
    - MatMul: {name: y, inputs: [input, w]}
    - SparseSoftmaxCrossEntropyWithLogits: {name: losses, inputs: [y, labels]}
    - Mean: {name: own, inputs: [losses]}
    - Max: {name: worst, inputs: [losses]}
  output: y
)" + more);
    yaml::Report report;
    const auto file = yaml::parseYamlFile("model.yaml", nullptr, report);
    ModelSpec model = readModel(*file, report);
    report.throwIfAny();
    model.input_dtype = DType::kFloat32;
    return model;
  }
  std::string error(const std::string& more, bool has_targets = false) {
    return dtf::testing::badConfigOf([&] {
      ModelSpec model = read(more);
      if (has_targets) model.labels_dtype = DType::kFloat32;
      buildTrainingGraph(model, 4);
    });
  }
  dtf::testing::TemporaryFiles files_;
};

TEST_F(OwnLossTest, TheLossIsTheTensorOfThatName) {
  for (const char* name : {"own", "graph/own"}) {
    const ModelSpec spec = read("loss: {tensor: {name: " + std::string(name) + "}}\n");
    const ModelGraph model = buildTrainingGraph(spec, 4);
    const graph::Node& loss = model.graph.node(model.loss.node);
    EXPECT_EQ(loss.op, "Identity") << name;
    EXPECT_EQ(model.graph.node(loss.inputs[0].node).name, "graph/own");
    ASSERT_EQ(model.variables.size(), 1u);
    EXPECT_TRUE(model.variables[0].gradient.has_value());
    EXPECT_THAT(modelText(spec), HasSubstr("loss tensor name=" + std::string(name)));
  }
}

TEST_F(OwnLossTest, ScalarsAreEvaluatedBesideIt) {
  const ModelSpec spec = read("loss: {tensor: {name: own}}\nscalars: [worst, graph/own]\n");
  EXPECT_TRUE(spec.wantsEvaluation());
  const ModelGraph model = buildEvaluationGraph(spec, 4);
  ASSERT_EQ(model.scalars.size(), 2u);
  EXPECT_EQ(model.graph.node(model.scalars[0].node).name, "graph/worst");
}

TEST_F(OwnLossTest, MistakesAreReportedAtTheirPlaces) {
  EXPECT_THAT(error("loss: {tensor: {name: owm}}\n"),
              HasSubstr("model.yaml:10:1: error: the graph has no node 'owm'"));
  EXPECT_THAT(error("loss: {tensor: {name: losses}}\n"),
              HasSubstr("'losses' is float32[4], and must be a float32 scalar: name its Mean"));
  EXPECT_THAT(error("loss: {tensor: {}}\n"), HasSubstr("missing key 'name' in 'tensor'"));
  EXPECT_THAT(error("loss: {tensor: {name: own}}\nscalars: [own, y]\n"),
              HasSubstr("model.yaml:11:16: error: 'y' is float32[4, 2]"));
  EXPECT_THAT(
      error("loss: {tensor: {name: own}}\nscalars: [auc, own, own]\n"),
      AllOf(HasSubstr("model.yaml:11:11: error: the evaluations have a 'auc' already: write "
                      "LAYER/auc, or give the op another name"),
            HasSubstr("model.yaml:11:21: error: the evaluations have a 'own' already")));
  EXPECT_THAT(error("loss: {tensor: {name: own}}\nscalars: [learning_rate, other_words]\n"),
              AllOf(HasSubstr("have a 'learning_rate' already"),
                    HasSubstr("have a 'other_words' already")));
  EXPECT_THAT(error("loss: sparse_categorical_crossentropy\n"), HasSubstr("'labels'"))
      << "only a loss of the model's own ops reads them";
}

// A prediction has no labels, so it could not compute such an output.
TEST_F(OwnLossTest, AnOutputThatReadsTheLabelsIsRefused) {
  const auto errorOf = [this](const std::string& ops) {
    files_.write("leak.yaml",
                 "input: {shape: [3]}\n"
                 "graph:\n"
                 "  ops:\n"
                 "    - Variable: {name: w, shape: [3, 2], initializer: zeros}\n" +
                     ops + "  output: y\nloss: {tensor: {name: own}}\n");
    return dtf::testing::badConfigOf([] {
      yaml::Report report;
      const auto file = yaml::parseYamlFile("leak.yaml", nullptr, report);
      ModelSpec model = readModel(*file, report);
      report.throwIfAny();
      model.input_dtype = DType::kFloat32;
      buildEvaluationGraph(model, 4);
    });
  };
  const std::string loss =
      "    - SparseSoftmaxCrossEntropyWithLogits: {name: losses, inputs: [x, labels]}\n"
      "    - Mean: {name: own, inputs: [losses]}\n";
  const std::string product = "    - MatMul: {name: x, inputs: [input, w]}\n";
  EXPECT_THAT(errorOf(product + loss + "    - Mul: {name: y, inputs: [x, own]}\n"),
              HasSubstr("leak.yaml:9:11: error: 'output' depends on 'labels', which a prediction "
                        "doesn't have"));
  EXPECT_THAT(errorOf(product + loss + "    - Identity: {name: y, inputs: [x], after: [own]}\n"),
              HasSubstr("'output' depends on 'labels'"))
      << "a control input";
}

// Targets have a float32 for each unit of the output.
TEST_F(OwnLossTest, TheNumberOfTargetsIsTheLosss) {
  const std::string text = R"(input: {shape: [3]}
graph:
  ops:
    - Variable: {name: w, shape: [3, 2], initializer: zeros}
    - MatMul: {name: y, inputs: [input, w]}
    - SquaredDifference: {name: errors, inputs: [y, labels]}
    - Mean: {name: own, inputs: [errors]}
  output: y
loss: {tensor: {name: own, targets: )";
  const auto build = [&](int targets) {
    files_.write("model.yaml", text + std::to_string(targets) + "}}\n");
    yaml::Report report;
    const auto file = yaml::parseYamlFile("model.yaml", nullptr, report);
    ModelSpec model = readModel(*file, report);
    model.input_dtype = model.labels_dtype = DType::kFloat32;
    return buildTrainingGraph(model, 4);
  };
  const ModelGraph model = build(2);
  EXPECT_EQ(model.graph.spec(model.labels).shape, (Shape{4, 2}));
  EXPECT_THAT(dtf::testing::badConfigOf([&] { build(1); }),
              HasSubstr("model.yaml:9:1: error: the labels have 1 targets, and layer 'graph' has 2 "
                        "units"));
}

}  // namespace
}  // namespace dtf::model
