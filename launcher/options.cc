#include "launcher/options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cluster/command_line.h"

namespace dtf::launcher {

namespace {

using cluster::CommandLine;
using cluster::OptionDef;

constexpr size_t kWordsMax = 2050;  // a verb, a file, every task of the largest cluster

constexpr OptionDef kLaunchOptions[] = {
    {"fresh", "", "up: start anew; old checkpoints become checkpoints.old-N in the run directory"},
    {"dry-run", "", "print the command of each task, and start none"},
    {"json", "", "JSON lines on stdout, the summary as the last one"},
    {"color", "WHEN", "auto (default; heeds NO_COLOR), always or never"},
    {"bin-dir", "DIR", "where psd and workerd are (default: beside dtf-launch, then PATH)"},
};

constexpr std::array<std::pair<std::string_view, Verb>, 5> kVerbs = {{{"up", Verb::kUp},
                                                                      {"check", Verb::kCheck},
                                                                      {"status", Verb::kStatus},
                                                                      {"logs", Verb::kLogs},
                                                                      {"stop", Verb::kStop}}};

std::string helpText(const std::vector<OptionDef>& options) {
  return R"(dtf-launch: runs all tasks of a job on this host, until it ends.

  dtf-launch [up] CLUSTER.yaml [OPTION...]  run the job
  dtf-launch check CLUSTER.yaml             check model, data and memory; list the tasks
  dtf-launch status CLUSTER.yaml            is the job running, and which of its tasks
  dtf-launch logs CLUSTER.yaml [TASK...]    print the logs of the last run
  dtf-launch stop CLUSTER.yaml              end a running job

Options:
)" + cluster::optionHelp(options) +
         R"(
Examples:
  dtf-launch configs/clusters/local.yaml
  dtf-launch local.yaml --set train.steps=200 --run-dir /tmp/try
  dtf-launch local.yaml --dry-run
  dtf-launch local.yaml --json > events.jsonl
  dtf-launch logs local.yaml worker/1

Results go to stdout, logs and progress to stderr. Ctrl-C stops the job; twice, at once.
Exit codes: 0 done; 1 training failed; 2 usage; 65 bad data; 69 host, port or peer unavailable;
70 internal error; 73 cannot write; 77 permission; 78 bad configuration; 124 deadline; 128+n
ended by signal n. status: 0 running, 3 not.
)";
}

// [up|check|status|logs|stop] CLUSTER.yaml [TASK...]
void readWords(const CommandLine& line, Options& options) {
  std::vector<std::string> words = line.positionals();
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&words](const auto& each) {
    return !words.empty() && each.first == words.front();
  });
  if (verb != kVerbs.end()) {
    options.verb = verb->second;
    words.erase(words.begin());
  }
  if (words.empty()) line.fail("which job? the name of a CLUSTER.yaml is missing");
  options.cluster_file = words.front();
  options.tasks.assign(words.begin() + 1, words.end());
  if (options.tasks.empty() || options.verb == Verb::kLogs) return;
  std::vector<std::string_view> verbs;
  for (const auto& each : kVerbs) verbs.push_back(each.first);
  const std::string near = nearestWord(words.front(), verbs);
  line.fail("unexpected argument '" + options.tasks.front() + "'" +
            (near.empty() ? "" : " - is '" + words.front() + "' the verb '" + near + "'?"));
}

std::optional<std::filesystem::path> folderOf(const CommandLine& line, std::string_view name) {
  const std::optional<std::string> text = line.value(name);
  if (!text) return std::nullopt;
  return line.folder(name, *text);
}

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  std::vector<OptionDef> defs(std::begin(kLaunchOptions), std::end(kLaunchOptions));
  defs.insert(defs.end(), cluster::commonOptions().begin(), cluster::commonOptions().end());
  const CommandLine line("dtf-launch", defs, kWordsMax, argc, argv);
  Options options;
  options.answer = line.answer(helpText(defs));
  if (options.answer) return options;
  readWords(line, options);
  line.logLevel();  // a bad one is refused here, not by every task
  options.log_level = line.value("log-level");
  options.overrides = line.overrides();
  options.run_dir = folderOf(line, "run-dir");
  options.bin_dir = folderOf(line, "bin-dir");
  options.fresh = line.has("fresh");
  options.dry_run = line.has("dry-run");
  options.json = line.has("json");
  const std::string color = line.value("color").value_or("auto");
  if (!parseColorMode(color, options.color))
    line.fail("--color expects auto, always or never, got '" + color + "'");
  if (options.fresh && options.verb != Verb::kUp) line.fail("--fresh is for the verb 'up'");
  if (options.dry_run && options.verb != Verb::kUp) line.fail("--dry-run is for the verb 'up'");
  return options;
}

}  // namespace dtf::launcher
