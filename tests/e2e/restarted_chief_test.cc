// A chief that systemd starts again reads the note of the process before it
// (daemons/restart_note.h).

#include <signal.h>

#include <filesystem>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

// By hand, so that the chief has an environment of its own.
class RestartedChiefTest : public ClusterTest {
 protected:
  std::string byHand(ClusterOptions options) {
    options.ports = freePorts(4);
    return writeCluster(options);
  }

  // ps/0, ps/1, worker/0, worker/1.
  std::vector<Process> startAll(const std::string& file, const Environment& of_chief) {
    std::vector<Process> all;
    all.push_back(startTask(file, "ps", 0));
    all.push_back(startTask(file, "ps", 1));
    all.push_back(startTask(file, "worker", 0, {}, of_chief));
    all.push_back(startTask(file, "worker", 1));
    return all;
  }
  static Process& chief(std::vector<Process>& all) { return all[kChiefTask]; }
};

// systemd's RUNTIME_DIRECTORY outlives the process; no other task runs any more.
TEST_F(RestartedChiefTest, AChiefThatSystemdStartsAgainBehindTheResultEndsWithIt) {
  ClusterOptions job;
  job.mode = "sync";
  job.steps = 200;
  const std::string file = byHand(job), note = folder_.path() + "/note";
  fs::create_directory(note);
  Environment of_chief = {{"DTF_FAILPOINTS", "ending.after_result=kill"}};
  of_chief["RUNTIME_DIRECTORY"] = note;
  std::vector<Process> all = startAll(file, of_chief);
  EXPECT_EQ(chief(all).wait(seconds(60)).exit_code, 128 + SIGKILL);
  EXPECT_EQ(summary()["outcome"], "done") << "systemd may have no restart left";
  fs::remove(folder_.path() + "/runs/job/summary.json");
  all.clear();

  Process again = startTask(file, "worker", 0, {"--set", "timeouts.start_seconds=1"},
                            {{"RUNTIME_DIRECTORY", note}});
  const ProcessResult result = again.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("event=finished_before"), std::string::npos) << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], 200);
  EXPECT_TRUE(summary().contains("parameters_digest")) << summary();
}

// A job without checkpoints is lost with its tasks. Its chief reads from the note that it had made
// progress, and ends with an error instead of training anew.
TEST_F(RestartedChiefTest, AChiefThatSystemdStartsAgainTrainsNothingAnewInSilence) {
  ClusterOptions job;
  job.mode = "sync";
  job.steps = 1'000'000;
  job.train_more = "  report: {every_steps: 10}\n";
  const std::string file = byHand(job), note = folder_.path() + "/note";
  fs::create_directory(note);
  std::vector<Process> all = startAll(file, {{"RUNTIME_DIRECTORY", note}});
  ASSERT_TRUE(chief(all).waitForOutput("event=progress", seconds(60)));
  for (const Process& task : all) task.signal(SIGKILL);
  for (Process& task : all) task.wait(seconds(60));
  all = startAll(file, {{"RUNTIME_DIRECTORY", note}});
  const ProcessResult result = chief(all).wait(seconds(60));
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_NE(result.err.find("add `checkpoint:`"), std::string::npos) << result.err;
}

}  // namespace dtf::testing
