#include <dtf/model.h>
#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A job that never ran: its model has the initial values alone.
class ApiModel : public ::testing::Test {
 protected:
  ApiModel() : file_(::testing::TempDir() + "api-model.yaml") {
    std::ofstream(file_) << "job: never-run\n"
                            "run_dir: /no/such/run\n"
                            "cluster: {ps: ['localhost:auto'], worker: ['localhost:auto']}\n"
                            "train:\n"
                            "  model:\n"
                            "    input: {shape: [28, 28, 1]}\n"
                            "    layers: [{flatten: }, {dense: {units: 10, name: softmax}}]\n"
                            "    loss: sparse_categorical_crossentropy\n"
                            "  optimizer: {adam: {}}\n"
                            "  steps: 10\n";
  }
  const std::string file_;
};

TEST_F(ApiModel, ItsInitialValuesPredictInThisProcess) {
  const Model model(file_, "initial");
  EXPECT_EQ(model.step(), 0u);
  EXPECT_EQ(model.data(), "");
  EXPECT_TRUE(model.classes().empty() && model.columns("features").empty());
  Graph graph;
  Signature predict;
  {
    const auto scope = graph.scope("digits");
    predict = model.addTo(graph, 2);
  }
  EXPECT_EQ(graph.name(predict.variables.at("softmax/weights")), "digits/softmax/weights:0");
  Session session(graph);
  model.restore(predict, session);
  const Output outputs = predict.outputs.at("outputs");
  EXPECT_EQ(graph.dims(outputs), (Dims{2, 10}));
  const Tensor images(DTF_UINT8, {2, 28, 28, 1});
  const auto values =
      session.run({{graph.name(predict.inputs.at("features")), images}}, {graph.name(outputs)});
  EXPECT_NEAR(values.at(0).as<float>()[3], 0.1, 1e-6) << "all zeros: no class is likelier";
}

// initialize() gives a model's variables the values of its job.
TEST_F(ApiModel, InitializingIsRestoringTheInitialValues) {
  const Model model(file_, "initial");
  Graph graph;
  const Signature predict = model.addTo(graph, 1);
  const std::string weights = graph.name(predict.variables.at("softmax/weights"));
  Session session(graph);
  model.restore(predict, session);
  const Tensor restored = session.run({}, {weights}).at(0);
  session.initialize(1);  // the seed of a job that names none
  const Tensor initialized = session.run({}, {weights}).at(0);
  const auto a = restored.as<float>(), b = initialized.as<float>();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST_F(ApiModel, MistakesAreNamed) {
  EXPECT_THAT(refusal([&] { Model model(file_); }),
              AllOf(StartsWith("65: "), HasSubstr("/no/such/run/checkpoints")));
  EXPECT_THAT(refusal([] { Model model("/no/such.yaml"); }), HasSubstr("/no/such.yaml"));
  const Model model(file_, "initial");
  Graph graph;
  EXPECT_THAT(refusal([&] { model.addTo(graph, 0); }),
              AllOf(StartsWith("78: "), HasSubstr("at least one example")));
  EXPECT_THAT(refusal([&] { model.addTo(graph, 1, "predct"); }), StartsWith("78: "));
}

}  // namespace
}  // namespace dtf::testing
