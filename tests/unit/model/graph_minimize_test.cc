// `minimize` of a graph file, with a stand-in for the optimizers; launcher/graph_training_test.cc
// has the real ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/model/read_graph.h"
#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using ::testing::HasSubstr;

class GraphMinimizeTest : public ::testing::Test {
 protected:
  // Reads a file with two variables and a loss in lines 2 to 4, and these ops from line 5 on.
  GraphSpec read(const std::string& ops) {
    files_.write("graph.yaml", R"(ops:
  - Variable: {name: w, shape: [2], initializer: ones}
  - Variable: {name: v, shape: [2], initializer: ones}
  - Mean: {name: loss, inputs: [w]}
)" + ops);
    yaml::Report report;
    return readGraphFile("graph.yaml", report,
                         [this](graph::Graph& graph, const MinimizeRequest& request,
                                yaml::Report&) -> std::optional<MinimizeNodes> {
                           if (refuses_) throw Error(ErrorCode::kBadConfig, "no such loss");
                           request_ = request;
                           optimizer_ = request.optimizer == nullptr ? "" : request.optimizer->text;
                           graph::Builder builder(graph);
                           const graph::Output made = builder.constant(Shape{}, 1, DType::kInt64);
                           return MinimizeNodes{.train = made, .norm = request.loss};
                         });
  }
  std::string error(const std::string& ops) {
    return dtf::testing::badConfigOf([&] { read(ops); });
  }

  dtf::testing::TemporaryFiles files_;
  MinimizeRequest request_;
  std::string optimizer_;
  bool refuses_ = false;
};

TEST_F(GraphMinimizeTest, NamesWhatATargetReads) {
  const GraphSpec spec = read("  - minimize: {loss: loss}\nrun: {targets: [train]}\n");
  EXPECT_EQ(spec.graph.node(request_.loss.node).name, "loss");
  EXPECT_TRUE(request_.variables.empty());
  EXPECT_EQ(spec.graph.find("train")->op, "Identity");
  EXPECT_NE(spec.graph.find("train/norm"), nullptr);
  EXPECT_EQ(spec.marks.at("train").line, 5);
  EXPECT_EQ(request_.global_step + request_.prefix + optimizer_, "");
}

TEST_F(GraphMinimizeTest, TakesVariablesACounterAnOptimizerAndAName) {
  const GraphSpec spec = read(R"(
  - scope:
      name: critic
      ops:
        - minimize: {loss: loss, variables: [w], optimizer: adam, name: step, global_step: count}
)");
  ASSERT_EQ(request_.variables.size(), 1u);
  EXPECT_EQ(spec.graph.node(request_.variables[0].node).name, "w");
  EXPECT_EQ(request_.prefix, "critic/");
  EXPECT_EQ(request_.global_step, "count");
  EXPECT_EQ(optimizer_, "adam");
  EXPECT_NE(spec.graph.find("critic/step"), nullptr);
}

TEST_F(GraphMinimizeTest, MistakesAreReportedAtTheirPlaces) {
  EXPECT_THAT(error("  - minimize: {loss: lost}\n"),
              HasSubstr("graph.yaml:5:22: error: the graph has no node 'lost' - did you mean"));
  EXPECT_THAT(error("  - minimize: {}\n"), HasSubstr("missing key 'loss' in 'minimize'"));
  EXPECT_THAT(error("  - minimize: {loss: loss, variables: []}\n"),
              HasSubstr("'variables' is empty: name those to train"));
  EXPECT_THAT(error("  - minimize: {loss: loss, optimiser: adam}\n"), HasSubstr("'optimizer'?"));
  refuses_ = true;
  EXPECT_THAT(error("  - minimize: {loss: loss}\nrun: {targets: [train]}\n"),
              ::testing::StartsWith("graph.yaml:5:5: error: no such loss\n"));
}

TEST_F(GraphMinimizeTest, AFunctionHasNone) {
  EXPECT_THAT(error("functions:\n"
                    "  - name: f\n"
                    "    parameters: [{name: y}]\n"
                    "    ops: [minimize: {loss: y}]\n"
                    "    results: [y]\n"),
              HasSubstr("a function has no variables to train: write 'minimize' among the ops"));
}

}  // namespace
}  // namespace dtf::model
