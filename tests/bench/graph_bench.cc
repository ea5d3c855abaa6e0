// `dtf-bench graph`: the graph engine's time before a step and between its programs. A graph of
// thousands of nodes in parts; a session's step beside the program alone; a tensor that goes to
// another device and back.

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/engine/session.h"
#include "common/graph/builder.h"
#include "common/graph/device_partitioner.h"
#include "common/graph/device_placer.h"
#include "common/graph/merge.h"
#include "common/graph/op_def.h"
#include "common/graph/partitioner.h"
#include "common/graph/prune.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

namespace {

using graph::Output;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double milliseconds(const std::function<void()>& what) {
  const SystemClock clock;
  const TimePoint begin = clock.now();
  what();
  return 1e3 * toSeconds(clock.now() - begin);
}

std::vector<graph::DeviceName> fourDevices() {
  const TaskId first{JobKind::kWorker, 0}, second{JobKind::kWorker, 1};
  return {graph::fullDevice(first), graph::fullDevice(first, "CPU", 1), graph::fullDevice(second),
          graph::fullDevice(second, "CPU", 1)};
}

// Each node reads two of the last hundred, on any of the devices: nearly every edge crosses.
graph::Graph scattered(int nodes, const std::vector<graph::DeviceName>& devices) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  Random random(1);
  std::vector<Output> tensors = {b.placeholder("x", DType::kFloat32, {4})};
  while (static_cast<int>(tensors.size()) < nodes) {
    const auto device = b.deviceScope(devices[random.below(devices.size())].str());
    const auto recent = [&] {
      const size_t back = random.below(std::min<size_t>(tensors.size(), 100));
      return tensors[tensors.size() - 1 - back];
    };
    tensors.push_back(random.below(2) == 0 ? b.add(recent(), recent()) : b.tanh(recent()));
  }
  return graph;
}

Report benchPasses(const BenchOptions& options) {
  Report report("passes over a graph whose nodes lie anywhere on 4 devices of 2 tasks, ms",
                {"nodes", "place", "prune", "merge", "by task", "by device", "sends", "all cuts",
                 "ratio", "goal"});
  for (const int nodes : options.quick ? std::vector{300} : std::vector{1000, 10000}) {
    std::vector<double> place, prune, merge, by_task, by_device;
    size_t sends = 0;
    for (int i = 0; i < options.repetitions; ++i) {
      const graph::Graph graph = scattered(nodes, fourDevices());
      graph::DevicePlacerOptions placer{.devices = fourDevices(), .preferred = fourDevices()[0]};
      graph::Placement placement;
      place.push_back(milliseconds([&] { placement = placeOnDevices(graph, placer); }));
      std::vector<Output> fetches;
      for (const graph::Node& node : graph.nodes()) fetches.push_back({node.id});
      prune.push_back(milliseconds([&] { graph::prune(graph, {}, fetches); }));
      merge.push_back(milliseconds([&] { graph::mergeCommon(graph); }));
      std::map<TaskId, graph::Graph> parts;
      by_task.push_back(milliseconds([&] { parts = graph::partition(graph, placement); }));
      sends = 0;
      by_device.push_back(milliseconds([&] {
        for (const auto& [task, part] : parts) {
          for (const auto& [device, piece] : graph::partitionByDevice(part)) {
            sends += static_cast<size_t>(
                std::count_if(piece.nodes().begin(), piece.nodes().end(),
                              [](const graph::Node& node) { return node.op == "_Send"; }));
          }
        }
      }));
    }
    const double cuts = median(by_task) + median(by_device);
    report.add(std::to_string(nodes) + " nodes",
               {static_cast<double>(nodes), median(place), median(prune), median(merge),
                median(by_task), median(by_device), static_cast<double>(sends), cuts, 1000 / cuts,
                nodes == 10000 ? 1 : kNone});
  }
  return report;
}

// Each node reads the one before, on the other of two devices.
graph::Graph alternating(int nodes) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  Output last = b.placeholder("x", DType::kFloat32, {16});
  for (int i = 1; i < nodes; ++i) {
    const auto device = b.deviceScope(i % 2 == 0 ? "/cpu:0" : "/cpu:1");
    last = b.relu(last);
  }
  return graph;
}

// Owns: a session on two CPUs of one task.
struct TwoCpus {
  explicit TwoCpus(const graph::Graph& graph) {
    runtime::registerCpuKernels(kernels);
    const TaskId worker{JobKind::kWorker, 0};
    session = std::make_unique<engine::Session>(
        graph, std::vector<engine::SessionDevice>{
                   {graph::fullDevice(worker), &first, &kernels},
                   {graph::fullDevice(worker, "CPU", 1), &second, &kernels}});
  }
  runtime::CpuDevice first{0}, second{1};
  runtime::KernelTable kernels;
  std::unique_ptr<engine::Session> session;
};

// Microseconds of one call of `step`.
double stepMicroseconds(const BenchOptions& options, const std::function<void()>& step) {
  const int steps = options.quick ? 50 : 2000;
  std::vector<double> each;
  step();
  for (int i = 0; i < options.repetitions; ++i) {
    each.push_back(1e3 / steps * milliseconds([&] {
                     for (int s = 0; s < steps; ++s) step();
                   }));
  }
  return median(each);
}

Report benchSteps(const BenchOptions& options) {
  Report report("steps of a session", {"us", "us a transfer"});
  const Tensor fed(DType::kFloat32, {16});
  const std::vector<engine::Feed> feeds = {{"x", &fed}};
  {
    graph::Graph graph(graph::standardOps());
    graph::Builder b(graph);
    const std::vector<Output> fetches = {b.relu(b.placeholder("x", DType::kFloat32, {16}))};
    TwoCpus cpus(graph);
    const auto program = runtime::compile(graph, fetches, cpus.first, cpus.kernels);
    program->bindInput(program->input("x"), fed.data());
    report.add("one kernel, the program alone",
               {stepMicroseconds(options, [&] { program->run(); }), kNone});
    const std::vector<std::string> names = {"Relu"};
    report.add("one kernel, a session's step",
               {stepMicroseconds(options, [&] { cpus.session->run(feeds, names); }), kNone});
  }
  constexpr int kTransfers = 20;
  const graph::Graph graph = alternating(kTransfers + 1);
  TwoCpus cpus(graph);
  const std::vector<std::string> names = {graph.nodes().back().name};
  const double step = stepMicroseconds(options, [&] { cpus.session->run(feeds, names); });
  report.add("20 kernels, each on the other device than the one before", {step, step / kTransfers});
  return report;
}

Report benchPlan(const BenchOptions& options) {
  Report report("a new signature on 2 devices: the passes, and each program compiled",
                {"nodes", "ms", "us a step"});
  const auto add = [&report](const std::string& what, const graph::Graph& graph) {
    const Tensor fed(DType::kFloat32, graph.nodes().front().outputs[0].shape);
    const std::vector<engine::Feed> feeds = {{"x", &fed}};
    const std::vector<std::string> names = {graph.nodes().back().name};
    TwoCpus cpus(graph);
    const double first = milliseconds([&] { cpus.session->run(feeds, names); });
    const double later = milliseconds([&] { cpus.session->run(feeds, names); });
    report.add(what, {static_cast<double>(graph.nodes().size()), first - later, 1e3 * later});
  };
  const std::vector<graph::DeviceName> devices = fourDevices();
  for (const int nodes : options.quick ? std::vector{100} : std::vector{1000, 10000}) {
    const std::string size = std::to_string(nodes) + " nodes";
    add(size + ", at random", scattered(nodes, {devices[0], devices[1]}));
    add(size + ", a chain between both", alternating(nodes));
  }
  return report;
}

}  // namespace

std::vector<Report> benchGraph(const BenchOptions& options) {
  return {benchPasses(options), benchSteps(options), benchPlan(options)};
}

}  // namespace dtf::bench
