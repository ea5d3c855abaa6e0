#pragma once

// From a job's description to the command of each task: a pure function, so that `--dry-run` shows
// exactly what would run. Touches neither the network nor any process.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "launcher/binaries.h"

namespace dtf::launcher {

// One process to start. Value type.
struct TaskCommand {
  TaskId id;
  std::string host;                        // where it runs, as the file says
  std::vector<std::string> argv;           // argv[0] is the path of the binary
  std::map<std::string, std::string> env;  // on top of the launcher's own environment
  std::filesystem::path folder;            // the working folder
  // A later process of the task keeps --fresh: on its host there may be checkpoints of an earlier
  // run, which the chief can't set aside.
  bool stays_fresh = false;
};

struct PlanInput {
  std::filesystem::path cluster_file;            // as a task started in `folder` must name it
  std::vector<std::string> overrides;            // the user's --set, in their order
  std::optional<std::filesystem::path> run_dir;  // the user's --run-dir
  std::optional<std::string> log_level;          // the user\'s --log-level
  Binaries binaries;
  std::filesystem::path folder;
  bool fresh = false;   // for the chief, and workers that learn
  bool serves = false;  // the tasks wait for clients
};

// The address, "127.0.0.1:40123", that each task with an `auto` port was given.
using ChosenAddresses = std::map<TaskId, std::string>;
// Where a task listens.
std::string addressOf(const cluster::ClusterSpec& cluster, const ChosenAddresses& chosen,
                      TaskId id);

// Where clients find the tasks that serve, "dtf://localhost:2222", workers first: an op that asks
// for no device runs on the first.
std::vector<std::string> targetsOf(const cluster::ClusterSpec& cluster,
                                   const ChosenAddresses& chosen);

// Every task, ps first. Each learns the address of every `auto` port through --set, after the
// user's own.
// Errors: kInternal when `chosen` lacks an `auto` task.
std::vector<TaskCommand> makePlan(const cluster::JobSpec& job, const PlanInput& input,
                                  const ChosenAddresses& chosen);

// What this host runs to have the tasks of another one run there. Value type.
struct SshHostCommand {
  std::string host;
  std::vector<std::string> argv;
};

// One task a line, `host | command`, the command ready to paste into a shell in the working folder.
// Tasks of other hosts are told what to run over the stdin of the commands that come first.
std::string planText(const std::vector<TaskCommand>& plan,
                     const std::vector<SshHostCommand>& hosts = {});

// {"schema":1,"event":"plan","tasks":[{"name","host","folder","env","argv"}]} on one line, and
// "hosts":[{"host","argv"}] where there are others.
std::string planJson(const std::vector<TaskCommand>& plan,
                     const std::vector<SshHostCommand>& hosts = {});

// `word` as one word of a POSIX shell.
std::string shellQuote(std::string_view word);

// All tasks of `cluster`, ps first, in the order of every list the launcher shows.
std::vector<TaskId> allTasks(const cluster::ClusterSpec& cluster);

}  // namespace dtf::launcher
