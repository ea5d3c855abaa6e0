#pragma once

// The command line of dtf-launch.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/model_files/name_rules.h"
#include "common/model_files/weight_layout.h"
#include "launcher/console.h"

namespace dtf::launcher {

enum class Verb : uint8_t {
  kUp,
  kInit,
  kSubmit,
  kCheck,
  kExplain,
  kGraph,
  kServe,
  kRuns,
  kCompare,
  kStatus,
  kAttach,
  kLogs,
  kStop,
  kEval,
  kPredict,
  kExport,
  kImport,
  kKeys
};

struct Options {
  // help, --help, --help-config or --version: write this to stdout and exit 0; the rest is not set.
  std::optional<std::string> answer;

  Verb verb = Verb::kUp;
  std::filesystem::path cluster_file;
  // logs: of these ("worker/1"), empty: of all; keys: for these
  std::vector<std::string> tasks;
  std::vector<std::string> runs;                 // runs: folders; compare: runs
  std::vector<std::string> overrides;            // --set, in their order
  std::optional<std::filesystem::path> run_dir;  // instead of the file's
  std::optional<std::filesystem::path> bin_dir;  // where psd and workerd are
  std::optional<std::string> log_level;          // of the tasks
  ColorMode color = ColorMode::kAuto;
  bool list = false;
  bool fresh = false;
  Verbosity verbosity = Verbosity::kNormal;
  bool dry_run = false;
  bool network = false;  // check: measure what is between the hosts, too
  bool measure = false;  // explain: the links between the hosts, and what placement: auto chooses
  bool json = false;
  bool detach = false;   // up, serve: return when every task is ready
  bool follow = false;   // logs: as long as the job runs
  bool as_root = false;  // up, serve, import, stop: in a run directory of another user

  // eval, predict, export: a step or a folder; empty: the newest
  std::string checkpoint;
  bool best = false;    // eval, predict, export: by the evaluations, in place of the newest
  bool report = false;  // eval: figures of each class
  std::optional<std::filesystem::path> input;   // predict: examples
  std::vector<std::string> keep;                // predict: columns of the input, comma-separated
  std::optional<std::filesystem::path> output;  // predict, init: instead of stdout, NAME.yaml
  std::optional<std::filesystem::path> data;    // init
  std::optional<std::string> target;            // init: the column or array to learn
  std::optional<std::string> features;          // init: the array to learn from
  bool force = false;                           // init: replace a file
  std::optional<std::filesystem::path> to;      // export
  std::optional<std::filesystem::path> from;    // import
  // import: how the weights lie
  std::optional<model_files::WeightLayout> layout;
  model_files::NameRules names;                   // import: --prefix, --rename
  std::optional<std::filesystem::path> graph;     // graph
  std::optional<std::filesystem::path> timeline;  // graph: of one step
  std::optional<uint32_t> timeline_step;
  bool dot = false;    // graph, explain
  bool parts = false;  // explain: the graph of a step

  std::string key_action;                        // keys: init, issue, renew or show
  std::filesystem::path key_folder;              // keys
  std::optional<std::string> job;                // keys init
  std::optional<std::filesystem::path> cluster;  // keys init, issue: for all of its tasks
  std::optional<uint32_t> days;                  // keys init, issue, renew: how long they are good
};

// Errors: kUsage, saying what is wrong and how to read the help.
Options parseOptions(int argc, const char* const* argv);

// Whether --json was asked for, also on a command line that can't be parsed: its error is JSON too.
bool wantsJson(int argc, const char* const* argv);

}  // namespace dtf::launcher
