#include "launcher/launch_plan.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/cluster/address.h"

namespace dtf::launcher {

namespace {

const std::string& chosenAddress(const ChosenAddresses& chosen, TaskId id) {
  const auto address = chosen.find(id);
  if (address == chosen.end())
    throw Error(ErrorCode::kInternal, "no port was chosen for " + id.name());
  return address->second;
}

// `--set` for all tasks of a job that the file only counts: JSON is YAML.
std::string listOverride(const cluster::ClusterSpec& cluster, JobKind job,
                         const ChosenAddresses& chosen) {
  Json list = Json::array();
  for (uint32_t index = 0; index < cluster.tasks(job).size(); ++index) {
    const cluster::TaskSpec& task = cluster.tasks(job)[index];
    Json one = {{"address", chosenAddress(chosen, {job, index})}};
    if (!task.devices.empty()) one["devices"] = task.devices;
    if (!task.env.empty()) one["env"] = task.env;
    if (task.threads != 0) one["threads"] = task.threads;
    list.push_back(std::move(one));
  }
  try {
    return "cluster." + std::string(jobName(job)) + "=" + list.dumpStrict();
  } catch (const Error&) {
    throw Error(ErrorCode::kBadConfig,
                fmt::format("an 'env' of the {} is not UTF-8: tasks with 'count' need UTF-8",
                            jobName(job)));
  }
}

// `--set` for each `auto` port. Where a task is a map in the file (it has more to say than an
// address), only its address may be replaced.
std::vector<std::string> addressOverrides(const cluster::ClusterSpec& cluster,
                                          const ChosenAddresses& chosen) {
  std::vector<std::string> overrides;
  for (const TaskId id : allTasks(cluster)) {
    const cluster::TaskSpec& task = cluster.tasks(id.job)[id.index];
    if (task.by_count && id.index == 0) overrides.push_back(listOverride(cluster, id.job, chosen));
    if (task.by_count || task.address.port != 0) continue;
    const std::string& address = chosenAddress(chosen, id);
    const bool is_map = !task.devices.empty() || !task.env.empty() || task.threads != 0;
    const bool is_ipv6 = address.starts_with('[');  // a list, to YAML, unless quoted
    overrides.push_back("cluster." + std::string(jobName(id.job)) + "." + std::to_string(id.index) +
                        (is_map ? ".address=" : "=") + (is_ipv6 ? '"' + address + '"' : address));
  }
  return overrides;
}

// A worker that learns the preparation of a table takes it from the checkpoint that a fresh job
// sets aside.
bool beginsAnew(TaskId id, const cluster::JobSpec& job) {
  return id == kChief ||
         (id.job == JobKind::kWorker && job.train && job.train->data.train.csv.learns());
}

// The chief has set aside the checkpoints that the tasks of its own host see.
bool staysFresh(TaskId id, const cluster::JobSpec& job) {
  if (id.job != JobKind::kWorker || id == kChief) return false;
  const auto host = [&job](uint32_t index) {
    const std::string& name = job.cluster.worker.at(index).address.host;
    return name.empty() ? name : cluster::hostKey(name);
  };
  return host(id.index) != host(kChief.index);
}

std::vector<std::string> argvOf(TaskId id, const cluster::JobSpec& job, const PlanInput& input,
                                const std::vector<std::string>& address_overrides) {
  const bool is_ps = id.job == JobKind::kPs;
  std::vector<std::string> argv = {(is_ps ? input.binaries.psd : input.binaries.workerd).string(),
                                   "--cluster", input.cluster_file.string(), "--task",
                                   std::to_string(id.index)};
  for (const auto* overrides : {&input.overrides, &address_overrides}) {
    for (const std::string& assignment : *overrides) {
      argv.push_back("--set");
      argv.push_back(assignment);
    }
  }
  if (input.run_dir) {
    argv.push_back("--run-dir");
    argv.push_back(input.run_dir->string());
  }
  if (input.serves) argv.emplace_back("--serve");
  if (input.fresh && beginsAnew(id, job)) argv.push_back("--fresh");
  if (input.log_level) {
    argv.push_back("--log-level");
    argv.push_back(*input.log_level);
  }
  return argv;
}

std::string quoted(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (const std::string& word : argv) words.push_back(shellQuote(word));
  return join(words, " ");
}

std::string commandText(const TaskCommand& command) {
  std::vector<std::string> words;
  if (!command.env.empty()) {
    words.push_back("env");
    for (const auto& [name, value] : command.env) words.push_back(shellQuote(name + "=" + value));
  }
  words.push_back(quoted(command.argv));
  return join(words, " ");
}

}  // namespace

std::vector<TaskId> allTasks(const cluster::ClusterSpec& cluster) {
  std::vector<TaskId> tasks;
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (uint32_t index = 0; index < cluster.tasks(job).size(); ++index)
      tasks.push_back(TaskId{job, index});
  return tasks;
}

std::vector<TaskCommand> makePlan(const cluster::JobSpec& job, const PlanInput& input,
                                  const ChosenAddresses& chosen) {
  DTF_CHECK(!job.cluster.ps.empty() || !job.cluster.worker.empty());
  DTF_CHECK(!input.binaries.psd.empty() && !input.binaries.workerd.empty());
  const std::vector<std::string> address_overrides = addressOverrides(job.cluster, chosen);
  std::vector<TaskCommand> plan;
  for (const TaskId id : allTasks(job.cluster)) {
    const cluster::TaskSpec& task = job.cluster.tasks(id.job)[id.index];
    plan.push_back(TaskCommand{id, task.address.host, argvOf(id, job, input, address_overrides),
                               task.env, input.folder, staysFresh(id, job)});
  }
  return plan;
}

std::string planText(const std::vector<TaskCommand>& plan,
                     const std::vector<SshHostCommand>& hosts) {
  std::string text;
  for (const SshHostCommand& host : hosts)
    text += "to " + host.host + " | " + quoted(host.argv) + "\n";
  for (const TaskCommand& command : plan)
    text += command.host + " | " + commandText(command) + "\n";
  return text;
}

std::string planJson(const std::vector<TaskCommand>& plan,
                     const std::vector<SshHostCommand>& hosts) {
  Json tasks = Json::array();
  for (const TaskCommand& command : plan) {
    tasks.push_back(Json{{"name", command.id.name()},
                         {"host", command.host},
                         {"folder", command.folder.string()},
                         {"env", command.env},
                         {"argv", command.argv}});
  }
  Json plan_json = {{"schema", 1}, {"event", "plan"}, {"tasks", tasks}};
  for (const SshHostCommand& host : hosts)
    plan_json["hosts"].push_back({{"host", host.host}, {"argv", host.argv}});
  return plan_json.dump() + "\n";
}

std::string shellQuote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::vector<std::string> targetsOf(const cluster::ClusterSpec& cluster,
                                   const ChosenAddresses& chosen) {
  std::vector<std::string> targets;
  for (const JobKind job : {JobKind::kWorker, JobKind::kPs})
    for (uint32_t i = 0; i < cluster.tasks(job).size(); ++i)
      targets.push_back("dtf://" + addressOf(cluster, chosen, {job, i}));
  return targets;
}

std::string addressOf(const cluster::ClusterSpec& cluster, const ChosenAddresses& chosen,
                      TaskId id) {
  const auto found = chosen.find(id);
  return found != chosen.end() ? found->second : cluster.tasks(id.job).at(id.index).address.str();
}

}  // namespace dtf::launcher
