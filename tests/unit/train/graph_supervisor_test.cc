// With a session of this process; tests/e2e/sync_replicas_test.py kills tasks and clients.

#include "common/train/graph_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <utility>

#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Calls a function at each file that is made.
// Borrows: the disk. Threads: one. Blocks: never.
class WatchedDisk final : public FileSystem {
 public:
  WatchedDisk(FileSystem& disk, std::function<void()> at_create)
      : disk_(disk), at_create_(std::move(at_create)) {}
  std::unique_ptr<WritableFile> create(const Path& file) override {
    at_create_();
    return disk_.create(file);
  }
  std::unique_ptr<ReadableFile> open(const Path& file) override { return disk_.open(file); }
  std::vector<FolderEntry> list(const Path& folder) override { return disk_.list(folder); }
  bool exists(const Path& path) override { return disk_.exists(path); }
  void makeFolder(const Path& folder) override { disk_.makeFolder(folder); }
  void rename(const Path& from, const Path& to) override { disk_.rename(from, to); }
  void removeFile(const Path& file) override { disk_.removeFile(file); }
  void removeFolder(const Path& folder) override { disk_.removeFolder(folder); }
  void syncFolder(const Path& folder) override { disk_.syncFolder(folder); }

 private:
  FileSystem& disk_;
  const std::function<void()> at_create_;
};

// The graph of one of some synchronous replicas.
struct Replica {
  explicit Replica(int64_t rank, int64_t replicas = 2) {
    graph::Builder b(graph);
    const graph::Output w = b.variable("w", Shape{3}, "ones");
    const auto made =
        optimizer::minimize(graph, b.sum(b.mul(w, w)), optimizer::decodeOptimizer("adam"),
                            {.replicas = optimizer::SyncReplicas{replicas, replicas, rank}});
    train = {graph.node(made.train.node).name};
  }
  graph::Graph graph{graph::standardOps()};
  std::vector<std::string> train;
};

class GraphSupervisorTest : public ::testing::Test {
 protected:
  GraphSupervisorTest() {
    disk_.makeFolder("/run");
    const graph::Output w = b_.variable("w", Shape{3}, "ones");
    const auto made =
        optimizer::minimize(graph_, b_.sum(b_.mul(w, w)), optimizer::decodeOptimizer("adam"));
    train_ = {graph_.node(made.train.node).name};
  }
  GraphSupervisorOptions options(bool is_chief) const {
    GraphSupervisorOptions options;
    options.is_chief = is_chief;
    options.task = is_chief ? "worker/0" : "worker/1";
    options.log_dir = "/run";
    options.wait_max = std::chrono::milliseconds(50);
    options.poll_every = std::chrono::milliseconds(5);
    return options;
  }
  // All sessions of a test share the variables of one process.
  GraphSupervisor::Open open() {
    return [this](const graph::Graph& graph) {
      return std::make_shared<engine::Session>(
          graph, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
    };
  }
  void step(GraphSupervisor& supervisor) { step(supervisor, train_); }
  static void step(GraphSupervisor& supervisor, const std::vector<std::string>& fetches) {
    ASSERT_TRUE(supervisor.run({}, fetches, {}));
  }

  testing::SimulatedDisk disk_;
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  std::vector<std::string> train_;
};

TEST_F(GraphSupervisorTest, TheChiefInitialisesSavesAndGoesOnFromThere) {
  {
    GraphSupervisor chief(disk_, options(true));
    chief.prepare(graph_, open(), false);
    EXPECT_EQ(chief.globalStep(), 0);
    for (int i = 0; i < 3; ++i) step(chief);
    chief.stop();
    EXPECT_TRUE(chief.shouldStop());
  }
  open()(graph_)->reset("");
  GraphSupervisor next(disk_, options(true));
  next.prepare(graph_, open(), false);
  EXPECT_EQ(next.globalStep(), 3);
}

TEST_F(GraphSupervisorTest, OthersWaitForTheChiefByName) {
  GraphSupervisor other(disk_, options(false));
  EXPECT_THAT(
      errorText([&] { other.prepare(graph_, open(), false); }),
      AllOf(
          HasSubstr("worker/1 has waited for 0.05 s"),
          HasSubstr("waiting for worker/0 to initialise 'w', 'global_step', 'w/Adam' and 1 more")));
  GraphSupervisor chief(disk_, options(true));
  chief.prepare(graph_, open(), false);
  other.prepare(graph_, open(), false);
  step(other);
  EXPECT_EQ(chief.globalStep(), 1);
}

TEST_F(GraphSupervisorTest, AModelOfAnotherLogDirIsNotReady) {
  GraphSupervisorOptions elsewhere = options(true);
  elsewhere.log_dir = "/other";
  disk_.makeFolder("/other");
  GraphSupervisor chief(disk_, elsewhere);
  chief.prepare(graph_, open(), false);
  step(chief);
  GraphSupervisor other(disk_, options(false));
  EXPECT_THAT(errorText([&] { other.prepare(graph_, open(), false); }),
              HasSubstr("another log_dir than /run"));
  GraphSupervisor second(disk_, options(true));
  second.prepare(graph_, open(), false);
  EXPECT_EQ(second.globalStep(), 0) << "a run of its own";
}

TEST_F(GraphSupervisorTest, ALogDirEndsWithASlashOrNot) {
  GraphSupervisor chief(disk_, options(true));
  chief.prepare(graph_, open(), false);
  GraphSupervisorOptions slash = options(false);
  slash.log_dir = "/run/";
  GraphSupervisor other(disk_, slash);
  other.prepare(graph_, open(), false);
  step(other);
}

// The chief alone was started again: no step is lost.
TEST_F(GraphSupervisorTest, AChiefThatReturnsTakesTheModelAsItIs) {
  GraphSupervisor first(disk_, options(true));
  first.prepare(graph_, open(), false);
  for (int i = 0; i < 3; ++i) step(first);
  GraphSupervisor returned(disk_, options(true));
  returned.prepare(graph_, open(), false);
  EXPECT_EQ(returned.globalStep(), 3);
}

TEST_F(GraphSupervisorTest, LostVariablesAreRestoredAndRunSaysSo) {
  GraphSupervisor chief(disk_, options(true)), other(disk_, options(false));
  chief.prepare(graph_, open(), false);
  other.prepare(graph_, open(), false);
  step(chief);
  chief.save();
  step(chief);
  open()(graph_)->reset("");
  const std::vector<std::string> fetches = train_;
  EXPECT_FALSE(chief.run({}, fetches, {}).has_value()) << "recovered";
  EXPECT_EQ(other.globalStep(), 1);
  step(other);
}

// A signal's abort comes 5 s after it, which may be in the midst of the last save.
TEST_F(GraphSupervisorTest, AnAbortLetsASaveEnd) {
  GraphSupervisor* saving = nullptr;
  int aborts = 0;
  WatchedDisk watched(disk_, [&] {
    if (saving == nullptr) return;
    EXPECT_FALSE(saving->abortStep("signal 15"));
    ++aborts;
  });
  GraphSupervisorOptions without_events = options(true);
  without_events.summarize_every.reset();
  GraphSupervisor chief(watched, without_events);
  chief.prepare(graph_, open(), false);
  saving = &chief;
  step(chief);
  chief.save();
  EXPECT_GT(aborts, 0);
  step(chief);
  EXPECT_TRUE(chief.abortStep("signal 15")) << "nothing is saved now";
  const int before = std::exchange(aborts, 0);
  chief.stop();
  EXPECT_GE(aborts, before);
}

// The end of the chief is the end of the run, for clients that wait and for those that come later.
TEST_F(GraphSupervisorTest, TheChiefsStopEndsTheRunOfAll) {
  const Replica first(0), second(1);
  GraphSupervisor chief(disk_, options(true)), other(disk_, options(false));
  chief.prepare(first.graph, open(), false);
  other.prepare(second.graph, open(), false);
  auto waits = std::async(std::launch::async, [&] { return other.run({}, second.train, {}); });
  chief.stop();
  EXPECT_FALSE(waits.get().has_value());
  EXPECT_TRUE(other.shouldStop());

  GraphSupervisor late(disk_, options(false));
  late.prepare(second.graph, open(), false);
  EXPECT_TRUE(late.shouldStop());
  EXPECT_EQ(late.globalStep(), 0);

  GraphSupervisorOptions anywhere = options(false);
  anywhere.log_dir.clear();
  GraphSupervisor without_log_dir(disk_, anywhere);
  without_log_dir.prepare(second.graph, open(), false);
  EXPECT_TRUE(without_log_dir.shouldStop());
}

TEST_F(GraphSupervisorTest, AnotherRunOfTheLogDirBeginsAnew) {
  const Replica first(0), second(1);
  {
    GraphSupervisor chief(disk_, options(true));
    chief.prepare(first.graph, open(), false);
    chief.stop();
  }
  GraphSupervisorOptions patient = options(false);
  patient.wait_max = std::chrono::seconds(60);
  GraphSupervisor early(disk_, patient), chief(disk_, options(true));
  auto prepared =
      std::async(std::launch::async, [&] { early.prepare(second.graph, open(), false); });
  chief.prepare(first.graph, open(), false);
  prepared.get();
  EXPECT_FALSE(early.shouldStop()) << "it waits for the chief of the next run";
  auto waits = std::async(std::launch::async, [&] { return early.run({}, second.train, {}); });
  step(chief, first.train);
  EXPECT_TRUE(waits.get().has_value());
  EXPECT_EQ(chief.globalStep(), 1);
}

// After a stop request nothing is recovered, so a loop until there are values must not go on.
TEST_F(GraphSupervisorTest, ALossAfterAStopRequestIsAnError) {
  const Replica first(0);
  GraphSupervisor chief(disk_, options(true));
  chief.prepare(first.graph, open(), false);
  auto waits = std::async(std::launch::async, [&] { return chief.run({}, first.train, {}); });
  while (waits.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    chief.abortStep("a test");
  EXPECT_FALSE(waits.get().has_value()) << "its step was aborted";
  chief.requestStop();
  open()(graph_)->reset("");
  EXPECT_THAT(errorText([&] { chief.run({}, first.train, {}); }), HasSubstr("has no value"));
  EXPECT_THAT(errorText([&] { chief.globalStep(); }), HasSubstr("has no value"));
}

TEST_F(GraphSupervisorTest, AStopRequestEndsAWait) {
  GraphSupervisorOptions slow = options(false);
  slow.wait_max = slow.poll_every = std::chrono::minutes(10);
  GraphSupervisor other(disk_, slow);
  auto waits = std::async(std::launch::async,
                          [&] { return errorText([&] { other.prepare(graph_, open(), false); }); });
  other.requestStop();
  EXPECT_THAT(waits.get(), HasSubstr("was asked to stop while it waited"));
}

// As by a variable's task that lost its gradients: nobody can complete the step.
TEST_F(GraphSupervisorTest, AStepThatStaysHalfTakenIsRestored) {
  const Replica only(0, 1);
  const auto spoil = [&] {
    Tensor one(DType::kInt64, Shape());
    one.as<int64_t>()[0] = 1;
    open()(only.graph)->setVariable("w/sync_step", one);
  };
  GraphSupervisor chief(disk_, options(true));
  chief.prepare(only.graph, open(), false);
  step(chief, only.train);
  chief.save();
  step(chief, only.train);
  spoil();
  EXPECT_FALSE(chief.run({}, only.train, {}).has_value());
  EXPECT_EQ(chief.globalStep(), 1) << "from the checkpoint";
  step(chief, only.train);
  spoil();
  GraphSupervisor next(disk_, options(true));
  next.prepare(only.graph, open(), false);
  EXPECT_EQ(next.globalStep(), 1);
  step(next, only.train);
  EXPECT_EQ(next.globalStep(), 2);
}

TEST_F(GraphSupervisorTest, ASummaryIsAScalar) {
  GraphSupervisorOptions summarised = options(true);
  summarised.summarize_every = Duration(0);
  summarised.summaries = {"w"};
  GraphSupervisor chief(disk_, summarised);
  chief.prepare(graph_, open(), false);
  const std::vector<std::string> fetches = {"w"};
  EXPECT_THAT(errorText([&] { chief.run({}, fetches, {}); }),
              HasSubstr("the summary 'w' is no float32 scalar"));
}

TEST_F(GraphSupervisorTest, MistakesAreNamed) {
  GraphSupervisorOptions without = options(true);
  without.log_dir.clear();
  EXPECT_THAT(errorText([&] { GraphSupervisor(disk_, without); }), HasSubstr("no log_dir"));
  GraphSupervisorOptions other = options(true);
  other.saver.global_step = "steps";
  GraphSupervisor chief(disk_, other);
  EXPECT_THAT(errorText([&] { chief.prepare(graph_, open(), false); }),
              HasSubstr("no counter 'steps'"));
}

TEST_F(GraphSupervisorTest, PrepareComesFirst) {
  GraphSupervisor chief(disk_, options(true));
  const std::vector<std::string> fetches = train_;
  const auto first = HasSubstr("prepare the supervisor first");
  EXPECT_THAT(errorText([&] { chief.run({}, fetches, {}); }), first);
  EXPECT_THAT(errorText([&] { chief.globalStep(); }), first);
  EXPECT_THAT(errorText([&] { chief.save(); }), first);
  chief.stop();
  EXPECT_TRUE(chief.shouldStop());
}

}  // namespace
}  // namespace dtf::train
