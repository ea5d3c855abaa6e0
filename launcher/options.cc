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
#include "launcher/verbs.h"

namespace dtf::launcher {

namespace {

using cluster::CommandLine;
using cluster::OptionDef;

constexpr uint32_t kDaysMax = 3650;
constexpr size_t kComparedMax = 26;  // each run has a letter
constexpr size_t kWordsMax = 2050;   // a verb, a file, every task of the largest cluster

constexpr OptionDef kLaunchOptions[] = {
    {"fresh", "",
     "up: start anew; old checkpoints become checkpoints.old-N in the run directory; graph: drop "
     "the variables that other graphs left on the tasks"},
    {"detach", "", "-d: up, serve: return once every task is ready; the job goes on"},
    {"follow", "", "-f: logs: go on as long as the job runs"},
    {"as-root", "",
     "up, serve, import, stop: use the run directory of another user; root owns the new files in "
     "it"},
    {"network", "",
     "check: measure every pair of hosts at every address, and report the slow ones"},
    {"measure", "",
     "explain: measure the links between the hosts, and print the placement that 'placement: auto' "
     "chooses, and why"},
    {"checkpoint", "STEP|DIR",
     "eval, predict, export: use this checkpoint, not the newest whole one"},
    {"best", "",
     "eval, predict, export: use the checkpoint of the best evaluation (checkpoint.keep_best)"},
    {"report", "",
     "eval: print precision, recall, F1 and support of each class, and the confusion matrix"},
    {"input", "FILE",
     "predict: IDX, .npy, an image or a folder of images, or .csv or .npz like the job's; default: "
     "the job's evaluation data"},
    {"keep", "COLUMNS",
     "predict: copy these columns of the input, a table, into each line, as id,name; may be "
     "repeated",
     true},
    {"output", "FILE",
     "-o: predict: write FILE.txt, .jsonl, .csv or .npy, default text on stdout; init: the job's "
     "file, - is stdout"},
    {"data", "FILE", "init: a table in text, .npz, .npy, or a folder of images"},
    {"target", "NAME", "init: the column or array to learn; default: y, or the last column"},
    {"features", "NAME", "init: the array of an .npz to learn from; default: x"},
    {"force", "", "init: replace an existing file"},
    {"to", "FILE", "export: FILE.safetensors, FILE.npz or FILE.onnx"},
    {"from", "FILE", "import: FILE.safetensors, FILE.npz or FILE.onnx"},
    {"layout", "dtf|pytorch",
     "import: layout of matrices, filters and flattened images in a FILE.safetensors or FILE.npz "
     "that dtf didn't write"},
    {"prefix", "PREFIX",
     "import: take PREFIX off the names in FILE, as backbone; tensors without it aren't used"},
    {"rename", "FROM=TO",
     "import: read the tensor FROM as TO, or all that begin with FROM if it ends in '.', as "
     "encoder.=body.; may be repeated",
     true},
    {"graph", "FILE", "graph: the ops, and the ones to run"},
    {"timeline", "FILE",
     "graph: record one step of every task, its ops, waits and sends, in FILE.json for "
     "ui.perfetto.dev"},
    {"timeline-step", "N", "graph: the step of --timeline; default 2, the first after the warm-up"},
    {"dry-run", "",
     "up, serve: print the command of each task, and start none; submit: print the script; graph: "
     "print where each op runs, the tasks' parts of a step, and the tensors between them"},
    {"dot", "",
     "graph --dry-run, explain --graph: for Graphviz: ... --dot | dot -Tsvg -o step.svg"},
    {"parts", "",
     "explain: print the graph of a training step, its devices, and the bytes from and to each ps; "
     "explain --graph is the same"},
    {"job", "NAME", "keys init: name of the job that uses the keys"},
    {"cluster", "FILE", "keys init, issue: keys for the job and all tasks of this CLUSTER.yaml"},
    {"days", "N", "keys init, issue, renew: days until the keys expire; default 365"},
    {"json", "",
     "print JSON lines on stdout; the last line of up is the summary; up -d prints one line"},
    {"quiet", "", "-q: print only warnings, errors and the result"},
    {"verbose", "", "-v: print also every log line of the tasks"},
    {"color", "WHEN", "auto (default; heeds NO_COLOR), always or never"},
    {"bin-dir", "DIR", "folder of psd and workerd (default: beside dtf-launch, then PATH)"},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLetters = {
    {{"-d", "--detach"},
     {"-f", "--follow"},
     {"-o", "--output"},
     {"-q", "--quiet"},
     {"-v", "--verbose"}}};

std::string helpText(const std::vector<OptionDef>& options) {
  std::string verbs;
  for (const VerbInfo& info : allVerbs())
    verbs += fmt::format("  dtf-launch {:<35}  {}\n", fmt::format("{} {}", info.name, info.words),
                         info.what);
  return "dtf-launch: runs all tasks of a job, here, over ssh or by Slurm, until it ends.\n\n" +
         verbs +
         fmt::format("  dtf-launch {:<35}  {}\n\nOptions:\n", "help [VERB]",
                     "this text; of a verb") +
         cluster::optionHelp(options) +
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
std::vector<const char*> withoutLetters(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  for (const char*& word : words)
    for (const auto& [letter, name] : kLetters)
      if (word == letter) word = name.data();
  const bool explains = argc > 1 && words[1] == std::string_view("explain");
  for (const char*& word : words)
    if (explains && word == std::string_view("--graph")) word = "--parts";
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
    if (!words.empty())
      line.fail("unexpected argument '" + words.front() + "': name the data with --data");
    return refuseOfJobs(line, "init");
  }
  if (words.empty()) line.fail("which job? the name of its file is missing");
  options.cluster_file = words.front();
  options.tasks.assign(words.begin() + 1, words.end());
  if (!options.tasks.empty() && options.verb != Verb::kLogs)
    line.fail("unexpected argument '" + options.tasks.front() + "'");
}

// `help`, `help VERB`, and --help after a verb.
std::optional<std::string> helpAnswer(const CommandLine& line, const std::vector<OptionDef>& defs) {
  std::vector<std::string> words = line.positionals();
  const bool asked = !words.empty() && words.front() == "help";
  if (asked) words.erase(words.begin());
  if (!asked && !line.has("help")) return line.answer("");
  if (words.empty()) return helpText(defs);
  if (const VerbInfo* info = verbNamed(words.front())) return helpOf(*info);
  if (asked) failVerb(line, words.front());
  return helpText(defs);
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
  const std::pair<const char*, std::vector<Verb>> only[] = {
      {"detach", {Verb::kUp, Verb::kServe}},
      {"dry-run", {Verb::kUp, Verb::kServe, Verb::kSubmit, Verb::kGraph}},
      {"fresh", {Verb::kUp, Verb::kGraph}},
      {"follow", {Verb::kLogs}},
      {"as-root", {Verb::kUp, Verb::kServe, Verb::kImport, Verb::kStop}},
      {"network", {Verb::kCheck}},
      {"measure", {Verb::kExplain}},
      {"checkpoint", {Verb::kEval, Verb::kPredict, Verb::kExport}},
      {"best", {Verb::kEval, Verb::kPredict, Verb::kExport}},
      {"report", {Verb::kEval}},
      {"to", {Verb::kExport}},
      {"from", {Verb::kImport}},
      {"layout", {Verb::kImport}},
      {"prefix", {Verb::kImport}},
      {"rename", {Verb::kImport}},
      {"graph", {Verb::kGraph}},
      {"timeline", {Verb::kGraph}},
      {"timeline-step", {Verb::kGraph}},
      {"dot", {Verb::kGraph, Verb::kExplain}},
      {"parts", {Verb::kExplain}},
      {"input", {Verb::kPredict}},
      {"keep", {Verb::kPredict}},
      {"output", {Verb::kPredict, Verb::kInit}},
      {"data", {Verb::kInit}},
      {"target", {Verb::kInit}},
      {"features", {Verb::kInit}},
      {"force", {Verb::kInit}},
      {"job", {Verb::kKeys}},
      {"cluster", {Verb::kKeys}},
      {"days", {Verb::kKeys}}};
  for (const auto& [name, verbs] : only) {
    if (!line.has(name) || std::find(verbs.begin(), verbs.end(), options.verb) != verbs.end())
      continue;
    std::string names;
    for (const Verb verb : verbs)
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", nameOf(verb));
    line.fail(
        fmt::format("--{} is for the {} {}", name, verbs.size() > 1 ? "verbs" : "verb", names));
  }
  if (line.has("quiet") && line.has("verbose"))
    line.fail("--quiet and --verbose exclude each other");
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
  std::vector<OptionDef> defs(std::begin(kLaunchOptions), std::end(kLaunchOptions));
  defs.insert(defs.end(), cluster::commonOptions().begin(), cluster::commonOptions().end());
  const std::vector<const char*> words = withoutLetters(argc, argv);
  const CommandLine line("dtf-launch", defs, kWordsMax, argc, words.data());
  Options options;
  options.answer = helpAnswer(line, defs);
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
  options.data = fileOf(line, "data");
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
