// Whole jobs by dtf-launch: real processes, automatic ports, the embedded digits (or the real MNIST
// with DTF_MNIST_DIR), 28 x 28 x 10 softmax regression, batch 100, gradient descent.

#include <fmt/core.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/base/error.h"
#include "common/base/json.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/whole_job.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kJoinedWithin{120};  // also on a busy machine

std::string dataText() {
  const char* mnist = std::getenv("DTF_MNIST_DIR");
  if (mnist == nullptr)
    return "train: {format: digits, count: 10000}, eval: {format: digits, count: 2000}";
  const std::string folder = fs::absolute(mnist).string();
  return fmt::format(
      "train: {{format: idx, images: {0}/train-images-idx3-ubyte.gz, labels: "
      "{0}/train-labels-idx1-ubyte.gz}}, "
      "eval: {{format: idx, images: {0}/t10k-images-idx3-ubyte.gz, labels: "
      "{0}/t10k-labels-idx1-ubyte.gz}}",
      folder);
}

std::string clusterText(const std::string& folder, const std::string& mode, uint64_t steps) {
  return fmt::format(
      "job: bench\nrun_dir: {}/runs\ncluster:\n"
      "  ps: [\"localhost:auto\", \"localhost:auto\"]\n  worker: [\"localhost:auto\", "
      "\"localhost:auto\"]\n"
      "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n"
      "    layers: [flatten: , dense: {{units: 10, name: softmax}}]\n"
      "    loss: sparse_categorical_crossentropy\n    metrics: [accuracy]\n"
      "  data: {{{}, batch_size: 100, seed: 1}}\n"
      "  optimizer: {{gradient_descent: {{learning_rate: 0.1}}}}\n  replication: {{mode: {}}}\n  "
      "steps: {}\n  checkpoint: none\n",
      folder, dataText(), mode, steps);
}

// User and system time of a process so far, all its threads.
double cpuSecondsOf(pid_t pid) {
  clockid_t clock = 0;
  timespec spent{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &spent) != 0)
    throw Error(ErrorCode::kInternal, "the process is gone");
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<Report> benchSoftmax(const BenchOptions& options) {
  Report report("softmax regression, 784 x 10, batch 100, 2 ps + 2 workers (medians)",
                {"global steps/s", "examples/s", "first step s", "accuracy"});
  std::map<std::string, std::map<std::string, std::vector<double>>> found;
  const std::vector<std::string> columns = {"steps_per_second", "examples_per_second",
                                            "first_step_seconds", "accuracy"};
  for (int i = 0; i < options.repetitions; ++i) {  // alternating, so that a slow minute hits both
    for (const std::string mode : {"async", "sync"}) {
      const uint64_t steps = options.quick ? 300 : mode == "async" ? 30000 : 12000;
      Json summary =
          runJob([&](const std::string& folder) { return clusterText(folder, mode, steps); });
      summary["accuracy"] = summary["eval"]["accuracy"];
      for (const std::string& column : columns)
        found[mode][column].push_back(summary[column].asDouble());
    }
  }
  for (const std::string mode : {"async", "sync"}) {
    std::vector<double> values;
    for (const std::string& column : columns) values.push_back(median(found[mode][column]));
    report.add(mode, values);
  }
  return {report};
}

// A psd and a workerd that wait for tasks that never come.
std::vector<Report> benchIdle(const BenchOptions& options) {
  const testing::TemporaryFolder folder;
  const ListeningSocket ps_socket, worker_socket;
  ListeningSocket absent;  // of ps/1, which the workerd waits for
  absent.fd.reset();
  const std::string file = folder.write(
      "idle.yaml",
      fmt::format("job: idle\nrun_dir: {}/runs\ncluster:\n"
                  "  ps: [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\n  worker: [\"127.0.0.1:{}\"]\n"
                  "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n"
                  "    layers: [flatten: , dense: {{units: 10}}]\n"
                  "    loss: sparse_categorical_crossentropy\n  steps: 10\n  checkpoint: none\n",
                  folder.path(), ps_socket.port, absent.port, worker_socket.port));
  const auto ps_task = startTask("daemons/psd/psd", file, 0, ps_socket);
  const auto worker_task = startTask("daemons/workerd/workerd", file, 0, worker_socket);
  testing::Process &ps = *ps_task, &worker = *worker_task;
  if (!ps.waitForOutput("event=joined", kJoinedWithin))
    throw Error(ErrorCode::kInternal, "the worker did not join:\n" + ps.err() + worker.err());
  // The first window contains the work of the start: the worker draws its data.
  const double seconds = options.quick ? 0.5 : 5;
  std::vector<double> of_ps, of_worker;
  for (int window = 0; window <= options.repetitions; ++window) {
    const double ps_before = cpuSecondsOf(ps.pid()), worker_before = cpuSecondsOf(worker.pid());
    ::poll(nullptr, 0, static_cast<int>(seconds * 1000));
    if (window == 0) continue;
    of_ps.push_back(100 * (cpuSecondsOf(ps.pid()) - ps_before) / seconds);
    of_worker.push_back(100 * (cpuSecondsOf(worker.pid()) - worker_before) / seconds);
  }
  Report report("idle daemons", {"% of a core"});
  report.add("psd, one worker connected", {median(of_ps)});
  report.add("workerd, waiting for ps/1", {median(of_worker)});
  return {report};
}

}  // namespace dtf::bench
