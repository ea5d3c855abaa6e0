#include "launcher/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/command_line.h"
#include "common/model_files/weight_names.h"
#include "launcher/option_table.h"
#include "launcher/verbs.h"

namespace dtf::launcher {

namespace {

using cluster::CommandLine;

constexpr uint32_t kDaysMax = 3650;
constexpr size_t kComparedMax = 26;  // each run has a letter
constexpr size_t kWordsMax = 2050;   // a verb, a file, every task of the largest cluster

std::string helpText() {
  std::string verbs;
  for (const VerbInfo& info : allVerbs())
    verbs += fmt::format("  dtf-launch {:<35}  {}\n", fmt::format("{} {}", info.name, info.words),
                         info.what);
  return "dtf-launch: runs all tasks of a job, here, over ssh or by Slurm, until it ends.\n\n" +
         verbs +
         fmt::format("  dtf-launch {:<35}  {}\n\nOptions:\n", "help [VERB]",
                     "this text; of a verb") +
         cluster::optionHelp(optionDefs()) +
         R"(
Examples:
  dtf-launch configs/clusters/local.yaml
  dtf-launch local.yaml --set train.steps=200 --run-dir /tmp/try
  dtf-launch local.yaml --dry-run
  dtf-launch local.yaml --json > events.jsonl
  dtf-launch logs -f local.yaml worker/1
  dtf-launch runs

Results go to stdout, logs and progress to stderr. Ctrl-C stops the job; twice, at once.
Exit codes: 0 done; 1 training failed; 2 usage; 65 bad data; 66 a queue is closed; 69 host, port or
peer unavailable; 70 internal error; 73 cannot write; 77 permission; 78 bad configuration;
124 deadline; 128+n ended by signal n. status: 0 running, 3 not. stop: 0 saved or done, 3 nothing
ran, else the job's.
)";
}

// argv with the letters of this program written out; CommandLine knows those that all have.
// explain's --graph names no file, as that of `graph` does.
std::vector<std::string> withoutLetters(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words)
    for (const LaunchOption& option : launchOptions())
      if (!word.empty() && word == option.letter) word = fmt::format("--{}", option.name);
  const bool explains = argc > 1 && words[1] == "explain";
  for (std::string& word : words)
    if (explains && word == "--graph") word = "--parts";
  return words;
}

// "'down' is no verb and no file: did you mean 'stop'?"
[[noreturn]] void failVerb(const CommandLine& line, const std::string& word) {
  const std::string near = verbNear(word);
  line.fail("'" + word + "' is no verb, and no file of a job" +
            (near.empty() ? "" : " - did you mean 'dtf-launch " + near + "'?"));
}

// A word that looks like no file, and is none; a folder named `train` is no job.
bool isNoFile(const std::string& word) {
  std::error_code ignored;
  return word.find_first_of("./") == std::string::npos &&
         (!std::filesystem::exists(word, ignored) || std::filesystem::is_directory(word, ignored));
}

void refuseOfJobs(const CommandLine& line, std::string_view verb) {
  for (const char* name : {"set", "run-dir", "keys", "insecure"})
    if (line.has(name))
      line.fail(fmt::format("--{} is for jobs, not for the verb '{}'", name, verb));
}

// keys ACTION DIR [TASK...]
void readKeyWords(const CommandLine& line, const std::vector<std::string>& words,
                  Options& options) {
  const std::vector<std::string_view> actions = {"init", "issue", "renew", "show"};
  const std::string action = words.empty() ? "" : words.front();
  if (std::find(actions.begin(), actions.end(), action) == actions.end())
    line.fail("keys expects init, issue, renew or show" +
              (action.empty() ? std::string() : ", got '" + action + "'"));
  if (words.size() < 2) line.fail("keys " + action + ": the folder of the keys is missing");
  options.key_action = action;
  options.key_folder = words[1];
  options.tasks.assign(words.begin() + 2, words.end());
  if (!options.tasks.empty() && action != "issue")
    line.fail("unexpected argument '" + options.tasks.front() +
              "': keys issue makes keys for tasks");
  if (line.has("job") && action != "init") line.fail("--job is for 'keys init'");
  if (line.has("cluster") && action != "init" && action != "issue")
    line.fail("--cluster is for 'keys init' and 'keys issue'");
  if (line.has("days") && action == "show")
    line.fail("--days is for 'keys init', 'keys issue' and 'keys renew'");
  refuseOfJobs(line, "keys");
}

// runs [FOLDER...], compare RUN RUN...
void readRunWords(const CommandLine& line, const std::vector<std::string>& words,
                  Options& options) {
  options.runs = words;
  if (options.verb == Verb::kCompare && (words.size() < 2 || words.size() > kComparedMax))
    line.fail(fmt::format("compare expects 2 to {} runs, got {}: 'dtf-launch runs' lists them",
                          kComparedMax, words.size()));
  refuseOfJobs(line, nameOf(options.verb));
}

// [VERB] CLUSTER.yaml [TASK...]
void readWords(const CommandLine& line, Options& options) {
  std::vector<std::string> words = line.positionals();
  if (!words.empty()) {
    if (const VerbInfo* info = verbNamed(words.front())) {
      options.verb = info->verb;
      words.erase(words.begin());
    } else if (isNoFile(words.front())) {
      failVerb(line, words.front());
    }
  }
  if (options.verb == Verb::kKeys) return readKeyWords(line, words, options);
  if (options.verb == Verb::kRuns || options.verb == Verb::kCompare)
    return readRunWords(line, words, options);
  if (options.verb == Verb::kInit) {
    if (words.size() > 1 || (!words.empty() && line.has("data")))
      line.fail("unexpected argument '" + words.back() + "': init describes one set of data");
    if (!words.empty()) options.data = words.front();
    return refuseOfJobs(line, "init");
  }
  if (words.empty()) line.fail("which job? the name of its file is missing");
  options.cluster_file = words.front();
  options.tasks.assign(words.begin() + 1, words.end());
  if (!options.tasks.empty() && options.verb != Verb::kLogs)
    line.fail("unexpected argument '" + options.tasks.front() + "'");
}

// `help`, `help VERB`, and --help after a verb.
std::optional<std::string> helpAnswer(const CommandLine& line) {
  std::vector<std::string> words = line.positionals();
  const bool asked = !words.empty() && words.front() == "help";
  if (asked) words.erase(words.begin());
  if (!asked && !line.has("help")) return line.answer("");
  if (words.empty()) return helpText();
  if (const VerbInfo* info = verbNamed(words.front())) return helpOf(*info);
  if (asked) failVerb(line, words.front());
  return helpText();
}

std::optional<std::filesystem::path> folderOf(const CommandLine& line, std::string_view name) {
  const std::optional<std::string> text = line.value(name);
  if (!text) return std::nullopt;
  return line.folder(name, *text);
}

std::optional<std::filesystem::path> fileOf(const CommandLine& line, std::string_view name) {
  const std::optional<std::string> text = line.value(name);
  if (text && text->empty()) line.fail(fmt::format("--{} expects a file", name));
  return text;
}

std::optional<model_files::WeightLayout> layoutOf(const CommandLine& line) {
  const std::optional<std::string> text = line.value("layout");
  if (!text) return std::nullopt;
  if (*text == "dtf") return model_files::WeightLayout::kDtf;
  if (*text == "pytorch") return model_files::WeightLayout::kPyTorch;
  line.fail("--layout expects dtf or pytorch, got '" + *text + "'");
}

model_files::NameRules namesOf(const CommandLine& line) {
  model_files::NameRules rules{line.value("prefix").value_or(""), {}};
  if (line.has("prefix") && rules.prefix.empty()) line.fail("--prefix expects a prefix");
  for (const std::string& text : line.values("rename"))
    rules.renames.push_back(model_files::parseRename(text));
  return rules;
}

// An option that another verb would ignore is a mistake.
void checkFits(const CommandLine& line, const Options& options) {
  for (const LaunchOption& option : launchOptions()) {
    if (!line.has(option.name) || option.isFor(options.verb)) continue;
    std::vector<std::string> names;
    for (const OptionUse& use : option.uses)
      for (const VerbInfo& info : allVerbs())
        if (use.verbs.contains(info.verb)) names.push_back(fmt::format("'{}'", info.name));
    line.fail(fmt::format("--{} is for the {} {}", option.name, names.size() > 1 ? "verbs" : "verb",
                          join(names, ", ")));
  }
  if (line.has("quiet") && line.has("verbose"))
    line.fail("--quiet and --verbose exclude each other");
  if (options.list && options.follow) line.fail("--list and --follow exclude each other");
  if (options.best && line.has("checkpoint"))
    line.fail("--best and --checkpoint exclude each other");
  if (options.dot && (!(options.dry_run || options.parts) || options.json))
    line.fail("--dot is for graph --dry-run and explain --graph, without --json");
  if (options.timeline && options.dry_run)
    line.fail("--timeline and --dry-run exclude each other: nothing runs, so nothing is recorded");
  if (options.timeline_step && !options.timeline)
    line.fail("--timeline-step is for --timeline FILE, which is missing");
  if (options.timeline_step == 0u) line.fail("--timeline-step must be 1 or more");
  if (options.measure && options.parts) line.fail("--measure and --graph exclude each other");
  if (options.detach && options.dry_run) line.fail("--detach and --dry-run exclude each other");
}

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  const std::vector<std::string> long_words = withoutLetters(argc, argv);
  std::vector<const char*> words;
  for (const std::string& word : long_words) words.push_back(word.c_str());
  const CommandLine line("dtf-launch", optionDefs(), kWordsMax, argc, words.data());
  Options options;
  options.answer = helpAnswer(line);
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
  options.detach = line.has("detach");
  options.follow = line.has("follow");
  options.list = line.has("list");
  options.as_root = line.has("as-root");
  options.network = line.has("network");
  options.measure = line.has("measure");
  options.verbosity = line.has("quiet")     ? Verbosity::kQuiet
                      : line.has("verbose") ? Verbosity::kVerbose
                                            : Verbosity::kNormal;
  const std::string color = line.value("color").value_or("auto");
  if (!parseColorMode(color, options.color))
    line.fail("--color expects auto, always or never, got '" + color + "'");
  options.checkpoint = line.value("checkpoint").value_or("");
  options.best = line.has("best");
  options.report = line.has("report");
  options.input = fileOf(line, "input");
  options.keep = line.values("keep");
  options.output = fileOf(line, "output");
  if (line.has("data")) options.data = fileOf(line, "data");
  options.target = line.value("target");
  options.features = line.value("features");
  options.force = line.has("force");
  options.to = fileOf(line, "to");
  options.from = fileOf(line, "from");
  options.layout = layoutOf(line);
  options.names = namesOf(line);
  options.graph = fileOf(line, "graph");
  options.timeline = fileOf(line, "timeline");
  options.timeline_step = line.index("timeline-step");
  options.dot = line.has("dot");
  options.parts = line.has("parts");
  options.job = line.value("job");
  options.cluster = fileOf(line, "cluster");
  options.days = line.index("days");
  if (options.days && (*options.days < 1 || *options.days > kDaysMax))
    line.fail(fmt::format("--days must be from 1 to {}", kDaysMax));
  checkFits(line, options);
  return options;
}

bool wantsJson(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* word) { return std::string_view(word) == "--json"; });
}

}  // namespace dtf::launcher
