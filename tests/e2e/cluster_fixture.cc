#include "tests/e2e/cluster_fixture.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace dtf::testing {

namespace fs = std::filesystem;

namespace {

// Files of common/base/file.cc, and of incomplete checkpoints (common/checkpoint/CHECKPOINT.md).
bool isTemporary(const std::string& name) {
  for (const char* mark : {".tmp.", ".probe.", ".tmp-", ".trash-"})
    if (name.find(mark) != std::string::npos) return true;
  return false;
}

}  // namespace

std::string binary(const std::string& name) {
  const char* folder = std::getenv("DTF_BUILD_ROOT");
  if (folder == nullptr)
    throw std::runtime_error("DTF_BUILD_ROOT is not set: run this through meson test");
  const std::string root(folder);
  return name == "dtf-launch" ? root + "/launcher/dtf-launch"
                              : root + "/daemons/" + name + "/" + name;
}

std::map<std::string, std::string> unhurried() {
  return {{"DTF_FAILPOINTS", "training.in_step=sleep:4"}};
}

ClusterTest::ClusterTest() {
  ::unsetenv("DTF_NOTIFY_FD");
  ::unsetenv("DTF_LISTEN_FD");
  ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);  // for the registry of runs
  ::setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
  ::setenv("XDG_CACHE_HOME", (folder_.path() + "/cache").c_str(), 1);
}

ClusterTest::~ClusterTest() = default;

std::string ClusterTest::writeCluster(const ClusterOptions& o, const std::string& name) {
  const auto hosts = [&](int first, int count, const std::string& more) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      const std::string address = fmt::format(
          "localhost:{}",
          o.ports.empty() ? "auto" : std::to_string(o.ports[static_cast<size_t>(first + i)]));
      list += (i ? ", " : "") +
              (more.empty() ? address : fmt::format("{{address: \"{}\"{}}}", address, more));
    }
    return list;
  };
  const bool says = o.saves_by_default || o.train_more.find("checkpoint:") != std::string::npos;
  ports_given_.insert(ports_given_.end(), o.ports.begin(), o.ports.end());
  return folder_.write(
      name + ".yaml",
      fmt::format(
          "job: {}\nrun_dir: {}/runs/{}\ncluster:\n{}  worker: [{}]\n{}"
          "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n    layers: {}\n"
          "    loss: sparse_categorical_crossentropy\n    metrics: {}\n"
          "  data:\n    train: {{format: digits, count: {}}}\n    eval: {{format: digits, "
          "count: {}}}\n"
          "    batch_size: {}\n    seed: 7\n  optimizer: {}\n  replication: {{mode: "
          "{}{}}}\n  {}: {}\n{}{}",
          name, folder_.path(), name, o.ps > 0 ? "  ps: [" + hosts(0, o.ps, "") + "]\n" : "",
          hosts(o.ps, o.workers, o.worker_more), o.top_more, o.layers, o.metrics, o.examples,
          o.eval_examples, o.batch_size, o.optimizer, o.mode, o.replication_more,
          o.epochs > 0 ? "epochs" : "steps", o.epochs > 0 ? o.epochs : o.steps, o.train_more,
          says ? "" : "  checkpoint: none\n"));
}

std::vector<std::string> ClusterTest::launchCommand(const std::string& file,
                                                    std::vector<std::string> more) const {
  // --verbose prints the log lines of the tasks, for tests to read.
  std::vector<std::string> argv = {binary("dtf-launch"), file, "--verbose"};
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

ProcessResult ClusterTest::launch(const std::string& file, std::vector<std::string> more,
                                  std::chrono::seconds deadline) {
  return runProcess(launchCommand(file, std::move(more)), deadline, {}, folder_.path());
}

Process ClusterTest::startTask(const std::string& file, const std::string& job, int index,
                               std::vector<std::string> more,
                               std::map<std::string, std::string> environment) {
  std::vector<std::string> argv = {binary(job == "ps" ? "psd" : "workerd"), "--cluster", file,
                                   "--task", std::to_string(index)};
  argv.insert(argv.end(), more.begin(), more.end());
  return Process(std::move(argv), std::move(environment), folder_.path());
}

std::vector<Process> ClusterTest::startFour(const std::string& file,
                                            std::map<std::string, std::string> environment) {
  std::vector<Process> tasks;
  for (const char* job : {"ps", "worker"})
    for (const int index : {0, 1}) tasks.push_back(startTask(file, job, index, {}, environment));
  return tasks;
}

Json& ClusterTest::summary(const std::string& name) const {
  const std::string text = folder_.read("runs/" + name + "/summary.json");
  Summary& known = summaries_[name];
  if (known.text != text) known = {text, text.empty() ? Json() : Json::parse(text)};
  return known.json;
}

std::vector<std::string> ClusterTest::leftovers() const {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(folder_.path()) != std::string::npos)
      found.push_back(pid + " " + text.str());
  }
  return found;
}

namespace {

bool withinFiveSeconds(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + Process::kSlowest * std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    ::poll(nullptr, 0, 20);
  }
  return holds();
}

}  // namespace

bool ClusterTest::everybodyGone() const {
  return withinFiveSeconds([this] { return leftovers().empty(); });
}

bool ClusterTest::anyPortInUse() const {
  return std::any_of(ports_given_.begin(), ports_given_.end(),
                     [](int port) { return isGiven(port) && somebodyListens(port); });
}

void ClusterTest::expectNobodyLeft() const {
  EXPECT_TRUE(everybodyGone()) << ::testing::PrintToString(leftovers());
  // A process that is ending has no command line any more when its sockets are still to be closed.
  withinFiveSeconds([this] { return !anyPortInUse(); });
  for (const int port : ports_given_)
    EXPECT_FALSE(isGiven(port) && somebodyListens(port)) << "on port " << port;
}

void ClusterTest::expectNothingLeft() const {
  expectNobodyLeft();
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    EXPECT_FALSE(isTemporary(entry.path().filename())) << entry.path();
}

}  // namespace dtf::testing
