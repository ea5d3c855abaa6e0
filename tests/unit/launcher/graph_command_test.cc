#include <gmock/gmock.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GraphCommand : public VerbTest {
 protected:
  GraphCommand() {
    job_.cluster.ps.resize(1);
    job_.cluster.ps[0].address = {"localhost", 0};
    job_.cluster.worker[0].address = {"localhost", 0};
  }
  void graphIs(const std::string& text) { options_.graph = folder_.write("graph.yaml", text); }
  std::string run() {
    return printed([this] { return graph(job_, options_, net::Credentials::ownUser()); });
  }
  static constexpr const char* kGraph =
      "ops:\n"
      "  - Variable: {name: w, shape: [2], initializer: ones, device: /job:ps/task:0}\n"
      "  - Scale: {name: twice, inputs: [w], factor: 2}\n"
      "run:\n"
      "  fetches: [twice]\n";
};

TEST_F(GraphCommand, ADryRunShowsWhereEachOpWouldRun) {
  graphIs(kGraph);
  options_.dry_run = true;
  EXPECT_THAT(run(), AllOf(HasSubstr("/job:ps/"), HasSubstr("/job:worker/"), HasSubstr("w"),
                           HasSubstr("twice")));
  EXPECT_EQ(code_, 0);
  options_.dot = true;
  EXPECT_THAT(run(), StartsWith("digraph "));
}

TEST_F(GraphCommand, AMistakeIsShownAtItsOp) {
  options_.dry_run = true;
  graphIs("ops:\n  - Relu: {name: y, inputs: [x]}\nrun:\n  fetches: [y]\n");
  EXPECT_THAT(refusal(ErrorCode::kBadConfig,
                      [this] { return graph(job_, options_, net::Credentials::ownUser()); }),
              HasSubstr("graph.yaml:2:"));
  graphIs(
      "ops:\n  - Const: {name: x, dtype: float32, shape: [], value: 2, device: /job:ps/task:7}"
      "\nrun:\n  fetches: [x]\n");
  EXPECT_THAT(refusal(ErrorCode::kBadConfig,
                      [this] { return graph(job_, options_, net::Credentials::ownUser()); }),
              AllOf(HasSubstr("graph.yaml:2:"), HasSubstr("task:7")));
}

TEST_F(GraphCommand, ItNeedsAFileAndSomethingToRun) {
  EXPECT_THAT(refusal(ErrorCode::kUsage,
                      [this] { return graph(job_, options_, net::Credentials::ownUser()); }),
              HasSubstr("--graph is missing: name a GRAPH.yaml"));
  graphIs("ops:\n  - Const: {name: x, dtype: float32, shape: [], value: 2}\n");
  EXPECT_THAT(refusal(ErrorCode::kBadConfig,
                      [this] { return graph(job_, options_, net::Credentials::ownUser()); }),
              HasSubstr("'run' names no targets and no fetches"));
}

TEST_F(GraphCommand, TasksThatDoNotRunAreNamed) {
  graphIs(kGraph);
  EXPECT_THAT(refusal(ErrorCode::kUnavailable,
                      [this] { return graph(job_, options_, net::Credentials::ownUser()); }),
              HasSubstr("ps/0 doesn't run: start its tasks with 'dtf-launch serve "));
}

}  // namespace
}  // namespace dtf::launcher
