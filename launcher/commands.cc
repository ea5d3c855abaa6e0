#include "launcher/commands.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/cores.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/plugin_library.h"
#include "launcher/binaries.h"
#include "launcher/detach.h"
#include "launcher/find_run.h"
#include "launcher/finished.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"
#include "launcher/output.h"
#include "launcher/session.h"
#include "launcher/ssh/ssh_hosts.h"
#include "launcher/systemd/unit_commands.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

std::string memoryText(const train::JobSize& size) {
  const std::string metrics = size.metric_bytes == 0
                                  ? ""
                                  : fmt::format("the chief keeps {} for auc in an evaluation; ",
                                                bytesText(size.metric_bytes));
  return fmt::format(
      "each worker keeps {} for a batch, and {} for parameters and gradients; {}ps hold {} copies "
      "of their parameters; at least {} on this host",
      bytesText(size.kept_bytes), bytesText(size.worker_bytes), metrics, size.ps_copies,
      bytesText(size.memory_bytes));
}

std::string preparationText(const train::DataCounts& counts) {
  if (!counts.prepared_by) return "";
  return fmt::format(
      "\n  preparation: of the checkpoint of step {}, with which the job goes on (--fresh learns "
      "anew)",
      *counts.prepared_by);
}

// "trains on 60000 examples, evaluates on 10000 examples"
std::string examplesText(const cluster::JobSpec& job, const train::DataCounts& counts) {
  const auto text = [](const std::optional<int64_t>& count) {
    return count ? amountText(static_cast<uint64_t>(*count), "example") : "data on other hosts";
  };
  return "trains on " + text(counts.train) +
         (job.train->data.eval ? ", evaluates on " + text(counts.eval) : "") +
         preparationText(counts);
}

}  // namespace

std::vector<int> threadsOf(const cluster::ClusterSpec& cluster) {
  std::vector<int> threads;
  for (uint32_t i = 0; i < cluster.worker.size(); ++i)
    threads.push_back(cluster::computeThreads(cluster, i, availableCores()));
  return threads;
}

std::string threadsText(const cluster::ClusterSpec& cluster) {
  std::string text;
  const std::vector<int> threads = threadsOf(cluster);
  const auto [least, most] = std::minmax_element(threads.begin(), threads.end());
  if (*least == *most)
    text = fmt::format("each worker computes on {}", *least);
  else
    text = fmt::format("workers compute on {} to {}", *least, *most);
  return text + fmt::format(", as this host has {} cores", availableCores());
}

std::vector<std::vector<std::string>> devicesOf(const cluster::ClusterSpec& cluster) {
  std::vector<std::vector<std::string>> devices;
  for (const cluster::TaskSpec& worker : cluster.worker)
    devices.push_back(cluster::devicesOf(worker));
  return devices;
}

std::string towersText(const cluster::JobSpec& job, uint32_t worker) {
  const std::vector<std::string> devices = cluster::devicesOf(job.cluster.worker.at(worker));
  if (devices.size() == 1) return {};
  const int threads = runtime::threadsOfEach(threadsOf(job.cluster).at(worker), devices.size());
  return fmt::format("{} towers on {}, each of {} examples with {} thread{}", devices.size(),
                     join(devices, ", "),
                     job.train->data.batch_size / static_cast<int64_t>(devices.size()), threads,
                     threads == 1 ? "" : "s");
}

namespace {

using Via = cluster::LaunchSpec::Via;

// A file is sent to other hosts under the path that it has here: there, `~` and the folder that a
// relative path starts at are others.
void nameTrainFile(const std::map<fs::path, std::string>& files, PlanInput& input) {
  for (const auto& [path, text] : files) {
    if (path == input.cluster_file) continue;
    std::erase_if(input.overrides,
                  [](const std::string& each) { return each.starts_with("train="); });
    std::string quoted;
    for (const char c : path.string()) quoted += c == '\'' ? "''" : std::string(1, c);
    input.overrides.push_back("train='" + quoted + "'");
  }
}

// Tasks that serve write nothing: a run directory is the launcher's own, for logs and status.
void keepRunDirHere(PlanInput& input) {
  input.run_dir.reset();
  std::erase_if(input.overrides,
                [](const std::string& each) { return each.starts_with("run_dir="); });
}

bool hasOtherHosts(const cluster::JobSpec& job) {
  const std::vector<std::string> hosts = hostsOfTasks(job);
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const std::string& host) { return !isThisHost(host); });
}

PlanInput planInput(const cluster::JobSpec& job, const Options& options, const Origin& origin,
                    bool serves) {
  PlanInput input{options.cluster_file, options.overrides, options.run_dir, options.log_level, {},
                  fs::current_path(),   options.fresh,     serves};
  if (serves) keepRunDirHere(input);
  if (job.launch.via == Via::kSystemd && hasOtherHosts(job)) {
    nameTrainFile(origin.files, input);
    input.run_dir = fs::absolute(job.run_dir).lexically_normal();
  }
  if (job.launch.via == Via::kSystemd) {
    input.binaries = {"psd", "workerd"};  // each host knows where its own are
    return input;
  }
  if (!job.launch.byAgents()) {
    const char* path = std::getenv("PATH");
    input.binaries = findBinaries(options.bin_dir, origin.own_folder, path ? path : "");
    return input;
  }
  if (options.bin_dir && !job.launch.copy.programs)
    throw Error(ErrorCode::kUsage,
                "--bin-dir names a folder of this host: name the folder on the other hosts with "
                "launch.binary_dir");
  // What these mean elsewhere can't depend on where this process is.
  input.binaries = {"psd", "workerd"};
  input.cluster_file = fs::absolute(options.cluster_file).lexically_normal();
  if (!serves) nameTrainFile(origin.files, input);
  if (!serves) input.run_dir = fs::absolute(job.run_dir).lexically_normal();
  return input;
}

// Those of this host, for hosts that lack them.
std::map<std::string, fs::path> programsToCopy(const cluster::JobSpec& job, const Options& options,
                                               const Origin& origin) {
  const char* path = std::getenv("PATH");
  const Binaries daemons = findBinaries(options.bin_dir, origin.own_folder, path ? path : "");
  std::map<std::string, fs::path> programs{
      {"psd", daemons.psd},
      {"workerd", daemons.workerd},
      {"dtf-agent", findAgent(options.bin_dir, origin.own_folder)}};
  const auto is_gpu = [](const std::string& device) { return device.starts_with("gpu"); };
  for (const cluster::TaskSpec& worker : job.cluster.worker) {
    const std::vector<std::string> devices = cluster::devicesOf(worker);
    if (std::none_of(devices.begin(), devices.end(), is_gpu)) continue;
    for (const std::string& plugin : runtime::gpuPluginPaths())
      if (fs::exists(plugin)) programs.try_emplace(std::string(kGpuPlugin), plugin);
    if (!programs.contains(std::string(kGpuPlugin)))
      throw Error(ErrorCode::kBadConfig,
                  "a worker has GPUs, but this host has no libdtf_gpu.so to copy "
                  "(launch.copy.programs): build it, or install dtf on the hosts");
  }
  return programs;
}

// Nobody is asked: a port that is chosen there is not known yet.
ChosenAddresses plannedAddresses(const cluster::JobSpec& job) {
  if (!job.launch.byAgents())
    return ListenSockets::open(specsOf(job.cluster), job.cluster.mayBeReached(), true).chosen();
  ChosenAddresses chosen;
  for (const auto& [id, task] : specsOf(job.cluster))
    if (task.address.port == 0) chosen[id] = task.address.str();
  return chosen;
}

std::string keepPlacement(const Origin& origin) {
  return origin.keep_placement ? origin.keep_placement() : "";
}

void warnOf(const std::string& text) {
  if (!text.empty()) printBounded(STDERR_FILENO, "dtf-launch: " + text + "\n");
}

UnitStart unitStart(const Options& options, const Origin& origin) {
  return {[options, origin] {
            const char* path = std::getenv("PATH");
            return findBinaries(options.bin_dir, origin.own_folder, path ? path : "");
          },
          fs::current_path(), origin.files};
}

int start(const cluster::JobSpec& job, const Options& options, const Origin& origin, bool serves) {
  LaunchOptions launch_options;
  launch_options.plan = planInput(job, options, origin, serves);
  launch_options.exchange_seconds = origin.exchange_seconds;
  if (job.launch.via == Via::kSystemd && !options.dry_run) warnOf(keepPlacement(origin));
  if (job.launch.via == Via::kSystemd)
    return upAsUnits(job, options, launch_options.plan, unitStart(options, origin),
                     origin.credentials);
  launch_options.json = options.json;
  launch_options.color = options.color;
  launch_options.verbosity = options.verbosity;
  launch_options.files.texts = origin.files;
  if (job.launch.copy.programs)
    launch_options.files.programs = programsToCopy(job, options, origin);
  if (!options.dry_run) {
    // Not before: a launch that is refused must not take the place of the one that runs there.
    launch_options.on_held = [&] {
      return keepPlacement(origin) + rememberRun(job, options.cluster_file);
    };
    return options.detach
               ? launchDetached(job, launch_options, options.cluster_file, options.run_dir)
               : launch(job, launch_options);
  }
  const auto plan = makePlan(job, launch_options.plan, plannedAddresses(job));
  std::vector<SshHostCommand> hosts;
  if (job.launch.byAgents()) hosts = sshCommands(job);
  print(options.json ? planJson(plan, hosts) : planText(plan, hosts));
  return 0;
}

}  // namespace

int up(const cluster::JobSpec& job, const Options& options, const Origin& origin) {
  if (const std::optional<int> done = answerFinished(job, options)) return *done;
  if (!options.dry_run && options.verbosity != Verbosity::kQuiet) warnOf(runningElsewhereText(job));
  return start(job, options, origin, false);
}

int serve(const cluster::JobSpec& job, const Options& options, const Origin& origin) {
  if (job.launch.via == Via::kSystemd)
    throw Error(ErrorCode::kUsage,
                "serving tasks can't run as systemd units: add --set launch.via=local");
  cluster::JobSpec cluster = job;
  cluster.train.reset();
  return start(cluster, options, origin, true);
}

int check(const cluster::JobSpec& job, const train::JobSize& size, const train::DataCounts& counts,
          const Options& options) {
  Json tasks = Json::array();
  std::string text = options.cluster_file.string() + ": OK: job " + job.job +
                     "\n  model: " + train::sizeText(size) +
                     "\n  data: " + examplesText(job, counts) + "\n  memory: " + memoryText(size) +
                     "\n  threads: " + threadsText(job.cluster) +
                     "\n  durability: " + job.durability.str() + "\n";
  for (const TaskId id : allTasks(job.cluster)) {
    const std::string address = job.cluster.tasks(id.job)[id.index].address.str();
    tasks.push_back(Json{{"name", id.name()}, {"address", address}});
    text += "  " + id.name() + "  " + address;
    const std::string towers = id.job == JobKind::kWorker ? towersText(job, id.index) : "";
    text += towers.empty() ? "\n" : ": " + towers + "\n";
  }
  if (options.json)
    printEvent("check",
               {{"job", job.job},
                {"parameters", size.parameters},
                {"examples", counts.train ? Json(*counts.train) : nullptr},
                {"eval_examples", counts.eval ? Json(*counts.eval) : nullptr},
                {"prepared_by_step", counts.prepared_by ? Json(*counts.prepared_by) : nullptr},
                {"ps_bytes", size.ps_bytes},
                {"memory_bytes", size.memory_bytes},
                {"kept_bytes", size.kept_bytes},
                {"threads", threadsOf(job.cluster)},
                {"devices", devicesOf(job.cluster)},
                {"durability", job.durability.str()},
                {"tasks", tasks}});
  else
    print(text);
  return 0;
}

}  // namespace dtf::launcher
