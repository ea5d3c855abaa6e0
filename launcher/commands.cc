#include "launcher/commands.h"

#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/print.h"
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

}  // namespace

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
                     "\n  model: " + train::sizeText(size) +
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
                         {"durability", job.durability.str()},
                         {"tasks", tasks}});
  else
    print(text);
  return 0;
}

}  // namespace dtf::launcher
