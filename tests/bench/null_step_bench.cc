// `dtf-bench null-step`: the micro-benchmark of the OSDI'16 paper on TensorFlow, section 6.2. In
// each step every worker sends all ps an update of all parameters and gets the parameters back; the
// training is synchronous, so a step ends when the update of the slowest worker is in it. Real psd
// processes, a process per worker. Beside it, in turns: each worker moves the same bytes to a
// process of its own and back, over one raw socket, from and to memory that is there already.

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <list>
#include <memory>

#include "common/base/error.h"
#include "common/base/log.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/null_step_worker.h"
#include "tests/bench/raw_peer.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

constexpr std::chrono::seconds kRowDeadline{900};

struct Row {
  uint64_t bytes = 0;  // of all parameters; 0: one float on each ps
  uint32_t workers = 0;
  uint32_t ps = 0;
  bool in_memory = false;  // workers and ps read each other's arenas

  uint64_t elements() const { return std::max<uint64_t>(1, bytes / sizeof(float) / ps); }
  std::string name() const {
    const std::string size = bytes == 0           ? "scalar"
                             : bytes < 1000000000 ? fmt::format("{} MB", bytes / 1000000)
                                                  : fmt::format("{} GB", bytes / 1000000000);
    return fmt::format("{}, {} worker{}, {} ps{}", size, workers, workers == 1 ? "" : "s", ps,
                       in_memory ? ", memory" : "");
  }
  // Gradients and parameters of each worker and their copy on the ps, both ends of the raw socket,
  // snapshots.
  uint64_t memoryBytes() const { return bytes * (5 * workers + 3); }
};

uint64_t availableMemoryBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (uint64_t kib = 0; file >> key >> kib >> unit;)
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

std::vector<Row> rowsOf(const BenchOptions& options) {
  constexpr uint64_t kMB = 1000000;
  if (options.quick) return {{0, 1, 1}, {0, 2, 2}, {kMB, 2, 2}, {kMB, 2, 2, true}};
  std::vector<Row> rows;
  for (const uint64_t bytes : {uint64_t{0}, 100 * kMB, 1000 * kMB})
    for (const uint32_t workers : {1, 2, 4, 8})
      for (const uint32_t ps : {1, 2, 4}) {
        const bool by_default = bytes == 0 || (bytes == 100 * kMB && workers != 4 && ps != 2) ||
                                (bytes == 1000 * kMB && workers == 1 && ps == 1);
        if (!options.full && options.only.empty() && !by_default) continue;
        rows.push_back({bytes, workers, ps});
        if (bytes > 0) rows.push_back({bytes, workers, ps, true});
      }
  return rows;
}

int stepsOf(const Row& row, const BenchOptions& options) {
  if (options.quick) return 10;
  if (row.bytes == 0) return 1000 / static_cast<int>(row.workers);
  return row.bytes < 1000000000 ? 5 : 2;
}

// Becomes a psd that listens on `listening`; its log goes to the file `log`.
void becomePs(const ListeningSocket& listening, const std::string& cluster_file, uint32_t task,
              const std::string& log) {
  const std::string program = buildProgram("daemons/psd/psd");
  const int log_fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(log_fd, STDERR_FILENO);
  ::setenv("DTF_LISTEN_FD", std::to_string(::dup(listening.fd.get())).c_str(), 1);
  ::execl(program.c_str(), "psd", "--cluster", cluster_file.c_str(), "--task",
          std::to_string(task).c_str(), nullptr);
  throw Error(ErrorCode::kUnavailable, "cannot start " + program);
}

// The processes of one row: ps, raw servers, workers.
class RowCluster {
 public:
  RowCluster(const Row& row, int repetitions, int steps) : row_(row) {
    makeJob();
    startServers();
    startWorkers(repetitions, steps);
  }

  // Times of each repetition, of all workers together.
  std::vector<NullStepTimes> times() {
    std::vector<NullStepTimes> all;
    for (const Worker& worker : workers_) {
      const auto own = readTimes(worker);
      all.resize(own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        all[i].dtf.insert(all[i].dtf.end(), own[i].dtf.begin(), own[i].dtf.end());
        all[i].raw.insert(all[i].raw.end(), own[i].raw.begin(), own[i].raw.end());
      }
    }
    return all;
  }

 private:
  struct Worker {
    NullStepWorker task;
    Pipe times;
    std::unique_ptr<Child> process;
  };

  void makeJob() {
    job_.job = "null-step";
    job_.cluster.shared_memory = row_.in_memory;
    std::string ps;
    for (uint32_t i = 0; i < row_.ps; ++i) {
      const uint16_t port = ps_sockets_.emplace_back().port;
      job_.cluster.ps.emplace_back().address = {"127.0.0.1", port};
      ps += fmt::format("{}\"127.0.0.1:{}\"", i == 0 ? "" : ", ", port);
    }
    // The workers' addresses have no listener, but a ps compares its own list of them with theirs.
    std::string workers;
    for (uint32_t i = 0; i < row_.workers; ++i) {
      const auto port = static_cast<uint16_t>(1 + i);
      job_.cluster.worker.emplace_back().address = {"127.0.0.1", port};
      workers += fmt::format("{}\"127.0.0.1:{}\"", i == 0 ? "" : ", ", port);
    }
    cluster_file_ = folder_.write(
        "cluster.yaml", fmt::format("job: {}\nrun_dir: {}\ncluster:\n  ps: [{}]\n  worker: [{}]\n",
                                    job_.job, folder_.path(), ps, workers));
  }

  void startServers() {
    uint32_t task = 0;
    for (ListeningSocket& socket : ps_sockets_) {
      const std::string log = fmt::format("{}/ps{}.log", folder_.path(), task);
      servers_.emplace_back([&] { becomePs(socket, cluster_file_, task, log); }, Child::Cpu::kAny);
      socket.fd.reset();
      ++task;
    }
    const size_t bytes = row_.elements() * sizeof(float) * row_.ps;
    for (uint32_t rank = 0; rank < row_.workers; ++rank) {
      ListeningSocket socket;
      raw_ports_.push_back(socket.port);
      servers_.emplace_back([&] { serveRaw(socket.fd, bytes); }, Child::Cpu::kAny);
    }
  }

  void startWorkers(int repetitions, int steps) {
    for (uint32_t rank = 0; rank < row_.workers; ++rank) {
      Worker& worker = workers_.emplace_back();
      worker.task = {job_, rank, row_.elements(), raw_ports_[rank], repetitions, steps};
      worker.process = std::make_unique<Child>(
          [&] {
            log::init("", log::Level::kWarning);  // no lines about waiting for the others
            runNullStepWorker(worker.task, worker.times.out);
          },
          Child::Cpu::kAny);
      worker.times.out.reset();
    }
  }

  std::vector<NullStepTimes> readTimes(const Worker& worker) {
    try {
      return readNullStepTimes(worker.task, worker.times.in, kRowDeadline);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} ({}); the log of ps/0:\n{}", error.message(),
                                            row_.name(), folder_.read("ps0.log")));
    }
  }

  const Row row_;
  const testing::TemporaryFolder folder_;
  cluster::JobSpec job_;
  std::string cluster_file_;
  std::list<ListeningSocket> ps_sockets_;
  std::vector<uint16_t> raw_ports_;
  std::list<Child> servers_;
  std::list<Worker> workers_;  // end before their servers
};

// p50 and p99 are taken over a repetition; the results are their medians.
std::vector<double> measure(const Row& row, const BenchOptions& options, double unit) {
  const int repetitions =
      row.bytes < 1000000000 ? options.repetitions : std::min(options.repetitions, 5);
  RowCluster cluster(row, repetitions, stepsOf(row, options));
  std::vector<double> p50, p99, raw_p50, ratio;
  for (const NullStepTimes& times : cluster.times()) {
    p50.push_back(percentile(times.dtf, 50) * unit);
    p99.push_back(percentile(times.dtf, 99) * unit);
    raw_p50.push_back(percentile(times.raw, 50) * unit);
    ratio.push_back(raw_p50.back() / p50.back());
  }
  return {median(p50), median(p99), median(raw_p50), median(ratio)};
}

}  // namespace

std::vector<Report> benchNullStep(const BenchOptions& options) {
  const std::vector<std::string> columns = {"p50", "p99", "raw p50", "raw / dtf"};
  Report scalar("null step, us", columns), dense("null step, ms", columns);
  bool has_scalar = false, has_dense = false;
  for (const Row& row : rowsOf(options)) {
    if (row.name().find(options.only) == std::string::npos) continue;
    if (row.memoryBytes() > availableMemoryBytes()) {
      std::cerr << fmt::format("dtf-bench: left out, needs {:.0f} GB of memory: {}\n",
                               static_cast<double>(row.memoryBytes()) * 1e-9, row.name());
      continue;
    }
    (row.bytes == 0 ? has_scalar : has_dense) = true;
    if (row.bytes == 0) {
      scalar.add(row.name(), measure(row, options, 1e6));
    } else {
      dense.add(row.name(), measure(row, options, 1e3));
    }
  }
  if (!has_scalar && !has_dense)
    throw Error(ErrorCode::kUsage, "no row of null-step has '" + options.only + "' in its name");
  std::vector<Report> reports;
  if (has_scalar) reports.push_back(scalar);
  if (has_dense) reports.push_back(dense);
  return reports;
}

}  // namespace dtf::bench
