#include "common/cluster/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/cluster/cluster_yaml.h"
#include "common/cluster/command_line.h"
#include "common/cluster/tf_config.h"
#include "common/yaml/error_at.h"
#include "common/yaml/report.h"

namespace dtf::cluster {

using yaml::inQuotes;

namespace {

constexpr OptionDef kFileOptions[] = {
    {"cluster", "FILE", "the job: CLUSTER.yaml"},
    {"task", "N", "index of this process's task, from 0"},
};

constexpr OptionDef kFlagOptions[] = {
    {"ps-hosts", "HOSTS", "the parameter servers: host:port,host:port; none: workers hold all"},
    {"worker-hosts", "HOSTS", "the workers: host:port,host:port"},
    {"task-index", "N", "index of this process's task, from 0"},
    {"train", "FILE", "the training: TRAIN.yaml (a ps needs none)"},
    {"threads", "N", "worker: threads that compute; default: the host's cores / its workers"},
    {"serve", "", "no job: run parts of graphs for clients, until a signal"},
    {"fresh", "", "worker 0: start anew; old checkpoints become checkpoints.old-N"},
    {"metrics-port", "PORT", "answer /metrics, /healthz, /readyz there over HTTP; or auto"},
    {"job-name", "NAME", "accepted as TensorFlow's flag: ps for psd, worker for workerd"},
};

std::string_view programOf(JobKind job) {
  return job == JobKind::kPs ? "psd" : "workerd";
}

std::string helpText(JobKind binary) {
  const std::string_view program = programOf(binary);
  const std::string_view what =
      binary == JobKind::kPs
          ? "holds a part of the variables of a job and applies the gradients of its workers"
          : "trains a replica of the model of a job; worker 0 is the chief";
  const std::string_view train = binary == JobKind::kPs ? "" : " --train digits_softmax.yaml";
  return fmt::format(
      "{0}: {1}.\n\n"
      "With a file:\n{2}\n"
      "With flags:\n{3}\n"
      "With both:\n{4}\n"
      "Without --cluster, --ps-hosts and --worker-hosts the cluster is the one of TF_CONFIG, the\n"
      "environment variable; without --task and --task-index so is the task.\n\n"
      "Examples:\n"
      "  {0} --cluster configs/clusters/local.yaml --task 0\n"
      "  {0} --cluster configs/clusters/local.yaml --task 1 --set train.steps=50\n"
      "  {0} --ps-hosts a:2222 --worker-hosts b:2222,c:2222 --task-index 0{5} --insecure\n"
      "  {0} --cluster configs/clusters/local.yaml --task 0 --serve\n\n"
      "dtf-launch FILE starts all tasks of a file at once.\n",
      program, what, optionHelp(kFileOptions), optionHelp(kFlagOptions),
      optionHelp(commonOptions()), train);
}

std::vector<OptionDef> allOptions() {
  std::vector<OptionDef> options(std::begin(kFileOptions), std::end(kFileOptions));
  options.insert(options.end(), std::begin(kFlagOptions), std::end(kFlagOptions));
  options.insert(options.end(), commonOptions().begin(), commonOptions().end());
  return options;
}

void checkJobName(const CommandLine& line, JobKind binary) {
  const std::optional<std::string> name = line.value("job-name");
  if (!name) return;
  const std::optional<JobKind> job = parseJobName(*name);
  if (!job) line.fail("--job-name expects ps or worker, got " + inQuotes(*name));
  if (*job != binary)
    line.fail(fmt::format("{} runs only {} tasks: for --job-name {} run {}", programOf(binary),
                          jobName(binary), *name, programOf(*job)));
}

enum class Source { kFile, kHosts, kTfConfig };

// Checks that the line has one of the forms, and returns where the cluster comes from.
Source sourceOf(const CommandLine& line, JobKind binary, const std::optional<TfConfig>& tf) {
  if (line.has("cluster")) {
    for (const std::string_view name : {"ps-hosts", "worker-hosts"})
      if (line.has(name)) line.fail(fmt::format("--cluster and --{} exclude each other", name));
    if (line.has("train"))
      line.fail("the file of --cluster names the train file: use --set train=FILE, not --train");
    return Source::kFile;
  }
  if (!line.has("ps-hosts") && !line.has("worker-hosts")) {
    if (tf && !tf->worker.empty()) return Source::kTfConfig;
    line.fail(fmt::format("expected --cluster FILE, or --ps-hosts and --worker-hosts{}",
                          tf ? ": TF_CONFIG has no \"cluster\"" : ""));
  }
  if (!line.has("worker-hosts")) line.fail("--worker-hosts is missing");
  if (!line.has("ps-hosts") && binary == JobKind::kPs) line.fail("--ps-hosts is missing");
  return Source::kHosts;
}

JobSpec jobOf(const CommandLine& line, Source source, const std::optional<TfConfig>& tf) {
  const std::vector<std::string> overrides = line.overrides();
  switch (source) {
    case Source::kFile:
      return loadCluster(*line.value("cluster"), overrides);
    case Source::kHosts:
      return jobFromHosts(line.value("ps-hosts"), *line.value("worker-hosts"), line.value("train"),
                          overrides);
    case Source::kTfConfig:
      break;
  }
  const std::optional<std::string> ps =
      tf->ps.empty() ? std::nullopt : std::optional(join(tf->ps, ","));
  return jobFromHosts(ps, join(tf->worker, ","), line.value("train"), overrides);
}

JobSpec loadJob(const CommandLine& line, Source source, const std::optional<TfConfig>& tf) {
  JobSpec job = jobOf(line, source, tf);
  if (const std::optional<std::string> run_dir = line.value("run-dir")) {
    job.run_dir = line.folder("run-dir", *run_dir);
  }
  return job;
}

// Options win: a variable that isn't needed is not read.
std::optional<TfConfig> tfConfigUnlessGiven(const CommandLine& line) {
  const bool names_cluster =
      line.has("cluster") || line.has("ps-hosts") || line.has("worker-hosts");
  const bool names_task = line.has("task") || line.has("task-index");
  return names_cluster && names_task ? std::nullopt : tfConfigOfEnvironment();
}

TaskId checkedTask(const CommandLine& line, JobKind binary, const TaskId& task) {
  if (task.job != binary)
    line.fail(fmt::format("TF_CONFIG's task is {}: run {}", task.name(), programOf(task.job)));
  return task;
}

// --task and --task-index are one option under two names.
TaskId readTaskId(const CommandLine& line, JobKind binary, bool from_file,
                  const std::optional<TfConfig>& tf) {
  if (line.has("task") && line.has("task-index"))
    line.fail("--task and --task-index are the same option: give one");
  const std::optional<uint32_t> index = line.index(line.has("task") ? "task" : "task-index");
  if (!index && tf && tf->task) return checkedTask(line, binary, *tf->task);
  if (!index)
    line.fail(fmt::format("--{} is missing: the index of this {}, from 0",
                          from_file ? "task" : "task-index", jobName(binary)));
  return TaskId{binary, *index};
}

std::vector<std::string> addressesOf(const std::vector<TaskSpec>& tasks) {
  std::vector<std::string> addresses;
  for (const TaskSpec& task : tasks) addresses.push_back(task.address.str());
  return addresses;
}

// A task's number means nothing in another cluster.
void checkTaskOf(const CommandLine& line, const TfConfig& tf, const ClusterSpec& cluster) {
  const bool is_same = tf.worker.empty() || (addressesOf(cluster.ps) == tf.ps &&
                                             addressesOf(cluster.worker) == tf.worker);
  if (!is_same)
    line.fail(
        fmt::format("TF_CONFIG's {} is a task of another cluster than the command line's: "
                    "give --task-index, or unset TF_CONFIG",
                    tf.task->name()));
}

void checkTaskFits(const CommandLine& line, const TaskId& task, const JobSpec& job) {
  const size_t count = job.cluster.tasks(task.job).size();
  if (task.index >= count)
    line.fail(fmt::format("there is no {}: the cluster has {} {} {}, numbered from 0", task.name(),
                          count, jobName(task.job), count == 1 ? "task" : "tasks"));
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker}) {
    const std::vector<TaskSpec>& tasks = job.cluster.tasks(kind);
    const auto found = std::find_if(tasks.begin(), tasks.end(),
                                    [](const TaskSpec& t) { return t.address.port == 0; });
    if (found != tasks.end())
      line.fail(fmt::format(
          "{} has the address {}, and only dtf-launch chooses ports: run it, or give a port",
          TaskId{kind, static_cast<uint32_t>(found - tasks.begin())}.name(), found->address.str()));
  }
}

void checkTrains(const CommandLine& line, const TaskId& task, const JobSpec& job, bool from_file) {
  if (task.job == JobKind::kWorker && !job.train)
    line.fail(from_file ? "a worker needs a train file: add 'train: TRAIN.yaml' to the cluster "
                          "file, or give --set train=TRAIN.yaml"
                        : "a worker needs a train file: give --train TRAIN.yaml");
  const bool is_open = job.train && job.train->placement.strategy == PlacementSpec::Strategy::kAuto;
  if (task.job == JobKind::kWorker && is_open && !job.cluster.isOneProcess())
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, job.train->placement.strategy_mark,
        "'placement: auto' is decided before the tasks start, the same for all: start the job with "
        "dtf-launch, or write the placement here that 'dtf-launch explain --measure' prints");
}

// --threads overrides the file for this task.
void readThreads(const CommandLine& line, const TaskId& task, JobSpec& job) {
  const std::optional<uint32_t> threads = line.index("threads");
  if (!threads) return;
  if (task.job != JobKind::kWorker)
    line.fail("--threads is for workerd: a ps chooses its number of threads itself");
  if (*threads < 1 || *threads > static_cast<uint32_t>(kThreadsMax))
    line.fail(fmt::format("--threads must be from 1 to {}, got {}", kThreadsMax, *threads));
  job.cluster.worker[task.index].threads = static_cast<int>(*threads);
}

// --metrics-port overrides the file for this task.
void readMetricsPort(const CommandLine& line, TaskOptions& task) {
  task.metrics_port = metricsPort(task.job, task.task);
  const std::optional<std::string> port = line.value("metrics-port");
  if (!port) return;
  const std::string wrong = parsePort(*port, task.metrics_port.emplace());
  if (!wrong.empty()) line.fail(fmt::format("bad --metrics-port {}: {}", inQuotes(*port), wrong));
}

// Refuses options that a serving task would silently ignore.
void refuseJobOptions(const CommandLine& line) {
  for (const std::string_view name : {"fresh", "train", "run-dir"})
    if (line.has(name)) line.fail(fmt::format("--serve runs no job: leave --{} out", name));
  for (const std::string& setting : line.overrides())
    if (setting.starts_with("train") || setting.starts_with("run_dir"))
      line.fail(fmt::format("--serve runs no job: leave --set {} out", setting));
}

}  // namespace

TaskOptions parseTaskCommandLine(int argc, const char* const* argv, JobKind binary) {
  const std::vector<OptionDef> options = allOptions();
  const CommandLine line(programOf(binary), options, 1, argc, argv);
  TaskOptions result;
  if (!line.positionals().empty()) {
    // "psd help" works like "dtf-launch help".
    if (line.positionals().front() != "help")
      line.fail("unexpected argument " + inQuotes(line.positionals().front()));
    result.answer = helpText(binary);
    return result;
  }
  result.answer = line.answer(helpText(binary));
  if (result.answer) return result;
  checkJobName(line, binary);
  const std::optional<TfConfig> tf = tfConfigUnlessGiven(line);
  const Source source = sourceOf(line, binary, tf);
  const bool from_file = source == Source::kFile;
  result.log_level = line.logLevel();
  result.task = readTaskId(line, binary, from_file, tf);
  result.fresh = line.has("fresh");
  result.serves = line.has("serve");
  if (result.serves) refuseJobOptions(line);
  if (from_file) result.cluster_file = *line.value("cluster");
  result.job = loadJob(line, source, tf);
  if (tf && tf->task && !line.has("task") && !line.has("task-index"))
    checkTaskOf(line, *tf, result.job.cluster);
  const bool learns = result.job.train && result.job.train->data.train.csv.learns();
  if (result.fresh && result.task != kChief && !learns)
    line.fail("--fresh is for worker 0, which restores the job");
  checkTaskFits(line, result.task, result.job);
  if (!result.serves) checkTrains(line, result.task, result.job, from_file);
  readThreads(line, result.task, result.job);
  readMetricsPort(line, result);
  DTF_CHECK(result.task.job == binary);
  DTF_CHECK(result.task.index < result.job.cluster.tasks(binary).size());
  return result;
}

}  // namespace dtf::cluster
