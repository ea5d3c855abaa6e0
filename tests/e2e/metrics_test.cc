// /healthz, /readyz and /metrics of the real processes of a job.

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/support/http_client.h"

namespace dtf::testing {

using std::chrono::seconds;
using ::testing::HasSubstr;

namespace {

// Asks until `is_it`, or in vain.
HttpAnswer await(int port, const std::string& path,
                 const std::function<bool(const HttpAnswer&)>& is_it) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const HttpAnswer answer = httpGet(port, path);
    if (is_it(answer) || std::chrono::steady_clock::now() >= end) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

HttpAnswer awaitStatus(int port, const std::string& path, int status) {
  return await(port, path, [status](const HttpAnswer& answer) { return answer.status == status; });
}

MetricsPage scrape(int port) {
  const HttpAnswer answer = awaitStatus(port, "/metrics", 200);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return parseMetrics(answer.body);
}

// Port of an address like "127.0.0.1:40123".
int portOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

class MetricsTest : public ClusterTest {
 protected:
  // A job by hand; ps/0 and worker/0 serve metrics on ports of their own.
  void describe(ClusterOptions options = {}) {
    options.ps = options.workers = 1;
    options.steps = kEndless;
    options.ports = freePorts(2);
    file_ = writeCluster(options);
    const std::vector<int> ports = freePorts(2);
    ps_port_ = ports[0];
    worker_port_ = ports[1];
  }
  Process start(const std::string& job, int port) {
    return startTask(file_, job, 0, {"--metrics-port", std::to_string(port)});
  }

  std::string file_;
  int ps_port_ = 0, worker_port_ = 0;
};

bool waitsForPs(const HttpAnswer& answer) {
  return answer.body.find("not ready: it waits for ps/0") != std::string::npos;
}

TEST_F(MetricsTest, AWorkerIsNotReadyWithoutItsPs) {
  describe();
  const Process worker = start("worker", worker_port_);
  EXPECT_EQ(awaitStatus(worker_port_, "/healthz", 200).status, 200) << worker.err();
  EXPECT_EQ(await(worker_port_, "/readyz", waitsForPs).status, 503) << worker.err();
  const Process ps = start("ps", ps_port_);
  EXPECT_EQ(awaitStatus(ps_port_, "/readyz", 200).body, "ready\n") << ps.err();
  EXPECT_EQ(awaitStatus(worker_port_, "/readyz", 200).body, "ready\n") << worker.err();
  EXPECT_THAT(httpGet(ps_port_, "/healthz").body, HasSubstr(" of 100000000"));
}

TEST_F(MetricsTest, AWorkerThatHasLostItsPsIsNotReadyAnyMore) {
  describe();
  const Process worker = start("worker", worker_port_);
  {
    const Process ps = start("ps", ps_port_);
    ASSERT_EQ(awaitStatus(worker_port_, "/readyz", 200).status, 200) << worker.err();
  }
  EXPECT_EQ(await(worker_port_, "/readyz", waitsForPs).status, 503) << "the ps was killed";
  EXPECT_EQ(scrape(worker_port_).value("dtf_task_ready"), 0);
  EXPECT_EQ(httpGet(worker_port_, "/healthz").status, 200) << worker.err();
}

TEST_F(MetricsTest, APsWithoutItsWorkersIsHealthyAndNotReady) {
  describe();
  const Process ps = start("ps", ps_port_);
  EXPECT_EQ(awaitStatus(ps_port_, "/healthz", 200).status, 200) << ps.err();
  const HttpAnswer ready = httpGet(ps_port_, "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr("waits for worker/0"));
  const MetricsPage page = scrape(ps_port_);
  EXPECT_EQ(page.task, "ps/0");
  EXPECT_EQ(page.value("dtf_task_ready"), 0);
  EXPECT_EQ(page.value("dtf_workers", "state=\"awaited\""), 1);
}

TEST_F(MetricsTest, CountersRiseWithTheSteps) {
  describe();
  const Process ps = start("ps", ps_port_), worker = start("worker", worker_port_);
  ASSERT_EQ(awaitStatus(worker_port_, "/readyz", 200).status, 200) << worker.err();
  const MetricsPage before = scrape(ps_port_);
  const auto applied = [](const MetricsPage& page) {
    return page.value("dtf_gradients_total", "outcome=\"applied\"");
  };
  await(ps_port_, "/metrics", [&](const HttpAnswer& answer) {
    return applied(parseMetrics(answer.body)) > applied(before) + 10;
  });
  const MetricsPage after = scrape(ps_port_);
  EXPECT_GT(applied(after), applied(before) + 10) << worker.err();
  EXPECT_GE(after.value("dtf_global_step"), applied(before) + 10);
  EXPECT_GT(after.value("dtf_gradient_bytes_total"), before.value("dtf_gradient_bytes_total"));
  EXPECT_LT(after.value("dtf_received_bytes_total", "kind=\"bulk\""),
            after.value("dtf_gradient_bytes_total"))
      << "they were read in the worker's memory";
  EXPECT_GE(after.value("process_cpu_seconds_total"), before.value("process_cpu_seconds_total"));
  EXPECT_EQ(after.value("dtf_workers", "state=\"joined\""), 1);
  const HttpAnswer told = await(worker_port_, "/metrics", [](const HttpAnswer& answer) {
    return parseMetrics(answer.body).value("dtf_global_step") > 0;
  });
  const MetricsPage of_worker = parseMetrics(told.body);
  EXPECT_EQ(of_worker.task, "worker/0");
  EXPECT_GT(of_worker.value("dtf_global_step"), 0) << worker.err();
  EXPECT_EQ(of_worker.value("dtf_job_steps"), kEndless);
  EXPECT_GT(of_worker.value("dtf_job_examples_per_second"), 0);
}

TEST_F(MetricsTest, AWorkerSaysWhatItHasDone) {
  describe({.batch_size = 20,
            .top_more = "shared_memory: false\n",
            .train_more = "  checkpoint: {every_seconds: 3600}\n"});
  const Process ps = start("ps", ps_port_), worker = start("worker", worker_port_);
  const HttpAnswer told = await(worker_port_, "/metrics", [](const HttpAnswer& answer) {
    return answer.status == 200 && parseMetrics(answer.body).value("dtf_examples_total") > 0;
  });
  const MetricsPage page = parseMetrics(told.body);
  const double batches = page.value("dtf_batches_total", "outcome=\"applied\"");
  EXPECT_GT(batches, 0) << worker.err();
  EXPECT_EQ(page.value("dtf_examples_total"), 20 * batches);
  EXPECT_EQ(page.value("dtf_step_seconds_count"), batches);
  EXPECT_GT(page.value("dtf_step_seconds_sum"), 0);
  EXPECT_EQ(page.value("dtf_checkpoints_total", "outcome=\"saved\""), 0);
  const MetricsPage of_ps = scrape(ps_port_);
  EXPECT_EQ(of_ps.value("dtf_epoch"), 1);
  EXPECT_NEAR(of_ps.value("dtf_parameter_bytes"), 7850 * 4, 200) << "with their alignment";
  EXPECT_EQ(of_ps.value("dtf_connections", "kind=\"bulk\""), 1);
  EXPECT_GT(of_ps.value("dtf_received_bytes_total", "kind=\"bulk\""),
            of_ps.value("dtf_gradient_bytes_total"));
  EXPECT_GT(of_ps.value("dtf_sent_bytes_total", "kind=\"control\""), 0);
}

bool isRow(const std::string& line) {
  return line.starts_with("| `dtf_") || line.starts_with("| `process_");
}

// The rows of the table of metrics in the Markdown file `path`.
std::set<std::string> rowsOf(const std::string& path) {
  std::set<std::string> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (isRow(line)) rows.insert(line);
  return rows;
}

// Puts `rows` in the place of the rows there.
void rewriteRows(const std::string& path, const std::set<std::string>& rows) {
  std::string text;
  bool is_written = false;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!isRow(line)) text += line + "\n";
    if (!isRow(line) || is_written) continue;
    for (const std::string& row : rows) text += row + "\n";
    is_written = true;
  }
  std::ofstream(path) << text;
}

// The table in daemons/METRICS.md has each metric that a task has, with its kind, its tasks and its
// help. DTF_UPDATE_DOCS=1 rewrites the table.
TEST_F(MetricsTest, AreListedInTheirChapter) {
  describe({.top_more = "traces: {endpoint: 'http://127.0.0.1:1'}\n",
            .train_more = "  checkpoint: {every_steps: 100}\n"});
  const Process ps = start("ps", ps_port_), worker = start("worker", worker_port_);
  const int serving = freePorts(1)[0];
  const Process served =
      startTask(writeCluster({.ps = 1, .workers = 1, .ports = freePorts(2)}, "served"), "worker", 0,
                {"--serve", "--metrics-port", std::to_string(serving)});
  std::map<std::string, std::set<std::string>> tasks_of;
  std::map<std::string, MetricsPage::Family> families;
  const auto look = [&](const std::string& kind, int port) {
    for (const auto& [name, family] : scrape(port).families) {
      tasks_of[name].insert(kind);
      families[name] = family;
    }
  };
  await(worker_port_, "/metrics", [](const HttpAnswer& answer) {
    return answer.body.find("dtf_checkpoint_step") != std::string::npos;
  });
  look("ps", ps_port_);
  look("worker", worker_port_);
  look("serve", serving);
  std::set<std::string> expected;
  for (const auto& [name, family] : families) {
    std::string tasks;
    for (const std::string& kind : tasks_of[name]) tasks += (tasks.empty() ? "" : ", ") + kind;
    if (tasks_of[name].size() == 3) tasks = "all";
    expected.insert("| `" + name + "` | " + family.type + " | " + tasks + " | " + family.help +
                    " |");
  }
  const std::string chapter = std::string(std::getenv("DTF_SOURCE_ROOT")) + "/daemons/METRICS.md";
  if (std::getenv("DTF_UPDATE_DOCS") != nullptr) rewriteRows(chapter, expected);
  const std::set<std::string> written = rowsOf(chapter);
  EXPECT_EQ(written, expected);
}

// Under dtf-launch each task has a port of its own, and `status` says which.
TEST_F(MetricsTest, ALaunchedJobSaysWhereItsTasksAnswer) {
  const std::string file = writeCluster({.steps = kEndless, .top_more = "metrics: {port: auto}\n"});
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("all 4 tasks are ready", kPatience)) << launcher.err();
  const ProcessResult status =
      runProcess({binary("dtf-launch"), "status", file, "--json"}, kPatience, {}, folder_.path());
  std::set<std::string> scraped;
  const Json said = Json::parse(status.out);
  for (const Json& task : said["tasks"]) {
    ASSERT_TRUE(task["answer"]["metrics"].isString()) << task;
    const int port = portOf(task["answer"].stringAt("metrics"));
    EXPECT_EQ(awaitStatus(port, "/readyz", 200).status, 200) << task;
    const MetricsPage page = scrape(port);
    EXPECT_EQ(page.task, task["name"]);
    scraped.insert(page.task);
  }
  EXPECT_EQ(scraped, (std::set<std::string>{"ps/0", "ps/1", "worker/0", "worker/1"}));
  launcher.signal(SIGTERM);
  EXPECT_GE(launcher.wait(kPatience).exit_code, 0) << launcher.err();
}

TEST_F(MetricsTest, ATaskThatServesIsReadyForSessions) {
  describe();
  const Process ps =
      startTask(file_, "ps", 0, {"--serve", "--metrics-port", std::to_string(ps_port_)});
  EXPECT_EQ(awaitStatus(ps_port_, "/readyz", 200).body, "ready\n") << ps.err();
  const MetricsPage page = scrape(ps_port_);
  EXPECT_EQ(page.value("dtf_sessions"), 0);
  EXPECT_GT(page.value("dtf_held_bytes_max"), 0);
}

TEST_F(MetricsTest, APortInUseIsSaidAtTheStart) {
  describe();
  const Process first = start("ps", ps_port_);
  ASSERT_EQ(awaitStatus(ps_port_, "/healthz", 200).status, 200) << first.err();
  Process second = start("worker", ps_port_);
  const ProcessResult result = second.wait(kPatience);
  EXPECT_EQ(result.exit_code, 69);
  EXPECT_THAT(result.err, HasSubstr("the port is in use by pid " + std::to_string(first.pid())));
  EXPECT_THAT(result.err, HasSubstr("it is to have this task's metrics (metrics.port)"));
}

}  // namespace

}  // namespace dtf::testing
