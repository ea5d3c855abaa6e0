#include "common/serving/serving_task.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/api/guarded.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/cluster/cluster_yaml.h"
#include "common/cluster/read_cluster.h"
#include "common/net/tls_keys.h"
#include "common/yaml/report.h"

struct dtf_cluster {
  dtf::cluster::ClusterSpec spec;
  std::deque<std::string> ps, worker;  // the addresses as text, which stays in its place
};

struct dtf_server {
  std::unique_ptr<dtf::serving::ServingTask> task;
  std::string target;
};

namespace {

using dtf::Error;
using dtf::ErrorCode;
using dtf::JobKind;
using dtf::TaskId;
using dtf::api::guarded;
using dtf::cluster::Address;
using dtf::cluster::ClusterSpec;
using dtf::cluster::TaskSpec;

constexpr size_t kTasksMax = 1024;  // of a job, as in a cluster file
constexpr JobKind kJobs[] = {JobKind::kPs, JobKind::kWorker};

JobKind jobOf(const char* name) {
  const std::optional<JobKind> job = dtf::parseJobName(name);
  if (!job)
    throw Error(ErrorCode::kBadConfig,
                "unknown job '" + std::string(name) + "': a cluster has the jobs ps and worker");
  return *job;
}

std::vector<TaskSpec>& tasksOf(ClusterSpec& spec, JobKind job) {
  return job == JobKind::kPs ? spec.ps : spec.worker;
}

// Returns null for an unknown job.
const std::deque<std::string>* textsOf(const dtf_cluster& cluster, const char* job) {
  const std::optional<JobKind> known = dtf::parseJobName(job);
  if (!known) return nullptr;
  return *known == JobKind::kPs ? &cluster.ps : &cluster.worker;
}

void addText(dtf_cluster& cluster, JobKind job, const Address& address) {
  (job == JobKind::kPs ? cluster.ps : cluster.worker).push_back(address.str());
}

void checkIsFree(const ClusterSpec& spec, const Address& address) {
  const std::string key = dtf::cluster::bindKey(address);
  for (const JobKind job : kJobs)
    for (uint32_t i = 0; i < spec.tasks(job).size(); ++i)
      if (!key.empty() && dtf::cluster::bindKey(spec.tasks(job)[i].address) == key)
        throw Error(ErrorCode::kBadConfig, "the address " + address.str() + " is in use by " +
                                               TaskId{job, i}.name() + ": give every task its own");
}

// Returns "1 task of ps, ps/0", or "2 tasks of ps, numbered from 0".
std::string countText(size_t count, const std::string& job) {
  if (count == 0) return "no task of " + job;
  if (count == 1) return "1 task of " + job + ", " + job + "/0";
  return std::to_string(count) + " tasks of " + job + ", numbered from 0";
}

TaskId taskOf(const ClusterSpec& spec, const char* job_name, int64_t index) {
  const JobKind job = jobOf(job_name);
  const size_t count = spec.tasks(job).size();
  if (index < 0 || std::cmp_greater_equal(index, count))
    throw Error(ErrorCode::kBadConfig, "there is no " + std::string(job_name) + "/" +
                                           std::to_string(index) + ": the cluster has " +
                                           countText(count, job_name));
  return {job, static_cast<uint32_t>(index)};
}

std::vector<std::string> devicesOf(const char* list, JobKind job) {
  std::vector<std::string> devices;
  for (const std::string& device : dtf::split(list, ',')) {
    std::string wrong = dtf::cluster::deviceMistake(device, job);
    if (wrong.empty() && std::ranges::find(devices, device) != devices.end())
      wrong = "device '" + device + "' is listed twice";
    if (!wrong.empty()) throw Error(ErrorCode::kUsage, wrong);
    devices.push_back(device);
  }
  return devices;
}

dtf::net::Credentials credentialsOf(const ClusterSpec& spec, TaskId task) {
  using dtf::net::Credentials;
  if (!spec.keys.empty())
    return Credentials::ofKeys(std::make_shared<dtf::net::TlsKeys>(spec.keys, task.name()));
  return spec.insecure ? Credentials::insecure() : Credentials::ownUser();
}

dtf::serving::ServingOptions servingOptions(const dtf_cluster& cluster, TaskId task,
                                            const dtf_server_options& wanted) {
  dtf::serving::ServingOptions options{.task = task, .cluster = cluster.spec, .credentials = {}};
  DTF_CHECK(task.index < cluster.spec.tasks(task.job).size());
  TaskSpec& own = tasksOf(options.cluster, task.job)[task.index];
  if (wanted.keys != nullptr && *wanted.keys != '\0') options.cluster.keys = wanted.keys;
  if (wanted.insecure != 0) options.cluster.insecure = true;
  if (wanted.devices != nullptr && *wanted.devices != '\0')
    own.devices = devicesOf(wanted.devices, task.job);
  if (wanted.threads < 0 || wanted.threads > dtf::cluster::kThreadsMax)
    throw Error(ErrorCode::kUsage, "threads must be from 1 to " +
                                       std::to_string(dtf::cluster::kThreadsMax) + ", or 0, not " +
                                       std::to_string(wanted.threads));
  if (wanted.threads > 0) own.threads = static_cast<int>(wanted.threads);
  if (wanted.bytes_max < 0)
    throw Error(ErrorCode::kUsage, "bytes_max must be a number of bytes, or 0, not " +
                                       std::to_string(wanted.bytes_max));
  options.bytes_max = static_cast<uint64_t>(wanted.bytes_max);
  if (wanted.sessions_max < 0 || wanted.sessions_max > dtf::cluster::kSessionsMaxMost)
    throw Error(ErrorCode::kUsage, "sessions_max must be from 1 to " +
                                       std::to_string(dtf::cluster::kSessionsMaxMost) +
                                       ", or 0, not " + std::to_string(wanted.sessions_max));
  if (wanted.sessions_max > 0)
    options.cluster.sessions_max = static_cast<uint32_t>(wanted.sessions_max);
  options.handles_signals = wanted.handle_signals != 0;
  options.credentials = credentialsOf(options.cluster, task);
  return options;
}

}  // namespace

dtf_code dtf_cluster_new(dtf_cluster** made) {
  return guarded([&] { *made = new dtf_cluster; });
}

dtf_code dtf_cluster_parse(const char* text, const char* folder, dtf_cluster** made) {
  return guarded([&] {
    dtf::yaml::Report report;
    const std::filesystem::path place = folder == nullptr ? "" : folder;
    auto cluster = std::make_unique<dtf_cluster>();
    cluster->spec = dtf::cluster::loadClusterText(place / "cluster", text, report).cluster;
    for (const JobKind job : kJobs)
      for (const TaskSpec& task : cluster->spec.tasks(job)) addText(*cluster, job, task.address);
    *made = cluster.release();
  });
}

void dtf_cluster_free(dtf_cluster* cluster) {
  delete cluster;
}

dtf_code dtf_cluster_add(dtf_cluster* cluster, const char* job_name, const char* address) {
  return guarded([&] {
    const JobKind job = jobOf(job_name);
    std::vector<TaskSpec>& tasks = tasksOf(cluster->spec, job);
    TaskSpec task;
    if (const std::string wrong = dtf::cluster::parseAddress(address, task.address); !wrong.empty())
      throw Error(ErrorCode::kBadConfig,
                  "bad address '" + std::string(address) + "' of " +
                      TaskId{job, static_cast<uint32_t>(tasks.size())}.name() + ": " + wrong);
    if (tasks.size() >= kTasksMax)
      throw Error(ErrorCode::kBadConfig,
                  "a job has at most " + std::to_string(kTasksMax) + " tasks");
    checkIsFree(cluster->spec, task.address);
    addText(*cluster, job, task.address);
    tasks.push_back(std::move(task));
  });
}

size_t dtf_cluster_count(const dtf_cluster* cluster, const char* job) {
  const std::deque<std::string>* const texts = textsOf(*cluster, job);
  return texts == nullptr ? 0 : texts->size();
}

const char* dtf_cluster_address(const dtf_cluster* cluster, const char* job, size_t index) {
  const std::deque<std::string>* const texts = textsOf(*cluster, job);
  return texts != nullptr && index < texts->size() ? (*texts)[index].c_str() : nullptr;
}

dtf_code dtf_server_start(const dtf_cluster* cluster, const char* job_name, int64_t task_index,
                          const dtf_server_options* options, dtf_server** made) {
  return guarded([&] {
    const dtf_server_options wanted = dtf::api::optionsOf(options, "dtf_server_options");
    dtf::api::quietLog();
    const TaskId task = taskOf(cluster->spec, job_name, task_index);
    auto server = std::make_unique<dtf_server>();
    server->task =
        std::make_unique<dtf::serving::ServingTask>(servingOptions(*cluster, task, wanted));
    server->target = "dtf://" + server->task->address().str() + "/" + task.name();
    *made = server.release();
  });
}

void dtf_server_free(dtf_server* server) {
  delete server;
}

const char* dtf_server_target(const dtf_server* server) {
  return server->target.c_str();
}

dtf_code dtf_server_join(dtf_server* server, double seconds, char* reason, size_t room,
                         size_t* bytes, int* signal) {
  return guarded([&] {
    if (std::isnan(seconds))
      throw Error(ErrorCode::kUsage, "the seconds to wait are a number, or negative for no bound");
    constexpr double kSecondsMax = 1e9;  // decades: without a bound
    std::optional<dtf::Duration> patience;
    if (seconds >= 0 && seconds < kSecondsMax) patience = dtf::fromSeconds(seconds);
    const auto end = server->task->join(patience);
    if (!end)
      throw Error(ErrorCode::kDeadline, server->task->task().name() + " still serves after " +
                                            std::to_string(seconds) + " s");
    DTF_CHECK(!server->target.empty());
    dtf::api::giveText(end->reason, reason, room, bytes);
    if (signal != nullptr) *signal = end->signal;
  });
}

dtf_code dtf_server_stop(dtf_server* server, const char* why) {
  return guarded([&] { server->task->stop(why); });
}

size_t dtf_server_sessions(const dtf_server* server) {
  DTF_CHECK(server->task != nullptr);
  return server->task->sessions();
}
