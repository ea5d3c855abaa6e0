#include "common/train/run_mark.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

class RunMarkTest : public ::testing::Test {
 protected:
  std::shared_ptr<engine::Session> open(const graph::Graph& graph) {
    ++opened_;
    return std::make_shared<engine::Session>(
        graph, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
  }
  std::shared_ptr<engine::Session> model() {
    graph::Graph graph{graph::standardOps()};
    graph::Builder b(graph);
    b.variable("n", Shape{1}, "zeros");
    return open(graph);
  }
  RunMark mark(const std::string& log_dir, bool is_chief = true) {
    RunMark made(log_dir, is_chief);
    made.place([this](const graph::Graph& graph) { return open(graph); }, "n");
    return made;
  }

  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  const std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
  int opened_ = 0;
};

TEST_F(RunMarkTest, OneFolderIsOneRunHoweverItIsWritten) {
  EXPECT_EQ(mark("run").number(), mark("run/").number());
  EXPECT_EQ(mark("a/../run").number(), mark("./run").number());
  EXPECT_NE(mark("run").number(), mark("other").number());
  EXPECT_GT(mark("run").number(), 0);
}

TEST_F(RunMarkTest, AMarkIsOwnIfItIsOfTheRun) {
  const RunMark own = mark("run");
  EXPECT_TRUE(own.isOwn(own.number()));
  EXPECT_TRUE(own.isOwn(-own.number())) << "of the finished run";
  EXPECT_FALSE(own.isOwn(0));
  EXPECT_FALSE(own.isOwn(mark("other").number()));
  const RunMark any = mark("", false);
  EXPECT_TRUE(any.isOwn(own.number()));
  EXPECT_FALSE(any.isOwn(0));
}

TEST_F(RunMarkTest, ClientsReadWhatAnotherHasWritten) {
  const auto of = model();
  RunMark chief = mark("run"), other = mark("run", false);
  EXPECT_EQ(other.read(*of), 0) << "no one has written it";
  chief.write(*of, chief.number());
  EXPECT_EQ(other.read(*of), chief.number());
  chief.write(*of, -chief.number());
  EXPECT_EQ(other.read(*of), -chief.number());
}

TEST_F(RunMarkTest, ItsSessionIsOpenBetweenTheFirstUseAndClose) {
  const auto of = model();
  RunMark chief = mark("run");
  opened_ = 0;
  chief.write(*of, 1);
  EXPECT_EQ(chief.read(*of), 1);
  EXPECT_EQ(opened_, 1);
  chief.close();
  EXPECT_EQ(chief.read(*of), 1);
  EXPECT_EQ(opened_, 2);
}

}  // namespace
}  // namespace dtf::train
