// A file's own training on a session of this process; tests/e2e/graph_training_test.py kills
// clients and tasks.

#include "launcher/graph_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/engine/local_tasks.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// w is [3], the loss its mean square.
std::string graphOf(const std::string& minimize, const std::string& run) {
  return "ops:\n"
         "  - Variable: {name: w, shape: [3], initializer: ones}\n"
         "  - Mul: {name: square, inputs: [w, w]}\n"
         "  - Mean: {name: loss, inputs: [square]}\n"
         "  - minimize: {loss: loss" +
         minimize + "}\nrun:\n  targets: [train]\n  fetches: [w]\n" + run;
}

class GraphTrainingTest : public ::testing::Test {
 protected:
  GraphTrainingTest() { runtime::registerCpuKernels(kernels_); }

  model::GraphSpec read(const std::string& text) {
    files_.write("graph.yaml", text);
    return model::readGraphFile("graph.yaml", report_, minimizer());
  }
  // Runs the file's steps on variables that stay from one run to the next. Returns the last w.
  std::vector<float> run(const std::string& text, bool is_fresh = false) {
    const model::GraphSpec spec = read(text);
    GraphFeeds feeds(spec, report_);
    std::vector<float> last;
    events_.clear();
    runSupervised({.spec = spec,
                   .feeds = feeds,
                   .is_fresh = is_fresh,
                   .open =
                       [this](const graph::Graph& graph) {
                         return std::make_unique<engine::Session>(
                             graph, std::make_unique<engine::LocalTasks>(process_));
                       },
                   .on_step =
                       [&](int64_t, const std::vector<Tensor>& values) {
                         const auto all = values.at(0).as<float>();
                         last.assign(all.begin(), all.end());
                       },
                   .on_event =
                       [this](const char* event, int64_t step, const std::string&) {
                         events_.push_back(event + std::string(" ") + std::to_string(step));
                       }});
    return last;
  }

  dtf::testing::TemporaryFiles files_;
  yaml::Report report_;
  std::vector<std::string> events_;
  runtime::KernelTable kernels_;
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
};

TEST_F(GraphTrainingTest, AnOptimizerIsReadAsAJobs) {
  const model::GraphSpec spec =
      read(graphOf(", optimizer: {adam: {learning_rate: 0.1, clip_by_global_norm: 1}}", ""));
  EXPECT_NE(spec.graph.find("w/Adam"), nullptr);
  EXPECT_NE(spec.graph.find("global_step"), nullptr);
  EXPECT_NE(spec.graph.find("train/norm"), nullptr);
  EXPECT_EQ(read(graphOf("", "")).graph.find("w/Adam"), nullptr) << "gradient_descent";
}

TEST_F(GraphTrainingTest, AMistakeInAnOptimizerHasItsPlace) {
  EXPECT_THAT(dtf::testing::badConfigOf(
                  [&] { read(graphOf(", optimizer: {adam: {learning_rat: 0.1}}", "")); }),
              AllOf(HasSubstr("graph.yaml:5:"), HasSubstr("did you mean 'learning_rate'?")));
  report_ = {};
  EXPECT_THAT(dtf::testing::badConfigOf([&] { read(graphOf(", variables: [square]", "")); }),
              AllOf(HasSubstr("graph.yaml:5:5: error: "), HasSubstr("can't be trained")));
}

TEST_F(GraphTrainingTest, StepsGoOnFromTheCheckpoint) {
  const std::string adam = ", optimizer: {adam: {learning_rate: 0.1}}";
  const auto steps = [](int count, const char* folder) {
    return "  steps: " + std::to_string(count) + "\n  log_dir: " + folder +
           "\n  checkpoint: {every_steps: 2, keep: 0}\n"
           "  summaries: {scalars: [loss], every_steps: 1}\n";
  };
  const std::vector<float> whole = run(graphOf(adam, steps(7, "whole")));
  EXPECT_TRUE(events_.empty());
  run(graphOf(adam, steps(3, "parts")), true);
  EXPECT_TRUE(events_.empty()) << "nothing was there to set aside";
  EXPECT_EQ(run(graphOf(adam, steps(7, "parts"))), whole);
  EXPECT_THAT(events_, ElementsAre("resumed 3"));
  for (const char* step : {"step-2", "step-3", "step-4", "step-6", "step-7"})
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path("parts/checkpoints") / step)) << step;
  EXPECT_EQ(run(graphOf(adam, steps(7, "parts")), true), whole);
  EXPECT_THAT(events_, ElementsAre("set_aside 0"));
}

TEST_F(GraphTrainingTest, AStepThatDoesNotCountItselfIsRefused) {
  const std::string file =
      "ops:\n"
      "  - Variable: {name: global_step, dtype: int64, shape: [], initializer: zeros}\n"
      "  - Variable: {name: w, shape: [3], initializer: ones}\n"
      "run:\n  fetches: [w]\n  log_dir: idle\n  checkpoint: {}\n";
  EXPECT_THAT(dtf::testing::badConfigOf([&] { run(file); }),
              AllOf(HasSubstr("graph.yaml:7:3: error: "),
                    HasSubstr("'global_step' is 0 after step 1; name the op of 'minimize'")));
}

}  // namespace
}  // namespace dtf::launcher
