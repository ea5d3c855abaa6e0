#include "common/cluster/read_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "common/base/check.h"
#include "common/cluster/address.h"
#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

using yaml::Alternative;
using yaml::inQuotes;
using yaml::MapReader;
using yaml::Place;
using yaml::readAlternative;
using yaml::readText;
using yaml::Report;
using yaml::reportType;
using yaml::reportUnavailable;
using yaml::YamlNode;

namespace {

constexpr size_t kTasksMax = 1024;  // of one job
constexpr size_t kJobNameBytesMax = 128;

bool isJobName(std::string_view name) {
  return name.size() <= kJobNameBytesMax && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

bool isVariableName(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::map<std::string, std::string> readEnv(const YamlNode& node, Report& report) {
  std::map<std::string, std::string> env;
  if (!node.isMap()) reportType("a map", node.key, node, report);
  for (const YamlNode& variable : node.children) {
    if (!node.isMap()) break;
    if (!isVariableName(variable.key))
      report.error(variable.key_place,
                   "an environment variable's name has letters, digits and '_', got " +
                       inQuotes(variable.key));
    // An empty value is a value here, but only a written one.
    if (variable.isScalar() && variable.text.empty()) {
      env[variable.key] = "";
    } else if (const auto text = readText(variable, variable.key, report)) {
      env[variable.key] = *text;
    }
  }
  return env;
}

std::vector<std::string> readDevices(const MapReader& reader, Report& report) {
  std::vector<std::string> devices;
  for (const YamlNode& node : reader.list("devices")) {
    const std::optional<std::string> device = readText(node, "devices", report);
    if (!device) continue;
    if (device->starts_with("gpu:")) {
      reportUnavailable(*device, node.where(), report);
    } else if (*device != "cpu:0") {
      report.error(node.where(),
                   "unknown device " + inQuotes(*device) + ": this version has cpu:0");
    } else if (!devices.empty()) {
      report.error(node.where(), "device " + inQuotes(*device) + " is listed twice");
    } else {
      devices.push_back(*device);
    }
  }
  return devices;
}

// What the one task of a job without ps is at: dtf-launch chooses the port.
Address localAddress() {
  return {"localhost", 0};
}

void readAddress(const YamlNode& node, std::string_view label, Address& address, Report& report) {
  const std::optional<std::string> text = readText(node, label, report);
  if (!text) return;
  if (*text == "local") {
    address = localAddress();
    return;
  }
  const std::string wrong = parseAddress(*text, address);
  if (!wrong.empty())
    report.error(node.where(), fmt::format("bad address {}: {}", inQuotes(*text), wrong));
}

TaskSpec readTask(const YamlNode& node, const TaskId& id, Report& report) {
  TaskSpec task;
  task.mark = report.markOf(node.place);
  if (!node.isMap()) {
    readAddress(node, id.name(), task.address, report);
    return task;
  }
  const MapReader reader(node, schema::kTask, id.name(), report);
  if (const YamlNode* address = reader.find("address"))
    readAddress(*address, "address", task.address, report);
  task.devices = readDevices(reader, report);
  if (const YamlNode* env = reader.find("env")) task.env = readEnv(*env, report);
  if (reader.whole("threads", task.threads) && id.job != JobKind::kWorker)
    report.error(reader.find("threads")->where(),
                 "'threads' is for workers: a ps has as many as its updates need");
  return task;
}

// Which task is at which address, by bindKey: no two may be at one.
using Taken = std::map<std::string, TaskId>;

std::vector<TaskSpec> readTasks(const YamlNode& cluster, const MapReader& reader, JobKind job,
                                Taken& taken, Report& report) {
  const std::string_view key = jobName(job);
  const std::vector<YamlNode>& nodes = reader.list(key);
  const YamlNode* list = cluster.find(key);
  std::vector<TaskSpec> tasks;
  if (list != nullptr && list->isSequence() && (nodes.empty() || nodes.size() > kTasksMax)) {
    report.error(list->where(), fmt::format("'{}' must have from 1 to {} tasks, got {}", key,
                                            kTasksMax, nodes.size()));
    return tasks;
  }
  for (const YamlNode& node : nodes) {
    const TaskId id{job, static_cast<uint32_t>(tasks.size())};
    tasks.push_back(readTask(node, id, report));
    const Address& address = tasks.back().address;
    const std::string bind_key = address.host.empty() ? "" : bindKey(address);
    if (bind_key.empty()) continue;
    const auto [first, is_new] = taken.emplace(bind_key, id);
    if (!is_new)
      report.error(node.place, fmt::format("{} and {} are both at {}", first->second.name(),
                                           id.name(), address.str()));
  }
  return tasks;
}

ClusterSpec readClusterTasks(const YamlNode& node, Report& report) {
  const MapReader reader(node, schema::kCluster, node.key, report);
  ClusterSpec cluster;
  Taken taken;
  cluster.ps = readTasks(node, reader, JobKind::kPs, taken, report);
  cluster.worker = readTasks(node, reader, JobKind::kWorker, taken, report);
  if (node.find("ps") == nullptr && cluster.worker.size() > 1)
    report.error(node.key_place, fmt::format("{} workers need 'ps': the tasks that hold the values "
                                             "which they share; without it there is one worker",
                                             cluster.worker.size()));
  return cluster;
}

LaunchSpec readLaunch(const YamlNode& node, Report& report) {
  const MapReader reader(node, schema::kLaunch, node.key, report);
  LaunchSpec launch;
  reader.choice("via", launch.via);
  const YamlNode* restarts = reader.find("restarts");
  if (restarts == nullptr) return launch;
  const MapReader budget(*restarts, schema::kRestarts, "launch.restarts", report);
  budget.whole("max", launch.restarts.max);
  budget.number("refill_minutes", launch.restarts.refill_minutes);
  return launch;
}

Timeouts readTimeouts(const YamlNode& node, Report& report) {
  const MapReader reader(node, schema::kTimeouts, node.key, report);
  Timeouts timeouts;
  reader.number("start_seconds", timeouts.start_seconds);
  reader.number("heartbeat_seconds", timeouts.heartbeat_seconds);
  reader.number("lease_seconds", timeouts.lease_seconds);
  reader.number("step_seconds", timeouts.step_seconds);
  reader.number("rejoin_seconds", timeouts.rejoin_seconds);
  reader.number("stop_seconds", timeouts.stop_seconds);
  reader.number("finish_seconds", timeouts.finish_seconds);
  if (timeouts.lease_seconds <= timeouts.heartbeat_seconds)
    report.error(node.key_place,
                 fmt::format("'lease_seconds' ({}) must be more than 'heartbeat_seconds' ({})",
                             timeouts.lease_seconds, timeouts.heartbeat_seconds));
  return timeouts;
}

Durability durabilityOf(const Alternative& chosen) {
  if (chosen.key->name == "checkpoint") return Durability::kCheckpoint;
  if (chosen.key->name == "snapshot") return Durability::kSnapshot;
  DTF_CHECK_MSG(chosen.key->name == "replica", std::string(chosen.key->name));
  return Durability::kReplica;
}

// A replica lies on another ps.
void checkReplica(size_t ps_tasks, const Place& place, Report& report) {
  constexpr size_t kPsTasksMin = 2;
  if (ps_tasks >= kPsTasksMin) return;
  report.error(
      place,
      fmt::format("'replica' needs at least two ps tasks, as each keeps the values of another, got "
                  "{}: add a ps to the cluster, or choose checkpoint or snapshot",
                  ps_tasks));
}

DurabilitySpec readDurability(const YamlNode& node, size_t ps_tasks, Report& report) {
  DurabilitySpec durability;
  const std::optional<Alternative> chosen =
      readAlternative(node, schema::kDurability, "durability", report);
  if (!chosen) return durability;
  const YamlNode& settings = chosen->settings;
  durability.kind = durabilityOf(*chosen);
  if (durability.kind == Durability::kSnapshot) {
    const MapReader reader(settings, schema::kSnapshot, "snapshot", report);
    // Without it the file is refused; what is read here is whole in any case.
    if (!reader.whole("every_steps", durability.snapshot_every_steps)) return {};
  } else if (!settings.isNull()) {
    report.error(settings.where(),
                 inQuotes(settings.key) + " has no settings: write durability: " + settings.key);
  }
  if (durability.kind == Durability::kSnapshot && ps_tasks == 0)
    report.error(settings.where(),
                 "'snapshot' is of the memory of a ps, and the cluster has none: leave durability "
                 "out, 'checkpoint' in 'train' is what a job in one process goes on from");
  if (durability.kind == Durability::kReplica) checkReplica(ps_tasks, settings.where(), report);
  return durability;
}

}  // namespace

JobSpec readJob(const YamlNode& root, bool with_train, Report& report) {
  const MapReader reader(root, schema::kJob, "", report);
  JobSpec job;
  job.mark = report.markOf(root.key_place);
  if (reader.text("job", job.job) && !isJobName(job.job))
    report.error(root.find("job")->where(),
                 "a job's name has letters, digits, '.', '_' and '-', starts with none of '.' and "
                 "'-', and is at "
                 "most 128 long, got " +
                     inQuotes(job.job));
  std::string run_dir;
  job.run_dir = reader.path("run_dir", run_dir) ? std::filesystem::path(run_dir)
                                                : std::filesystem::path("runs") / job.job;
  if (const YamlNode* cluster = reader.find("cluster"))
    job.cluster = readClusterTasks(*cluster, report);
  else
    job.cluster.worker = {{localAddress(), {}, {}, job.mark}};
  reader.boolean("insecure", job.cluster.insecure);
  if (const YamlNode* launch = reader.find("launch")) job.launch = readLaunch(*launch, report);
  if (const YamlNode* timeouts = reader.find("timeouts"))
    job.timeouts = readTimeouts(*timeouts, report);
  if (const YamlNode* durability = reader.find("durability"))
    job.durability = readDurability(*durability, job.cluster.ps.size(), report);
  const YamlNode* train = reader.find("train");
  if (train != nullptr && with_train)
    job.train = readTrain(
        *train, TaskCounts{std::max<size_t>(job.cluster.ps.size(), 1), job.cluster.worker.size()},
        report);
  return job;
}

}  // namespace dtf::cluster
