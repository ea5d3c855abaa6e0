// A process that saves checkpoints is killed at every named point of the protocol, and told to fail
// there: the one before or the new one is always whole, and the next process goes on.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <sstream>

#include "tests/support/process.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;

class CheckpointKill : public ::testing::Test {
 protected:
  ProcessResult tool(std::vector<std::string> arguments, const std::string& failpoints = {}) {
    const char* path = std::getenv("DTF_CHECKPOINT_TOOL");
    arguments.insert(arguments.begin(), path == nullptr ? "checkpoint_tool" : path);
    std::map<std::string, std::string> environment;
    if (!failpoints.empty()) environment["DTF_FAILPOINTS"] = failpoints;
    return runProcess(std::move(arguments), seconds(60), std::move(environment));
  }

  ProcessResult save(const std::string& folder, int step, const std::string& failpoints = {}) {
    return tool({"save", folder, std::to_string(step), "2"}, failpoints);
  }

  void expectWhole(const std::string& folder, int step_min) {
    const ProcessResult result = tool({"verify", folder, std::to_string(step_min)});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }

  std::vector<std::string> points() {
    std::istringstream lines(tool({"points"}).out);
    std::vector<std::string> names;
    for (std::string name; std::getline(lines, name);)
      if (name.starts_with("checkpoint.")) names.push_back(name);
    return names;
  }

  // Steps 1 to 3 are there; step 4 is disturbed at this point; step 5 must succeed.
  void disturb(const std::string& point, const std::string& action, int exit_code) {
    SCOPED_TRACE(point + "=" + action);
    const TemporaryFolder root;
    const std::string folder = root.path() + "/checkpoints";
    for (int step = 1; step <= 3; ++step) ASSERT_EQ(save(folder, step).exit_code, 0);
    const ProcessResult disturbed = save(folder, 4, point + "=" + action);
    EXPECT_EQ(disturbed.exit_code, exit_code) << disturbed.out << disturbed.err;
    const bool promised = disturbed.out.find("committed 4") != std::string::npos;
    expectWhole(folder, promised ? 4 : 3);
    const ProcessResult next = save(folder, 5);
    EXPECT_EQ(next.exit_code, 0) << next.err;
    expectWhole(folder, 5);
  }
};

TEST_F(CheckpointKill, AtEveryPoint) {
  const auto names = points();
  ASSERT_GE(names.size(), 15u);
  for (const std::string& name : names) disturb(name, "kill", 128 + SIGKILL);
}

// The second shard's passage of the points that every ps passes.
TEST_F(CheckpointKill, AtEveryPointOfTheSecondShard) {
  int disturbed = 0;
  for (const std::string& name : points()) {
    if (name.find("shard_") == std::string::npos) continue;
    disturb(name, "kill@2", 128 + SIGKILL);
    ++disturbed;
  }
  EXPECT_EQ(disturbed, 5);
}

TEST_F(CheckpointKill, AnErrorAtEveryPoint) {
  constexpr int kCannotWrite = 73;
  for (const std::string& name : points()) disturb(name, "error", kCannotWrite);
}

}  // namespace
}  // namespace dtf::testing
