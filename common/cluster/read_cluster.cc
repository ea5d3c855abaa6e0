#include "common/cluster/read_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "common/base/check.h"
#include "common/cluster/address.h"
#include "common/cluster/read_launch.h"
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
using yaml::YamlNode;

namespace {

constexpr size_t kTasksMax = 1024;  // of a kind
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
    // An empty text ("") is a value here; a missing value is a mistake.
    if (variable.isScalar() && variable.text.empty()) {
      env[variable.key] = "";
    } else if (const auto text = readText(variable, variable.key, report)) {
      env[variable.key] = *text;
    }
  }
  return env;
}

// Whether `device` is `type`, as "cpu:", and a number below `max`.
bool isDevice(std::string_view device, std::string_view type, int max) {
  if (!device.starts_with(type)) return false;
  for (int index = 0; index < max; ++index)
    if (device.substr(type.size()) == std::to_string(index)) return true;
  return false;
}

void readDevice(const YamlNode& node, const TaskId& id, std::vector<std::string>& devices,
                Report& report) {
  const std::optional<std::string> device = readText(node, "devices", report);
  if (!device) return;
  std::string wrong = deviceMistake(*device, id.job);
  if (wrong.empty() && std::ranges::find(devices, *device) != devices.end())
    wrong = "device " + inQuotes(*device) + " is listed twice";
  if (!wrong.empty()) {
    report.error(node.where(), wrong);
  } else {
    devices.push_back(*device);
  }
}

// Returns the address of a task without one in the file: dtf-launch chooses the port.
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

// Reads the settings of a task other than its address.
void readSettings(const MapReader& reader, const TaskId& id, TaskSpec& task) {
  Report& report = reader.report();
  for (const YamlNode& device : reader.list("devices"))
    readDevice(device, id, task.devices, report);
  if (const YamlNode* env = reader.find("env")) task.env = readEnv(*env, report);
  if (reader.whole("threads", task.threads) && id.job != JobKind::kWorker)
    report.error(reader.find("threads")->where(),
                 "'threads' is for workers: a ps chooses its number of threads itself");
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
  readSettings(reader, id, task);
  return task;
}

// Reads {count: 3, threads: 2} as three equal tasks.
std::vector<TaskSpec> readTaskCount(const YamlNode& node, JobKind job, Report& report) {
  const MapReader reader(node, schema::kTaskCount, jobName(job), report);
  TaskSpec task;
  task.address = localAddress();
  task.mark = report.markOf(node.place);
  task.by_count = true;
  readSettings(reader, {job, 0}, task);
  size_t count = 0;
  reader.whole("count", count);
  return std::vector<TaskSpec>(count, task);
}

// The task at each address, by bindKey(): no two may share one.
using Taken = std::map<std::string, TaskId>;

std::vector<TaskSpec> readTasks(const YamlNode& cluster, const MapReader& reader, JobKind job,
                                Taken& taken, Report& report) {
  const std::string_view key = jobName(job);
  const YamlNode* list = cluster.find(key);
  if (list != nullptr && list->isMap()) return readTaskCount(*list, job, report);
  const std::vector<YamlNode>& nodes = reader.list(key);
  std::vector<TaskSpec> tasks;
  // An empty list of ps is a cluster without: `--set cluster.ps=[]`.
  const size_t least = job == JobKind::kPs ? 0 : 1;
  const bool is_counted = nodes.size() >= least && nodes.size() <= kTasksMax;
  if (list != nullptr && list->isSequence() && !is_counted) {
    report.error(list->where(), fmt::format("'{}' must have from {} to {} tasks, got {}", key,
                                            least, kTasksMax, nodes.size()));
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
  return cluster;
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

// A replica lies on another host of a shard.
void checkReplica(const ClusterSpec& cluster, const Place& place, Report& report) {
  constexpr size_t kHostsMin = 2;
  if (cluster.shardHosts().size() >= kHostsMin) return;
  report.error(
      place,
      cluster.isOneProcess()
          ? std::string("'replica' needs at least two workers, or two ps, as each keeps the values "
                        "of another, and this job is one process: leave 'durability' out")
          : fmt::format(
                "'replica' needs at least two ps tasks, as each keeps the values of "
                "another, got {}: add a ps to the cluster, or choose checkpoint or snapshot",
                cluster.ps.size()));
}

DurabilitySpec readDurability(const YamlNode& node, const ClusterSpec& cluster, Report& report) {
  DurabilitySpec durability;
  const std::optional<Alternative> chosen =
      readAlternative(node, schema::kDurability, "durability", report);
  if (!chosen) return durability;
  const YamlNode& settings = chosen->settings;
  durability.kind = durabilityOf(*chosen);
  if (durability.kind == Durability::kSnapshot) {
    const MapReader reader(settings, schema::kSnapshot, "snapshot", report);
    // It is required, so its absence is reported already. Returns a valid value all the same.
    if (!reader.whole("every_steps", durability.snapshot_every_steps)) return {};
  } else if (!settings.isNull()) {
    report.error(settings.where(),
                 inQuotes(settings.key) + " has no settings: write durability: " + settings.key);
  }
  if (durability.kind == Durability::kSnapshot && cluster.isOneProcess())
    report.error(
        settings.where(),
        "'snapshot' needs a ps, and the cluster has none: leave 'durability' out; a job in "
        "one process goes on from its checkpoints ('checkpoint' in 'train')");
  if (durability.kind == Durability::kReplica) checkReplica(cluster, settings.where(), report);
  return durability;
}

// Checks that the ports of metricsPort() exist and that no task of the same host listens there.
void checkMetricsPorts(const JobSpec& job, const Place& place, Report& report) {
  const uint32_t first = job.metrics->port;
  Taken taken;
  std::vector<TaskId> ids;
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker})
    for (uint32_t i = 0; i < job.cluster.tasks(kind).size(); ++i)
      if (const Address& at = job.cluster.tasks(kind)[i].address; !at.host.empty()) {
        ids.push_back({kind, i});
        taken.emplace(bindKey(at), ids.back());
      }
  std::map<std::string, uint32_t> next;  // of each host
  for (const TaskId id : ids) {
    const std::string& host = job.cluster.tasks(id.job)[id.index].address.host;
    const uint32_t port = next.try_emplace(hostKey(host), first).first->second++;
    if (port > kPortMax)
      return report.error(
          place, fmt::format("{} would answer at port {}: the tasks of a host count up from {}, "
                             "and the last port is {}",
                             id.name(), port, first, kPortMax));
    const Address own{host, static_cast<uint16_t>(port)};
    if (const auto other = taken.find(bindKey(own)); other != taken.end())
      return report.error(
          place, fmt::format("{} would answer at {}, the address of {}: the tasks of a host count "
                             "up from {}",
                             id.name(), own.str(), other->second.name(), first));
  }
}

void readMetrics(const YamlNode& node, JobSpec& job, Report& report) {
  const MapReader reader(node, schema::kMetrics, node.key, report);
  std::string text;
  if (!reader.text("port", text)) return;
  const Place place = reader.find("port")->where();
  job.metrics.emplace();
  const std::string wrong = parsePort(text, job.metrics->port);
  if (!wrong.empty())
    return report.error(place, fmt::format("bad port {}: {}", inQuotes(text), wrong));
  if (job.metrics->port != 0) checkMetricsPorts(job, place, report);
}

// Parses "http://host:4318/v1/traces"; port and path are optional. Returns the mistake, or an empty
// string.
std::string parseEndpoint(std::string_view text, TracesSpec& traces) {
  constexpr std::string_view kScheme = "http://";
  constexpr const char* kPort = ":4318";             // of OTLP over HTTP
  constexpr const char* kTracesPath = "/v1/traces";  // likewise
  if (text.starts_with("https://"))
    return "TLS to a collector is not supported yet: use http:// to a collector on each host, or "
           "in a network that you trust";
  if (!text.starts_with(kScheme)) return "it does not begin with http://";
  std::string address(text.substr(kScheme.size()));
  const size_t slash = std::min(address.find('/'), address.size());
  traces.path = address.substr(slash);
  address.resize(slash);
  if (traces.path.empty() || traces.path == "/") traces.path = kTracesPath;
  const bool is_plain = std::all_of(traces.path.begin(), traces.path.end(),
                                    [](unsigned char c) { return c > ' ' && c < 0x7F; });
  if (!is_plain) return "its path has characters that a URL can't have";
  const size_t bracket = address.find(']');
  const size_t from = bracket == std::string::npos ? 0 : bracket;
  if (address.find(':', from) == std::string::npos) address += kPort;
  const std::string wrong = parseAddress(address, traces.collector);
  return wrong.empty() && traces.collector.port == 0 ? "a collector's port is a number" : wrong;
}

void readTraces(const YamlNode& node, JobSpec& job, Report& report) {
  constexpr uint64_t kEverySteps = 100;
  const MapReader reader(node, schema::kTraces, node.key, report);
  TracesSpec traces;
  traces.every_steps = kEverySteps;
  reader.whole("every_steps", traces.every_steps);
  std::string endpoint;
  if (!reader.text("endpoint", endpoint)) return;
  const std::string wrong = parseEndpoint(endpoint, traces);
  if (!wrong.empty())
    return report.error(reader.find("endpoint")->where(),
                        fmt::format("bad endpoint {}: {}", inQuotes(endpoint), wrong));
  job.traces = std::move(traces);
}

// Checks that the devices of each worker can have equal shares of its batch.
void checkShares(const JobSpec& job, Report& report) {
  const int64_t batch = job.train->data.batch_size;
  const yaml::Mark& written = job.train->data.batch_size_mark;
  for (uint32_t i = 0; i < job.cluster.worker.size(); ++i) {
    const TaskSpec& worker = job.cluster.worker[i];
    const auto devices = static_cast<int64_t>(devicesOf(worker).size());
    if (batch % devices == 0) continue;
    const int64_t below = batch - batch % devices;
    report.error(
        report.placeOf(written.file.empty() ? worker.mark : written),
        fmt::format("a batch of {} examples can't be shared out evenly among the {} devices of {}: "
                    "choose a batch_size of {}{}, or other devices",
                    batch, devices, TaskId{JobKind::kWorker, i}.name(),
                    below == 0 ? "" : fmt::format("{} or ", below), below + devices));
    return;
  }
}

// Checks that a job may pause: it must have a checkpoint to go on from, and may not end early.
void checkPause(const JobSpec& job, const Place& place, Report& report) {
  if (!job.train->checkpoint)
    report.error(place,
                 "'pause' needs a checkpoint to go on from, and 'train' has 'checkpoint: none'");
  if (job.train->early_stopping)
    report.error(
        place,
        "'pause' and 'early_stopping' exclude each other in this version: the tasks would be "
        "restarted after an early end");
}

// The words of exchange::rdmaFault(), which is above this library.
void checkTransport(const JobSpec& job, const YamlNode& transport, Report& report) {
  if (job.cluster.transport != Transport::kRdma || job.cluster.isOneProcess()) return;
  const ReplicationSpec& replication = job.train->replication;
  const size_t workers = job.cluster.worker.size();
  if (replication.transfer_dtype != ReplicationSpec::TransferDtype::kFloat32)
    report.error(transport.where(),
                 "'transport: rdma' moves float32 alone: leave out 'transport', or 'transfer' and "
                 "'transfer_dtype'");
  if (replication.replicas_to_aggregate > workers)
    report.error(transport.where(),
                 "'transport: rdma' has one arena for a worker's gradient, and with "
                 "'replicas_to_aggregate' a worker sends several in a step: leave out one of them");
  if (!replication.host_leaders.empty())
    report.error(transport.where(),
                 "'transport: rdma' is not tested with 'topology', which sums gradients in the "
                 "memory of each host: leave out one of them");
}

}  // namespace

std::string deviceMistake(std::string_view device, JobKind job) {
  if (!isDevice(device, "cpu:", kDevicesMax) && !isDevice(device, "gpu:", kGpusMax))
    return fmt::format("unknown device {}: this version has cpu:0 to cpu:{} and gpu:0 to gpu:{}",
                       inQuotes(device), kDevicesMax - 1, kGpusMax - 1);
  if (job == JobKind::kPs && device != "cpu:0")
    return fmt::format("device {} of a ps: only workers have devices other than cpu:0",
                       inQuotes(device));
  return {};
}

JobSpec readJob(const YamlNode& root, bool with_train, Report& report) {
  const MapReader reader(root, schema::kJob, "", report);
  JobSpec job;
  job.mark = report.markOf(root.key_place);
  if (reader.text("job", job.job) && !isJobName(job.job))
    report.error(root.find("job")->where(),
                 "a job's name has letters, digits, '.', '_' and '-', does not start with '.' or "
                 "'-', and has at most 128 characters, got " +
                     inQuotes(job.job));
  std::string run_dir;
  job.run_dir = reader.path("run_dir", run_dir) ? std::filesystem::path(run_dir)
                                                : std::filesystem::path("runs") / job.job;
  if (const YamlNode* cluster = reader.find("cluster"))
    job.cluster = readClusterTasks(*cluster, report);
  else
    job.cluster.worker = {{localAddress(), {}, {}, job.mark}};
  readFileName(reader, "keys", job.cluster.keys);
  reader.boolean("insecure", job.cluster.insecure);
  reader.whole("sessions_max", job.cluster.sessions_max);
  reader.boolean("shared_memory", job.cluster.shared_memory);
  reader.boolean("stream_gradients", job.cluster.stream_gradients);
  reader.choice("transport", job.cluster.transport, 0);
  if (const YamlNode* launch = reader.find("launch"))
    job.launch = readLaunch(*launch, job.cluster, report);
  if (const YamlNode* timeouts = reader.find("timeouts"))
    job.timeouts = readTimeouts(*timeouts, report);
  const YamlNode* train = reader.find("train");
  job.cluster.hybrid = train != nullptr && isHybrid(*train) && !job.cluster.ps.empty();
  if (const YamlNode* durability = reader.find("durability"))
    job.durability = readDurability(*durability, job.cluster, report);
  else if (job.cluster.workersHost())
    job.durability.kind = Durability::kReplica;  // else one lost worker were the job's end
  if (const YamlNode* metrics = reader.find("metrics")) readMetrics(*metrics, job, report);
  if (const YamlNode* traces = reader.find("traces")) readTraces(*traces, job, report);
  if (train != nullptr && with_train)
    job.train = readTrain(*train,
                          {job.cluster.shardHosts(), job.cluster.worker.size(),
                           job.cluster.isOneProcess(), hostLeaders(job.cluster)},
                          report);
  if (job.train) {
    job.cluster.leader = job.train->replication.leader;
    checkShares(job, report);
    if (const YamlNode* transport = root.find("transport")) checkTransport(job, *transport, report);
    if (!job.cluster.shared_memory && !job.train->replication.host_leaders.empty())
      report.error(root.find("shared_memory")->where(),
                   "'topology: {hosts: sum}' sums gradients in shared memory: leave out one of "
                   "them");
    if (job.launch.pauses())
      checkPause(job, root.find("launch")->find("on_sigterm")->where(), report);
  }
  return job;
}

}  // namespace dtf::cluster
