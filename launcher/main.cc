// dtf-launch: starts the tasks of a job, watches them, and says how it went.

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"
#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/cluster/cluster_yaml.h"
#include "common/cluster/tf_config.h"
#include "common/net/credentials.h"
#include "common/net/error_bridge.h"
#include "common/net/tls_keys.h"
#include "common/runtime/plugin_device.h"
#include "common/train/job_check.h"
#include "common/yaml/report.h"
#include "launcher/commands.h"
#include "launcher/keys_check.h"
#include "launcher/listen_sockets.h"
#include "launcher/options.h"
#include "launcher/output.h"
#include "launcher/placement/auto_placement.h"
#include "launcher/run_folder.h"
#include "launcher/slurm/allocation.h"

namespace dtf::launcher {

namespace {

// Started with one of them closed (`>&-`), a log file or a socket would take its number, and its
// output.
void openMissingStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
}

std::filesystem::path ownFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

// isThisHost(), which may take seconds, once for each host.
std::function<bool(const cluster::Address&)> hostLookUp() {
  return [known = std::map<std::string, bool>()](const cluster::Address& address) mutable {
    const auto [entry, is_new] = known.try_emplace(address.host);
    if (is_new) entry->second = !isNodeToCome(address.host) && isThisHost(address.host);
    return entry->second;
  };
}

// What only matters to a job that is to run: the other verbs work on one whose data are gone, too.
// With `placement: auto` it checks the file's job, and the job of each choice.
class StartCheck {
 public:
  // `options`: must outlive this.
  explicit StartCheck(const Options& options) : options_(options) {}

  // Adds the mistakes of `job` to `report`, which loaded it.
  std::optional<train::JobSize> look(const cluster::JobSpec& job, const cluster::JobMarks& marks,
                                     yaml::Report& report) const {
    checkKeys(job, marks.keys, runs_here_, report);
    return train::checkJob(job, {hostMemory(), runs_here_, runtime::missingDevice}, report);
  }

  // Prints the warnings, too, each once.
  train::JobSize pass(const cluster::JobSpec& job, const cluster::JobMarks& marks,
                      yaml::Report& report) {
    const std::optional<train::JobSize> size = look(job, marks, report);
    for (const std::string& warning : report.warningTexts()) {
      if (!shown_.insert(warning).second) continue;
      printBounded(STDERR_FILENO, warning + "\n");
      if (options_.json) printBounded(STDOUT_FILENO, eventLine("warning", {{"message", warning}}));
    }
    report.throwIfAny();
    DTF_CHECK(size.has_value());
    return *size;
  }

 private:
  const Options& options_;
  const std::function<bool(const cluster::Address&)> runs_here_ = hostLookUp();
  std::set<std::string> shown_;  // warnings
};

// What the files hold, which only `check` takes the time for: the tasks of a job read them
// themselves.
train::DataCounts checkData(const cluster::JobSpec& job, yaml::Report& report) {
  const train::DataCounts counts = train::checkContents(job, report, [](const std::string& files) {
    printBounded(STDERR_FILENO, "dtf-launch: reading " + files + "\n");
  });
  report.throwIfAny();
  return counts;
}

// On which nodes of Slurm's the tasks are. Only what starts them asks Slurm.
void placeJob(cluster::JobSpec& job, const Options& options) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSlurm) return;
  const bool starts = options.verb == Verb::kUp || options.verb == Verb::kServe ||
                      options.network || options.measure;
  const std::vector<std::string> nodes = starts ? allocatedNodes() : nodesToCome(job.launch.slurm);
  placeOnNodes(job, nodes);
  if (starts) checkNodes(job, nodes);
  if (job.launch.ssh.binary_dir.empty()) job.launch.ssh.binary_dir = ownFolder();
}

// For verbs that call the tasks: as the job's client, or of this user's own tasks only; root is
// shown those of others, too, but gives them no graph. Verbs that call only where they know of no
// run do without the client's keys where there are none.
net::Credentials credentialsOf(const cluster::JobSpec& job, Verb verb) {
  const bool calls = verb == Verb::kStatus || verb == Verb::kGraph;
  const bool follows = verb == Verb::kUp && job.launch.via == cluster::LaunchSpec::Via::kSystemd;
  const bool may_call =
      verb == Verb::kStop || verb == Verb::kAttach || verb == Verb::kLogs || follows;
  if (!calls && !may_call) return {};
  const std::filesystem::path& keys = job.cluster.keys;
  if (keys.empty()) {
    const bool all_users = job.cluster.insecure || (verb != Verb::kGraph && ::geteuid() == 0);
    return all_users ? net::Credentials::insecure() : net::Credentials::ownUser();
  }
  if (!calls && !std::filesystem::exists(keys / net::keyFileOf("client"))) return {};
  return net::Credentials::ofKeys(std::make_shared<net::TlsKeys>(keys, "client", job.job));
}

// A verb that writes to other programs (tasks, ssh, systemctl) reports that one of them has ended.
// The others end by SIGPIPE with the reader of their output, as tools do.
void ignoreSigpipe(const cluster::JobSpec& job, const Options& options) {
  if (options.verb == Verb::kUp || options.verb == Verb::kServe || options.network ||
      options.measure || job.launch.via == cluster::LaunchSpec::Via::kSystemd)
    std::signal(SIGPIPE, SIG_IGN);
}

cluster::JobSpec loadJob(const Options& options, yaml::Report& report, cluster::JobMarks& marks) {
  cluster::JobSpec job =
      cluster::loadCluster(options.cluster_file, options.overrides, report, &marks);
  if (options.run_dir) job.run_dir = *options.run_dir;
  return job;
}

// Returns the mistakes of `report`, which has some, in a line.
std::string mistakesText(const yaml::Report& report) {
  const size_t others = report.mistakes() - 1;
  try {
    report.throwFirst();
  } catch (const Error& first) {
    return first.message() + (others > 0 ? " (and " + std::to_string(others) + " more)" : "");
  }
  return "";
}

// Returns a reader of `options` with more overrides: the options of 'placement: auto' that the file
// refuses, or that the hosts can't have, are not chosen. Borrows both.
JobReader readerOf(const Options& options, const StartCheck& check) {
  return [&options, &check](const std::vector<std::string>& overrides) -> ReadJob {
    Options with = options;
    with.overrides.insert(with.overrides.end(), overrides.begin(), overrides.end());
    yaml::Report report;
    cluster::JobMarks marks;
    try {
      cluster::JobSpec job = loadJob(with, report, marks);
      placeJob(job, with);
      check.look(job, marks, report);
      report.throwIfAny();
      return {std::move(job)};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadConfig) throw;
      return {std::nullopt, report.empty() ? error.message() : mistakesText(report)};
    }
  };
}

// A file without a cluster runs on the one of TF_CONFIG, where that is set: as the first override,
// which the others change, and which goes to the tasks.
void takeTfConfig(Options& options) {
  const auto replaces = [](const std::string& each) { return each.starts_with("cluster="); };
  if (std::any_of(options.overrides.begin(), options.overrides.end(), replaces) ||
      cluster::namesCluster(options.cluster_file))
    return;
  const std::optional<cluster::TfConfig> tf = cluster::tfConfigOfEnvironment();
  if (!tf || tf->worker.empty()) return;
  DTF_CHECK(!options.cluster_file.empty());
  options.overrides.insert(options.overrides.begin(), tf->setting());
  if (options.verbosity == Verbosity::kQuiet) return;
  printBounded(
      STDERR_FILENO,
      fmt::format("dtf-launch: the file names no cluster: it is TF_CONFIG's, of {} and {}\n",
                  tf->ps.empty() ? "no ps" : std::to_string(tf->ps.size()) + " ps",
                  amountText(tf->worker.size(), "worker")));
}

// Returns a text on a choice that the run directory keeps, or that was made now.
std::string placementText(const KeptPlacement& choice, const cluster::JobSpec& job, bool is_kept) {
  return "placement: " + choice.text +
         (is_kept ? ", kept in " + (job.run_dir / kPlacementFile).string() : "") + "\n";
}

// Replaces `placement: auto` by the choice of the run directory or, of a job that starts, by one
// that is made now. Another verb shows a job without a choice as cut by bytes. Reads the job again
// with the choice, which also goes to the tasks, and checks it if it starts.
void settlePlacement(cluster::JobSpec& job, Options& options, Origin& origin, StartCheck& check) {
  if (!choosesPlacement(job)) return;
  const bool starts = options.verb == Verb::kUp;
  std::optional<KeptPlacement> choice;
  try {
    if (!options.fresh && !options.measure) choice = keptPlacement(job);
  } catch (const Error&) {
    if (starts) throw;
  }
  const bool is_kept = choice.has_value();
  if (!choice && starts && !options.dry_run)
    choice = measurePlacement(job, options, origin, readerOf(options, check));
  if (!choice && (options.verb == Verb::kExplain || options.dry_run) && !options.measure)
    printBounded(STDERR_FILENO,
                 "dtf-launch: 'placement: auto' is chosen when the run begins (explain --measure); "
                 "this shows variables that are cut by bytes over the file's hosts\n");
  if (!choice) return;
  if (starts && options.verbosity != Verbosity::kQuiet)
    printBounded(STDERR_FILENO, "dtf-launch: " + placementText(*choice, job, is_kept));
  origin.exchange_seconds = choice->exchange_seconds;
  if (!is_kept)
    origin.keep_placement = [kept = *choice, run_dir = job.run_dir]() -> std::string {
      try {
        keepPlacement(run_dir, kept);
        return "";
      } catch (const Error& error) {
        return "warning: a resumed run will measure its links again: " + error.message();
      }
    };
  options.overrides.insert(options.overrides.end(), choice->overrides.begin(),
                           choice->overrides.end());
  yaml::Report report;
  cluster::JobMarks marks;
  job = loadJob(options, report, marks);
  placeJob(job, options);
  if (starts) check.pass(job, marks, report);
}

// Runs a verb without a job. nullopt: the verb needs one.
std::optional<int> runWithoutJob(const Options& options) {
  if (options.answer) {
    print(*options.answer);
    return 0;
  }
  if (options.verb == Verb::kKeys) return keys(options);
  if (options.verb == Verb::kInit) return initJob(options);
  if (options.verb == Verb::kRuns) return runs(options);
  if (options.verb == Verb::kCompare) return compare(options);
  return std::nullopt;
}

int run(Options options) {
  // For messages that no console writes, and for the programs that this one starts.
  if (options.color == ColorMode::kNever) ::setenv("NO_COLOR", "1", 1);
  if (const std::optional<int> status = runWithoutJob(options)) return *status;
  takeTfConfig(options);
  yaml::Report report;
  cluster::JobMarks marks;
  cluster::JobSpec job = loadJob(options, report, marks);
  ignoreSigpipe(job, options);
  placeJob(job, options);
  const net::Credentials credentials = credentialsOf(job, options.verb);
  const bool writes =
      options.verb == Verb::kUp || options.verb == Verb::kServe || options.verb == Verb::kImport;
  if (writes && !options.dry_run) checkOwner(job.run_dir, options.as_root);
  Origin origin{ownFolder(), report.files(), credentials};
  const bool checks_first = options.verb == Verb::kUp || options.verb == Verb::kExplain;
  StartCheck start_check(options);
  if (checks_first) start_check.pass(job, marks, report);
  settlePlacement(job, options, origin, start_check);
  switch (options.verb) {
    case Verb::kUp:
      return up(job, options, origin);
    case Verb::kSubmit:
      start_check.pass(job, marks, report);
      return submit(job, options, {ownFolder(), {}});
    case Verb::kCheck: {
      const train::JobSize size = start_check.pass(job, marks, report);
      check(job, size, checkData(job, report), options);
      return options.network ? checkNetwork(job, options, {ownFolder(), {}}) : 0;
    }
    case Verb::kExplain:
      return options.measure
                 ? explainPlacement(job, options, origin, readerOf(options, start_check))
                 : explain(job, options);
    case Verb::kServe:
      checkKeys(job, marks.keys, hostLookUp(), report);
      report.throwIfAny();
      return serve(job, options, {ownFolder(), report.files()});
    case Verb::kGraph:
      return graph(job, options, credentials);
    case Verb::kStatus:
      return status(job, options, credentials);
    case Verb::kLogs:
      return logs(job, options);
    case Verb::kAttach:
      return attach(job, options, credentials);
    case Verb::kStop:
      return stop(job, options, credentials);
    case Verb::kEval:
      return eval(job, options);
    case Verb::kPredict:
      return predict(job, options);
    case Verb::kExport:
      return exportModel(job, options);
    case Verb::kImport:
      return importModel(job, options);
    case Verb::kInit:
    case Verb::kRuns:
    case Verb::kCompare:
    case Verb::kKeys:
      break;  // they have no job
  }
  return exitCode(ErrorCode::kInternal);
}

std::string asLines(const std::string& text) {
  return text + (text.ends_with('\n') ? "" : "\n");
}

// A mistake in a file starts with its place there, as compilers write it; any other with the
// program's name. `json`: on stdout too, for the program that reads it.
void report(const Error& error, bool json) {
  if (json)
    printBounded(STDOUT_FILENO, eventLine("error", {{"code", errorCodeName(error.code())},
                                                    {"exit_code", exitCode(error.code())},
                                                    {"message", error.message()}}));
  const char* const prefix = error.has(ErrorTrait::kHasPlace) ? "" : "dtf-launch: error: ";
  printBounded(STDERR_FILENO, prefix + asLines(error.message()));
}

}  // namespace

}  // namespace dtf::launcher

int main(int argc, char** argv) {
  using namespace dtf;
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` write() fails, and that names the file
  std::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would hide how programs end
  nameUncaughtShortages();
  markLaunch();
  launcher::openMissingStreams();
  log::initForTool("dtf-launch");
  const auto failed = [&](const Error& error) {
    launcher::report(error, launcher::wantsJson(argc, argv));
    return exitCode(error.code());
  };
  try {
    return launcher::run(launcher::parseOptions(argc, argv));
  } catch (const Error& error) {
    return failed(error);
  } catch (const std::exception&) {
    const Error error = net::currentError();
    if (error.code() != ErrorCode::kInternal) return failed(error);
    return failed(Error(error.code(), "internal error: " + error.message()));
  }
}
