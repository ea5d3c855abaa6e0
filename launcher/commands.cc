#include "launcher/commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/cores.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/binaries.h"
#include "launcher/detach.h"
#include "launcher/find_run.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"
#include "launcher/output.h"
#include "launcher/session.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

std::string memoryText(const train::JobSize& size) {
  const std::string metrics =
      size.metric_bytes == 0
          ? ""
          : fmt::format("the chief {} of an evaluation for auc; ", bytesText(size.metric_bytes));
  return fmt::format(
      "each worker keeps {} of a batch, and {} of parameters and gradients; {}ps hold {} copies of "
      "their parameters; at least {} here",
      bytesText(size.kept_bytes), bytesText(size.worker_bytes), metrics, size.ps_copies,
      bytesText(size.memory_bytes));
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

int up(const cluster::JobSpec& job, const Options& options, const fs::path& own_folder) {
  const char* path = std::getenv("PATH");
  LaunchOptions launch_options;
  launch_options.plan = PlanInput{options.cluster_file,
                                  options.overrides,
                                  options.run_dir,
                                  options.log_level,
                                  findBinaries(options.bin_dir, own_folder, path ? path : ""),
                                  fs::current_path(),
                                  options.fresh};
  launch_options.json = options.json;
  launch_options.color = options.color;
  launch_options.verbosity = options.verbosity;
  if (!options.dry_run) {
    // Not before: a launch that is refused must not take the place of the one that runs there.
    launch_options.on_held = [&] { return rememberRun(job, options.cluster_file); };
    return options.detach ? launchDetached(job, launch_options, options.cluster_file)
                          : launch(job, launch_options);
  }
  const ListenSockets sockets = ListenSockets::open(job.cluster, true);
  const auto plan = makePlan(job, launch_options.plan, sockets.chosen());
  print(options.json ? planJson(plan) : planText(plan));
  return 0;
}

int check(const cluster::JobSpec& job, const train::JobSize& size, const Options& options) {
  ordered_json tasks = ordered_json::array();
  std::string text = options.cluster_file.string() + ": OK: job " + job.job +
                     "\n  model: " + train::sizeText(size) + "\n  memory: " + memoryText(size) +
                     "\n  threads: " + threadsText(job.cluster) +
                     "\n  durability: " + job.durability.str() + "\n";
  for (const TaskId id : allTasks(job.cluster)) {
    const std::string address = job.cluster.tasks(id.job)[id.index].address.str();
    tasks.push_back(ordered_json{{"name", id.name()}, {"address", address}});
    text += "  " + id.name() + "  " + address + "\n";
  }
  if (options.json)
    printEvent("check", {{"job", job.job},
                         {"parameters", size.parameters},
                         {"ps_bytes", size.ps_bytes},
                         {"memory_bytes", size.memory_bytes},
                         {"kept_bytes", size.kept_bytes},
                         {"threads", threadsOf(job.cluster)},
                         {"durability", job.durability.str()},
                         {"tasks", tasks}});
  else
    print(text);
  return 0;
}

}  // namespace dtf::launcher
