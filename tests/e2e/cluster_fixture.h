#pragma once

// Real clusters for end-to-end tests: a YAML file in a folder of its own, processes of the build
// under test, and queries for tests to make afterwards.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/port_blocks.h"
#include "tests/support/process.h"

namespace dtf::testing {

// For an event that comes on any machine: only a hang takes so long.
inline constexpr std::chrono::seconds kPatience{60};
// Steps of a job that a test ends before it has made them.
inline constexpr int kEndless = 100'000'000;

struct ClusterOptions {
  int ps = 2;  // 0: the file has none
  int workers = 2;
  std::string mode = "async";  // or "sync"
  int steps = 40;
  int epochs = 0;      // in place of steps, where there are any
  int examples = 600;  // of the embedded digits
  int eval_examples = 200;
  int batch_size = 20;
  std::string optimizer = "{gradient_descent: {learning_rate: 0.1}}";
  std::string layers = "[flatten: , dense: {units: 10, name: softmax}]";
  std::string metrics = "[accuracy]";
  std::string replication_more;  // ", replicas_to_aggregate: 1"
  std::string worker_more;       // ", devices: [cpu:0, cpu:1]": more keys of each worker
  std::string top_more;          // more keys of the cluster file, each line "key: value\n"
  // More keys of the train map, each line "  key: value\n". Without a checkpoint among them nothing
  // is saved, unless...
  std::string train_more;
  bool saves_by_default = false;  // the file has no such key
  std::vector<int> ports;         // ps first, then workers; empty: auto
};

class ClusterTest : public ::testing::Test {
 protected:
  ClusterTest();
  ~ClusterTest() override;

  // Writes <folder>/<name>.yaml and returns its path. The run folder is <folder>/runs/<name>.
  std::string writeCluster(const ClusterOptions& options, const std::string& name = "job");
  std::vector<std::string> launchCommand(const std::string& file,
                                         std::vector<std::string> more = {}) const;
  ProcessResult launch(const std::string& file, std::vector<std::string> more = {},
                       std::chrono::seconds deadline = std::chrono::seconds(60));
  // psd or workerd of the cluster file, started as by hand.
  Process startTask(const std::string& file, const std::string& job, int index,
                    std::vector<std::string> more = {},
                    std::map<std::string, std::string> environment = {});
  // All four of a file with two ps and two workers: ps/0, ps/1, worker/0, worker/1.
  std::vector<Process> startFour(const std::string& file,
                                 std::map<std::string, std::string> environment = {});
  static constexpr size_t kChiefTask = 2;  // of startFour()'s

  // Null when there is none. Stays where it is until the file has changed.
  Json& summary(const std::string& name = "job") const;
  // Processes whose command line mentions this test's folder. A finished job must leave none.
  std::vector<std::string> leftovers() const;
  // Polls until leftovers() is empty, for at most five seconds.
  bool everybodyGone() const;
  // Expects no process, and no listener on the ports that were given to the jobs.
  void expectNobodyLeft() const;
  // Expects no temporary file either, however the processes ended: the next job sweeps those that a
  // killed one left.
  void expectNothingLeft() const;

  TemporaryFolder folder_;

 private:
  struct Summary {
    std::string text;
    Json json;
  };
  bool anyPortInUse() const;

  std::vector<int> ports_given_;  // in cluster files
  mutable std::map<std::string, Summary> summaries_;
};

std::string binary(const std::string& name);  // path of psd, workerd, dtf-launch

// The environment of a job that a test disturbs: a step of a worker takes four milliseconds at
// least. So a fast machine doesn't come to the end of a few hundred steps before the disturbance,
// and a job that is awaited leaves the cores to other tests.
std::map<std::string, std::string> unhurried();

}  // namespace dtf::testing
