// `dtf-launch graph`: a graph written op by op, placed on the tasks of a cluster, and run there.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/engine/local_tasks.h"
#include "common/engine/plan.h"
#include "common/engine/session.h"
#include "common/graph/device_placer.h"
#include "common/model/read_graph.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/session/remote_tasks.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/graph_feeds.h"
#include "launcher/graph_parts.h"
#include "launcher/graph_timeline.h"
#include "launcher/graph_training.h"
#include "launcher/launch_plan.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

constexpr int64_t kLinesShown = 10;  // steps that a person is told of, and the last
constexpr size_t kElementsShown = 8;

// Worker 0 first: it is where an op goes that asks for nothing.
std::vector<std::pair<TaskId, cluster::Address>> tasksOf(const cluster::ClusterSpec& cluster) {
  std::vector<std::pair<TaskId, cluster::Address>> tasks;
  for (const JobKind job : {JobKind::kWorker, JobKind::kPs}) {
    const std::vector<cluster::TaskSpec>& specs = cluster.tasks(job);
    for (uint32_t i = 0; i < specs.size(); ++i)
      tasks.emplace_back(TaskId{job, i}, specs[i].address);
  }
  return tasks;
}

// Of those that run, in particular where the file leaves the port to the launcher.
ChosenAddresses addressesOf(const cluster::JobSpec& job, const Options& options) {
  ChosenAddresses addresses;
  const FoundRun run = findRun(job, options);
  for (const TaskId id : allTasks(job.cluster)) {
    const cluster::Address& written = job.cluster.tasks(id.job)[id.index].address;
    if (run.running)
      for (const RecordedTask& task : run.running->tasks)
        if (task.name == id.name() && !task.address.empty()) addresses[id] = task.address;
    if (written.port == 0 && !addresses.contains(id))
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} doesn't run: start its tasks with 'dtf-launch serve {}', which "
                              "also chooses the ports that the file leaves open",
                              id.name(), options.cluster_file.string()));
  }
  return addresses;
}

// As targetsOf(), each to be the task that the file has there.
std::vector<std::string> namedTargets(const cluster::ClusterSpec& cluster,
                                      const ChosenAddresses& addresses) {
  std::vector<std::string> targets;
  for (const auto& [task, written] : tasksOf(cluster))
    targets.push_back("dtf://" + addressOf(cluster, addresses, task) + "/" + task.name());
  return targets;
}

engine::SessionOptions optionsOf(const model::GraphSpec& spec) {
  engine::SessionOptions options{.soft_placement = spec.soft_placement};
  for (const auto& [node, mark] : spec.marks) options.lines.emplace(node, mark.str() + ": error");
  return options;
}

// All of the cluster's, each as its task will call it: the first is where a node goes that asks for
// nothing.
std::vector<graph::DeviceName> devicesOfTasks(const cluster::ClusterSpec& cluster) {
  std::vector<graph::DeviceName> devices;
  for (const auto& [task, address] : tasksOf(cluster))
    for (const std::string& device : cluster::devicesOf(cluster.tasks(task.job)[task.index]))
      devices.push_back(runtime::fullName(task, device));
  return devices;
}

// Every node on its device, as the session will place it: what a GPU can't compute is known to its
// task alone, which refuses it. Errors: of placement, at the op's line.
graph::Graph placed(const model::GraphSpec& spec, const cluster::ClusterSpec& cluster) {
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  graph::DevicePlacerOptions options{.soft = spec.soft_placement,
                                     .lines = optionsOf(spec).lines,
                                     .can_run = [&](const graph::Node& node, const auto& device) {
                                       return engine::needsNoKernel(node) || device.type != "CPU" ||
                                              kernels.has(node.op, runtime::DeviceType::kCpu);
                                     }};
  options.devices = devicesOfTasks(cluster);
  options.preferred = options.devices.at(0);
  return graph::withDevices(spec.graph, graph::placeOnDevices(spec.graph, options));
}

// The parts of a step, as a session on these tasks would register them.
std::vector<engine::TaskPart> partsOf(const graph::Graph& placed, const model::GraphSpec& spec,
                                      const cluster::ClusterSpec& cluster) {
  if (spec.targets.empty() && spec.fetches.empty()) return {};
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  std::deque<runtime::CpuDevice> cpus;  // that compute what is constant
  std::vector<engine::SessionDevice> devices;
  for (const graph::DeviceName& device : devicesOfTasks(cluster))
    devices.push_back({device, &cpus.emplace_back(), &kernels});
  engine::LocalTasks tasks(std::make_shared<engine::LocalProcess>(devices));
  return engine::makePlan(placed, {fedTensors(spec), spec.fetches, spec.targets}, tasks).parts;
}

void printPlacement(const graph::Graph& graph, const std::vector<engine::TaskPart>& parts,
                    bool json) {
  Json ops = Json::array();
  size_t op_width = 2, name_width = 4;
  for (const graph::Node& node : graph.nodes()) {
    op_width = std::max(op_width, node.op.size());
    name_width = std::max(name_width, node.name.size());
    ops.push_back({{"name", node.name}, {"op", node.op}, {"device", node.device}});
  }
  if (json) return printEvent("graph", {{"ops", ops}, {"parts", partsJson(parts)}});
  std::string text;
  for (const graph::Node& node : graph.nodes())
    text +=
        fmt::format("{:<{}}  {:<{}}  {}\n", node.op, op_width, node.name, name_width, node.device);
  if (!parts.empty()) text += "\n" + partsText(parts);
  print(text);
}

// Of any type, as numbers.
Json numbersOf(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return tensor.as<float>();
    case DType::kUInt8:
      return tensor.as<uint8_t>();
    case DType::kInt32:
      return tensor.as<int32_t>();
    case DType::kInt64:
      return tensor.as<int64_t>();
    case DType::kBFloat16:
      break;
  }
  return {};
}

std::string textOf(const std::string& name, const Tensor& value) {
  const Json numbers = numbersOf(value);
  std::string text = name;
  for (size_t i = 0; i < std::min(numbers.size(), kElementsShown); ++i)
    text += numbers[i].isInteger() ? fmt::format(" {}", numbers[i].asInt64())
                                   : fmt::format(" {:g}", numbers[i].asDouble());
  if (numbers.size() > kElementsShown) text += fmt::format(" ... ({})", numbers.size());
  return text;
}

void printStep(int64_t step, const model::GraphSpec& spec, const std::vector<Tensor>& values,
               bool json) {
  if (json) {
    Json fetches = Json::object();
    for (size_t i = 0; i < values.size(); ++i) fetches[spec.fetches[i]] = numbersOf(values[i]);
    return printEvent("step", {{"step", step}, {"fetches", fetches}});
  }
  const int64_t each = std::max<int64_t>(1, spec.steps / kLinesShown);
  if (step % each != 0 && step != spec.steps) return;
  std::string text = fmt::format("step {}", step);
  for (size_t i = 0; i < values.size(); ++i) text += "  " + textOf(spec.fetches[i], values[i]);
  print(text + "\n");
}

void printRun(const char* event, int64_t step, const std::string& text, bool json) {
  if (json) return printEvent(event, {{"step", step}, {"text", text}});
  print(text + "\n");
}

// All steps, and the timeline of one of them where it is wanted.
void runSteps(engine::Session& session, const model::GraphSpec& spec, GraphFeeds& feeds,
              GraphTimeline* timeline, bool json) {
  for (int64_t step = 1; step <= spec.steps; ++step) {
    const bool is_traced = timeline != nullptr && timeline->wants(step);
    engine::RunMetadata metadata;
    printStep(
        step, spec,
        session.run(feeds.of(step), spec.fetches, spec.targets, is_traced ? &metadata : nullptr),
        json);
    if (is_traced) timeline->write(step, metadata.traces);
  }
  DTF_CHECK(session.counts().steps == static_cast<uint64_t>(spec.steps));
  if (timeline != nullptr) timeline->finish();
}

}  // namespace

int graph(const cluster::JobSpec& job, const Options& options,
          const net::Credentials& credentials) {
  if (!options.graph) throw Error(ErrorCode::kUsage, "--graph is missing: name a GRAPH.yaml");
  yaml::Report report;
  const model::GraphSpec spec = model::readGraphFile(*options.graph, report, minimizer());
  const graph::Graph placed_graph = placed(spec, job.cluster);
  GraphFeeds feeds(spec, report);
  if (options.dry_run) {
    const std::vector<engine::TaskPart> parts = partsOf(placed_graph, spec, job.cluster);
    if (options.dot) {
      print(partsDot(parts));
    } else {
      printPlacement(placed_graph, parts, options.json);
    }
    return 0;
  }
  if (spec.targets.empty() && spec.fetches.empty())
    throw with(ErrorTrait::kHasPlace,
               Error(ErrorCode::kBadConfig,
                     options.graph->string() + ": error: 'run' names no targets and no fetches"));
  std::optional<GraphTimeline> timeline;
  if (options.timeline) timeline.emplace(*options.timeline, options.timeline_step, spec.steps);
  const wire::RemoteTasksOptions tasks{
      .targets = namedTargets(job.cluster, addressesOf(job, options)), .credentials = credentials};
  const auto open = [&](const graph::Graph& of, GivesUp gives_up) {
    wire::RemoteTasksOptions how = tasks;
    how.gives_up = std::move(gives_up);
    return std::make_unique<engine::Session>(of, std::make_unique<wire::RemoteTasks>(how),
                                             optionsOf(spec));
  };
  GraphTimeline* const traced = timeline ? &*timeline : nullptr;
  if (spec.checkpoint) {
    runSupervised(
        {.spec = spec,
         .feeds = feeds,
         .timeline = traced,
         .is_fresh = options.fresh,
         .open = open,
         .on_step =
             [&](int64_t step, const std::vector<Tensor>& values) {
               printStep(step, spec, values, options.json);
             },
         .on_event = [&](const char* event, int64_t step,
                         const std::string& text) { printRun(event, step, text, options.json); }});
    return 0;
  }
  const std::unique_ptr<engine::Session> session =
      open(spec.graph, nullptr);  // a signal ends the process
  if (options.fresh) session->reset("");
  session->initialize(spec.seed);
  runSteps(*session, spec, feeds, traced, options.json);
  return 0;
}

}  // namespace dtf::launcher
