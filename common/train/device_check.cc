#include "common/train/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "common/graph/device_name.h"

namespace dtf::train {

namespace {

// Returns whether a task's `env` affects which GPUs it finds, and with which plug-in. Only the task
// itself can check these.
bool decidesDevices(const cluster::TaskSpec& task) {
  return std::ranges::any_of(task.env, [](const auto& variable) {
    const std::string_view name = variable.first;
    return name == "LD_LIBRARY_PATH" || name.starts_with("DTF_GPU_") || name.starts_with("CUDA_");
  });
}

bool checkVariableDevices(const model::ModelGraph& model, const cluster::ClusterSpec& cluster,
                          yaml::Report& report) {
  const ShardHosts hosts = cluster.shardHosts();
  // The file's "/job:ps" of a hybrid placement are the ps.
  const size_t ps_tasks = cluster.isOneProcess() ? 0 : hosts.ps > 0 ? hosts.ps : hosts.size();
  bool all = true;
  for (const model::ModelVariable& variable : model.variables) {
    if (variable.device_mark.file.empty() || ps_tasks == 0) continue;
    const graph::Node& node = model.graph.node(variable.value.node);
    const std::optional<uint32_t> task = graph::DeviceName::parse(node.device).task;
    if (!task || *task < ps_tasks) continue;
    report.error(
        report.placeOf(variable.device_mark),
        fmt::format("variable {} asks for {}, but the cluster has {} {}", yaml::inQuotes(node.name),
                    yaml::inQuotes(node.device), ps_tasks, hosts.ps > 0 ? "ps" : "workers"));
    all = false;
  }
  return all;
}

// An op on /cpu:0 is part of the worker's one program, so the whole program must be the CPU's.
bool checkOpDevices(const model::ModelGraph& model, const cluster::ClusterSpec& cluster,
                    yaml::Report& report) {
  if (model.cpu_marks.empty()) return true;
  for (size_t i = 0; i < cluster.worker.size(); ++i) {
    for (const std::string& device : cluster::devicesOf(cluster.worker[i])) {
      if (device.starts_with("cpu:")) continue;
      report.error(
          report.placeOf(model.cpu_marks.front()),
          fmt::format("an op asks for /cpu:0, but worker/{} computes its whole step on {}: "
                      "leave the op's device out, or give the worker 'devices: [cpu:0]'",
                      i, device));
      return false;
    }
  }
  return true;
}

}  // namespace

void checkDevices(const cluster::JobSpec& job, const Host& host, yaml::Report& report) {
  if (!host.missing) return;
  for (const cluster::TaskSpec& worker : job.cluster.worker) {
    if ((host.runs && !host.runs(worker.address)) || decidesDevices(worker)) continue;
    for (const std::string& device : cluster::devicesOf(worker)) {
      const std::string missing = host.missing(device);
      if (!missing.empty())
        report.error(report.placeOf(worker.mark), missing, ErrorCode::kUnavailable);
    }
  }
}

bool checkModelDevices(const model::ModelGraph& model, const cluster::ClusterSpec& cluster,
                       yaml::Report& report) {
  const bool has_variables = checkVariableDevices(model, cluster, report);
  return checkOpDevices(model, cluster, report) && has_variables;
}

}  // namespace dtf::train
