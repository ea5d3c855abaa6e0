// A file's own training on a session of this process; tests/e2e/graph_training_test.py kills
// clients and tasks.

#include "launcher/graph_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// A loss of the variables, as with a ps, right after the `after`th run of `train`.
struct Loss {
  int after = 0;  // 0: never
  int steps = 0;
};

// Threads, blocking, errors: as PlanParts. Owns: the parts. Borrows: the rest.
class LosingParts final : public engine::PlanParts {
 public:
  LosingParts(std::unique_ptr<engine::PlanParts> parts, engine::Tasks& tasks, Loss& loss)
      : parts_(std::move(parts)), tasks_(tasks), loss_(loss) {}
  engine::StepResult run(uint64_t step, const engine::StepFeeds& feeds, bool is_traced) override {
    engine::StepResult result = parts_->run(step, feeds, is_traced);
    if (++loss_.steps == loss_.after) tasks_.reset("");
    return result;
  }

 private:
  const std::unique_ptr<engine::PlanParts> parts_;
  engine::Tasks& tasks_;
  Loss& loss_;
};

// Threads, blocking, errors: as Tasks. Owns: the tasks. Borrows: the loss.
class LosingTasks final : public engine::Tasks {
 public:
  LosingTasks(std::unique_ptr<engine::Tasks> tasks, Loss& loss)
      : tasks_(std::move(tasks)), loss_(loss) {}
  const std::vector<graph::DeviceName>& devices() const override { return tasks_->devices(); }
  bool canRun(const graph::Node& node, const graph::DeviceName& device) const override {
    return tasks_->canRun(node, device);
  }
  bool withCpu(const UseCpu& use) override { return tasks_->withCpu(use); }
  std::unique_ptr<engine::PlanParts> registerPlan(std::vector<engine::TaskPart> parts) override {
    const bool is_step = parts.at(0).graph.find("train") != nullptr;
    auto made = tasks_->registerPlan(std::move(parts));
    if (!is_step) return made;
    return std::make_unique<LosingParts>(std::move(made), *tasks_, loss_);
  }
  void setVariable(const graph::Node& variable, const Tensor& value) override {
    tasks_->setVariable(variable, value);
  }
  void abortSteps(const Error& cause) override { tasks_->abortSteps(cause); }
  void reset(const std::string& container) override { tasks_->reset(container); }
  engine::RendezvousLoad load() const override { return tasks_->load(); }

 private:
  const std::unique_ptr<engine::Tasks> tasks_;
  Loss& loss_;
};

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
                       [this](const graph::Graph& graph, const GivesUp& gives_up) {
                         EXPECT_NE(gives_up, nullptr);
                         if (is_gone_) throw Error(ErrorCode::kUnavailable, "no task replies");
                         return std::make_unique<engine::Session>(
                             graph, std::make_unique<LosingTasks>(
                                        std::make_unique<engine::LocalTasks>(process_), loss_));
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
  Loss loss_;
  bool is_gone_ = false;
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

// The counter is read, and a checkpoint saved, right after a step: the loss shows there first.
TEST_F(GraphTrainingTest, ALossRightAfterAStepIsMadeGood) {
  const auto file = [](int after) {
    return graphOf("", "  steps: 4\n  log_dir: lost-" + std::to_string(after) +
                           "\n  checkpoint: {every_steps: 1}\n");
  };
  const std::vector<float> whole = run(file(0));
  for (int after = 1; after <= 3; ++after) {
    process_ = std::make_shared<engine::LocalProcess>(std::vector{
        engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
    loss_ = {.after = after};
    EXPECT_EQ(run(file(after)), whole) << after;
    EXPECT_GE(loss_.steps, 5) << "a step was taken again";
  }
}

TEST_F(GraphTrainingTest, WithoutTasksNothingIsSetAside) {
  const std::string file =
      graphOf("", "  steps: 1\n  log_dir: kept\n  checkpoint: {every_steps: 1}\n");
  run(file);
  is_gone_ = true;
  EXPECT_THROW(run(file, true), Error);
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(std::filesystem::exists("kept/checkpoints/step-1"));
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
