// `dtf-bench edges`: a step in which psd --serve sends one tensor to workerd --serve, which reads
// an element of it. Real processes; this one is the client. Beside it, in turns: the same bytes
// over one raw socket between two processes.
// `dtf-bench tls`: the same step with keys, and without, and the raw socket, in turns.

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/engine/session.h"
#include "common/graph/builder.h"
#include "common/graph/standard_ops.h"
#include "common/net/key_folder.h"
#include "common/net/tls_keys.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/raw_peer.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

constexpr double kEdgesGoal = 0.95;  // of the raw socket's throughput
// Without a goal below this size: there three calls (the client's to both tasks, the ps' to
// the worker) take most of the time.
constexpr uint64_t kGoalFromMib = 16;
// The first one registers the plan, the next ones touch buffers for the first time.
constexpr int kWarmingSteps = 4;
constexpr std::chrono::seconds kStartDeadline{120};  // also on a busy machine
// The variable here and on the ps, the worker's copy, and the raw socket's two ends.
constexpr uint64_t kCopies = 5;

// One ps, one worker, and a session on both.
class ServedPair {
 public:
  // `keys`: a folder with the keys of both tasks and of a client; empty: plain.
  explicit ServedPair(uint64_t elements, const std::string& keys = {}) {
    const std::string file = folder_.write(
        "cluster.yaml", fmt::format("job: edges\nrun_dir: {}\ncluster:\n  ps: [\"127.0.0.1:{}\"]\n"
                                    "  worker: [\"127.0.0.1:{}\"]\n{}",
                                    folder_.path(), ps_socket_.port, worker_socket_.port,
                                    keys.empty() ? "" : "keys: " + keys + "\n"));
    tasks_.push_back(startTask("daemons/psd/psd", file, 0, ps_socket_, {"--serve"}));
    tasks_.push_back(startTask("daemons/workerd/workerd", file, 0, worker_socket_, {"--serve"}));
    for (const auto& task : tasks_)
      if (!task->waitForOutput("event=serving", kStartDeadline))
        throw Error(ErrorCode::kUnavailable, "a task does not serve; it said:\n" + task->err());
    const Shape shape{static_cast<int64_t>(elements)};
    graph::Graph graph(graph::standardOps());
    graph::Builder b(graph);
    {
      const auto on_ps = b.deviceScope("/job:ps/task:0");
      b.variable("w", shape);
    }
    b.node("Slice", {{graph.find("w")->id}}, {{"begin", Shape{0}}, {"size", Shape{1}}}, "first");
    session_ = std::make_unique<engine::Session>(
        graph,
        std::make_unique<wire::RemoteTasks>(wire::RemoteTasksOptions{
            .targets = {fmt::format("dtf://127.0.0.1:{}", worker_socket_.port),
                        fmt::format("dtf://127.0.0.1:{}", ps_socket_.port)},
            .credentials = keys.empty() ? net::Credentials()
                                        : net::Credentials::ofKeys(
                                              std::make_shared<net::TlsKeys>(keys, "client"))}));
    Tensor value(DType::kFloat32, shape);
    value.as<float>()[0] = 1;
    session_->setVariable("w", value);
  }

  void step() {
    const std::vector<std::string> fetches = {"first"};
    if (session_->run({}, fetches)[0].as<float>()[0] != 1)
      throw Error(ErrorCode::kInternal, "another element arrived");
  }

 private:
  const testing::TemporaryFolder folder_;
  const ListeningSocket ps_socket_, worker_socket_;
  std::vector<std::unique_ptr<testing::Process>> tasks_;
  std::unique_ptr<engine::Session> session_;
};

template <class Do>
double millisecondsOf(const Do& act) {
  const SystemClock clock;
  const TimePoint begin = clock.now();
  act();
  return toSeconds(clock.now() - begin) * 1e3;
}

std::string rowName(uint64_t mib) {
  return fmt::format("{} MiB", mib);
}

// The sizes of `all`, in MiB, with a row that options.only selects.
std::vector<uint64_t> sizesOf(const BenchOptions& options, std::vector<uint64_t> all) {
  if (options.quick) all = {1};
  std::erase_if(all, [&](uint64_t mib) { return !rowName(mib).starts_with(options.only); });
  if (all.empty())
    throw Error(ErrorCode::kUsage, "no row's name begins with '" + options.only + "'");
  return all;
}

constexpr double kTlsGoal = 0.6;  // of the raw socket

double goalOf(uint64_t mib, double goal) {
  return mib < kGoalFromMib ? std::nan("") : goal;
}

struct EdgeTimes {
  std::vector<double> secure, plain, raw, of_plain, of_raw;
};

EdgeTimes timeWithKeys(uint64_t bytes, const std::string& keys, int repetitions) {
  ListeningSocket socket;
  const Child server([&] { serveRaw(socket.fd, bytes); }, Child::Cpu::kAny);
  RawClient raw_client(socket.port, bytes);
  ServedPair plain(bytes / sizeof(float)), secure(bytes / sizeof(float), keys);
  for (int i = 0; i < kWarmingSteps; ++i)
    for (ServedPair* pair : {&plain, &secure}) pair->step();
  EdgeTimes times;
  for (int i = 0; i < repetitions; ++i) {
    times.raw.push_back(millisecondsOf([&] { raw_client.pull(bytes); }));
    times.plain.push_back(millisecondsOf([&] { plain.step(); }));
    times.secure.push_back(millisecondsOf([&] { secure.step(); }));
    times.of_plain.push_back(times.plain.back() / times.secure.back());
    times.of_raw.push_back(times.raw.back() / times.secure.back());
  }
  return times;
}

}  // namespace

std::vector<Report> benchTls(const BenchOptions& options) {
  Report report(fmt::format("a tensor from a ps to a worker in a step over TLS, {}, ms (medians); "
                            "ratio: of raw",
                            OpenSSL_version(OPENSSL_VERSION)),
                {"TLS", "plain", "raw", "of plain", "ratio", "goal", "GB/s"});
  log::init("", log::Level::kError);
  const testing::TemporaryFolder folder;
  const std::string keys = folder.path() + "/keys";
  net::KeyFolder made = net::KeyFolder::create(keys, "edges", {});
  for (const char* task : {"ps/0", "worker/0", "client"}) made.issue(task, "", {});
  for (const uint64_t mib : sizesOf(options, {1, 16, 64, 256, 1024})) {
    const uint64_t bytes = mib << 20;
    if (hostMemory().available < 2 * kCopies * bytes) {
      fmt::print(stderr, "{} MiB: needs {} MiB of memory, left out\n", mib, 2 * kCopies * mib);
      continue;
    }
    const EdgeTimes times = timeWithKeys(bytes, keys, options.repetitions);
    report.add(rowName(mib), {median(times.secure), median(times.plain), median(times.raw),
                              median(times.of_plain), median(times.of_raw), goalOf(mib, kTlsGoal),
                              static_cast<double>(bytes) / median(times.secure) * 1e-6});
  }
  return {report};
}

std::vector<Report> benchEdges(const BenchOptions& options) {
  Report report("a tensor from a ps to a worker in a step, ms (medians)",
                {"step", "raw", "ratio", "goal", "GB/s"});
  log::init("", log::Level::kError);
  for (const uint64_t mib : sizesOf(options, {1, 16, 64, 256, 1024, 3072})) {
    const uint64_t bytes = mib << 20;
    if (hostMemory().available < kCopies * bytes) {
      fmt::print(stderr, "{} MiB: needs {} MiB of memory, left out\n", mib, kCopies * mib);
      continue;
    }
    ListeningSocket socket;
    const Child server([&] { serveRaw(socket.fd, bytes); }, Child::Cpu::kAny);
    RawClient raw_client(socket.port, bytes);
    ServedPair pair(bytes / sizeof(float));
    for (int i = 0; i < kWarmingSteps; ++i) pair.step();
    std::vector<double> stepped, raw, ratio;
    for (int i = 0; i < options.repetitions; ++i) {
      raw.push_back(millisecondsOf([&] { raw_client.pull(bytes); }));
      stepped.push_back(millisecondsOf([&] { pair.step(); }));
      ratio.push_back(raw.back() / stepped.back());
    }
    report.add(rowName(mib), {median(stepped), median(raw), median(ratio), goalOf(mib, kEdgesGoal),
                              static_cast<double>(bytes) / median(stepped) * 1e-6});
  }
  return {report};
}

}  // namespace dtf::bench
