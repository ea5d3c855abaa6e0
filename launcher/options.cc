#include "launcher/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/command_line.h"

namespace dtf::launcher {

namespace {

using cluster::CommandLine;
using cluster::OptionDef;

constexpr uint32_t kDaysMax = 3650;
constexpr size_t kWordsMax = 2050;  // a verb, a file, every task of the largest cluster

constexpr OptionDef kLaunchOptions[] = {
    {"fresh", "",
     "up: start anew; old checkpoints become checkpoints.old-N in the run directory; graph: drop "
     "the variables that other graphs left on the tasks"},
    {"detach", "", "-d: up, serve: return once every task is ready; the job goes on"},
    {"follow", "", "-f: logs: go on as long as the job runs"},
    {"as-root", "",
     "up, serve, import, stop: in a run directory of another user, whose files are then root's"},
    {"network", "",
     "check: measure every pair of hosts and every address of each, and say what is slow"},
    {"checkpoint", "STEP|DIR",
     "eval, predict, export: this one, not the newest whole one of the job"},
    {"best", "",
     "eval, predict, export: the checkpoint of the best evaluation, by checkpoint.keep_best of the "
     "file"},
    {"input", "FILE",
     "predict: IDX, .npy, an image or a folder of them, or .csv or .npz as the job's; default: "
     "its evaluation data"},
    {"output", "FILE",
     "-o: predict: write FILE.txt, .jsonl, .csv or .npy, default text on stdout; init: the job's "
     "file, - is stdout"},
    {"data", "FILE", "init: a table in text, .npz, .npy, or a folder of images"},
    {"target", "NAME", "init: the column or array to learn; default: y, or the last column"},
    {"features", "NAME", "init: the array of an .npz to learn from; default: x"},
    {"force", "", "init: replace the file that is there"},
    {"to", "FILE", "export: FILE.safetensors, FILE.npz or FILE.onnx"},
    {"from", "FILE", "import: FILE.safetensors, FILE.npz or FILE.onnx"},
    {"layout", "dtf|pytorch",
     "import: how FILE.safetensors or FILE.npz holds matrices, filters and flattened images, where "
     "dtf didn't write it"},
    {"graph", "FILE", "graph: the ops, and what to run of them"},
    {"timeline", "FILE",
     "graph: what every task did in one step, op by op, what it waited for and sent, as FILE.json "
     "for ui.perfetto.dev"},
    {"timeline-step", "N", "graph: which step --timeline shows; default 2, the first that is warm"},
    {"dry-run", "",
     "up, serve: print the command of each task, and start none; submit: print the script; "
     "graph: where each op runs, the tasks' parts of a step, what they send each other"},
    {"dot", "",
     "graph --dry-run, explain --graph: for Graphviz: ... --dot | dot -Tsvg -o step.svg"},
    {"parts", "",
     "explain: the graph of a training step, its devices, and what each ps sends and is sent; "
     "explain --graph is the same"},
    {"job", "NAME", "keys init: whose keys they are"},
    {"cluster", "FILE", "keys init, issue: keys for the job and all tasks of this CLUSTER.yaml"},
    {"days", "N", "keys init, issue, renew: how long the keys are good; default 365"},
    {"json", "", "JSON lines on stdout; of up the last one is the summary, of up -d the only one"},
    {"quiet", "", "-q: only warnings, errors and the result"},
    {"verbose", "", "-v: every log line of the tasks too"},
    {"color", "WHEN", "auto (default; heeds NO_COLOR), always or never"},
    {"bin-dir", "DIR", "where psd and workerd are (default: beside dtf-launch, then PATH)"},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLetters = {
    {{"-d", "--detach"},
     {"-f", "--follow"},
     {"-o", "--output"},
     {"-q", "--quiet"},
     {"-v", "--verbose"}}};

struct VerbInfo {
  std::string_view name;
  Verb verb;
  std::string_view words;  // after the name
  std::string_view what;
  std::string_view more;  // for `help VERB`
};

constexpr VerbInfo kVerbs[] = {
    {"up", Verb::kUp, "CLUSTER.yaml [OPTION...]", "run the job; `up` may be left out",
     "Starts every task, watches them, and says how it went. Ctrl-C saves a checkpoint, unless "
     "the\n"
     "file has 'checkpoint: none', and ends the job; the same command then goes on from it. A job\n"
     "that is done is not started again: --fresh begins anew, more train.steps go on.\n"
     "With -d it returns once every task is ready, and the job goes on: see status, attach,\n"
     "stop.\n"},
    {"init", Verb::kInit, "--data FILE [--target NAME]", "write a job's file for data",
     "Looks at a table in text, an archive or array of NumPy, or a folder of images. NAME.yaml "
     "then\n"
     "trains as it is; its comments say what was found. -o FILE names the file (- is stdout), and\n"
     "--force replaces one that is there.\n"},
    {"submit", Verb::kSubmit, "CLUSTER.yaml", "have Slurm run the job: 'launch: {via: slurm}'",
     "Gives sbatch a script that runs `dtf-launch up` on the first of launch.nodes nodes, from\n"
     "where it starts the tasks on all of them, and prints Slurm's number of the job. --dry-run\n"
     "prints the script. Before the time limit (launch.time) the job saves and ends; submitted\n"
     "again, or by itself with launch.requeue, it goes on from there. Within an allocation\n"
     "(salloc, or a script of your own) use `up`.\n"},
    {"check", Verb::kCheck, "CLUSTER.yaml", "check model, data and memory; list the tasks",
     "Nothing is started. Data are read to their ends, as the workers will, but that of a folder\n"
     "the images are only counted. --network measures what is between the hosts, too: from each to "
     "every\n"
     "address of each other, bytes a second and round trips, by the programs and connections that\n"
     "a job has, over TLS where the file names keys. A pair below half of the best is a warning,\n"
     "and so is a host whose address in the file is on a slower interface than another one. It\n"
     "takes about a second for each row, rows of different hosts at the same time. Exit code 69:\n"
     "hosts that don't reach each other.\n"},
    {"explain", Verb::kExplain, "CLUSTER.yaml", "print the model layer by layer, and its placement",
     "Each layer with its output, parameters and floating-point operations, then which variable\n"
     "lies on which ps. Nothing is started. With --graph the graph of a training step instead:\n"
     "each op with its device and what it gives, and what passes between a worker and each ps;\n"
     "with --dot for Graphviz: ... --graph --dot | dot -Tsvg -o step.svg\n"},
    {"graph", Verb::kGraph, "CLUSTER.yaml --graph FILE", "run a graph of ops on tasks that serve",
     "The tasks of the file wait for it: see serve. Each op runs where its device says; variables\n"
     "are drawn from the graph's seed, its targets run in each step, and its fetches are printed.\n"
     "--dry-run prints where each op runs, and needs no tasks. --timeline FILE writes what every\n"
     "task did in the second step, or in --timeline-step N: its ops, its waits for tensors of "
     "other\n"
     "tasks and what it sent, as a Chrome trace: ui.perfetto.dev or chrome://tracing shows it.\n"},
    {"serve", Verb::kServe, "CLUSTER.yaml", "start tasks without a job: they wait for clients",
     "Each task serves whoever runs a graph on it: `dtf-launch graph`, or a program with libdtf\n"
     "(Session session(\"dtf://host:port\")). What the file says of training is not used.\n"
     "Variables live as long as their task; one that ends is started again, without them. Ctrl-C\n"
     "or stop ends all.\n"},
    {"status", Verb::kStatus, "CLUSTER.yaml", "how far the job is, or how it ended",
     "Finds the run of this file from any folder. Exit code 0: it runs; 3: it doesn't.\n"},
    {"attach", Verb::kAttach, "CLUSTER.yaml", "watch a running job; Ctrl-C leaves it running",
     "Ends with the job, and with its exit code.\n"},
    {"logs", Verb::kLogs, "CLUSTER.yaml [TASK...]", "print the logs of the last run, by time",
     "The lines of all tasks, or of those named (worker/1), merged by time. -f goes on as long as\n"
     "the job runs.\n"},
    {"stop", Verb::kStop, "CLUSTER.yaml", "save and end a running job",
     "Finds the run of this file from any folder, and waits until it has ended. Exit code 0: it\n"
     "was saved, or done; 3: nothing ran; else the job's, which ended unsaved.\n"},
    {"eval", Verb::kEval, "CLUSTER.yaml", "evaluate the newest checkpoint, without a cluster",
     "Loss and metrics over the job's evaluation data, as its own evaluations compute them, in\n"
     "this process alone; the job may run meanwhile. --checkpoint STEP or a checkpoint's folder\n"
     "names another one, --best that of the best evaluation (checkpoint: {keep_best: METRIC}).\n"},
    {"predict", Verb::kPredict, "CLUSTER.yaml", "what the newest checkpoint says of each example",
     "For each example of --input FILE, or of the job's evaluation data, its class and the\n"
     "model's outputs: probabilities where the loss has them. With --json one JSON object for\n"
     "each.\n"},
    {"export", Verb::kExport, "CLUSTER.yaml --to FILE",
     "the newest checkpoint as one file for others",
     "All variables, whole, without what the optimizer remembers: FILE.safetensors, FILE.npz\n"
     "(NumPy), or FILE.onnx (opset 17) with the whole model, its input's scaling included. What\n"
     "the model reads and gives is in the file's metadata.\n"},
    {"import", Verb::kImport, "CLUSTER.yaml --from FILE",
     "start the job from weights of another program",
     "Saves them as the checkpoint of step 0, which the job then goes on from. Variables are\n"
     "found by name and shape (\"conv1.weight\" is conv1/weights); what the file lacks is drawn "
     "as\n"
     "always. Says what was used, turned, drawn anew and not used. Shapes can't tell how a matrix\n"
     "lies: of a file that neither dtf nor an ONNX exporter wrote, --layout must. pytorch: "
     "matrices\n"
     "[units, inputs], filters [filters, channels, height, width], images flattened by channel;\n"
     "dtf: [inputs, units], [height, width, channels, filters], by position, as TensorFlow's.\n"},
    {"keys", Verb::kKeys, "init|issue|renew|show DIR",
     "make, renew and list the keys of a job: TLS",
     "init makes the job's CA in DIR, and a key for each task of --cluster FILE; issue DIR "
     "TASK...\n"
     "makes keys for more (ps/0, worker/1, or client: who asks and watches); renew makes all of\n"
     "DIR's keys anew, which running tasks use from their next connection on; show lists them. A\n"
     "cluster file uses them by 'keys: DIR'. Nobody but the CA needs DIR/ca-key.pem: keep it "
     "where\n"
     "no task runs.\n"},
};

// What other tools call it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 33> kSynonyms = {
    {{"load", "import"},   {"save", "export"},      {"convert", "export"}, {"evaluate", "eval"},
     {"infer", "predict"}, {"classify", "predict"}, {"test", "eval"},      {"down", "stop"},
     {"kill", "stop"},     {"cancel", "stop"},      {"ps", "status"},      {"ls", "status"},
     {"list", "status"},   {"top", "status"},       {"validate", "check"}, {"lint", "check"},
     {"verify", "check"},  {"describe", "explain"}, {"model", "explain"},  {"show", "explain"},
     {"run", "up"},        {"start", "up"},         {"launch", "up"},      {"resume", "up"},
     {"server", "serve"},  {"log", "logs"},         {"watch", "attach"},   {"key", "keys"},
     {"certs", "keys"},    {"sbatch", "submit"},    {"queue", "submit"},   {"new", "init"},
     {"create", "init"}}};

const VerbInfo* verbNamed(std::string_view name) {
  for (const VerbInfo& info : kVerbs)
    if (info.name == name) return &info;
  return nullptr;
}

std::string_view nameOf(Verb verb) {
  for (const VerbInfo& info : kVerbs)
    if (info.verb == verb) return info.name;
  DTF_CHECK_MSG(false, "a verb that the table lacks");
}

std::string helpText(const std::vector<OptionDef>& options) {
  std::string verbs;
  for (const VerbInfo& info : kVerbs)
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

Results go to stdout, logs and progress to stderr. Ctrl-C stops the job; twice, at once.
Exit codes: 0 done; 1 training failed; 2 usage; 65 bad data; 66 a queue is closed; 69 host, port or
peer unavailable; 70 internal error; 73 cannot write; 77 permission; 78 bad configuration;
124 deadline; 128+n ended by signal n. status: 0 running, 3 not. stop: 0 saved or done, 3 nothing
ran, else the job's.
)";
}

std::string helpOf(const VerbInfo& info) {
  return fmt::format("dtf-launch {} {}: {}\n\n{}{}All options: dtf-launch --help\n", info.name,
                     info.words, info.what, info.more, info.more.empty() ? "" : "\n");
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
  std::vector<std::string_view> verbs = {"help"};
  for (const VerbInfo& info : kVerbs) verbs.push_back(info.name);
  std::string near = nearestWord(word, verbs);
  for (const auto& [synonym, verb] : kSynonyms)
    if (word == synonym) near = verb;
  line.fail("'" + word + "' is no verb, and no CLUSTER.yaml" +
            (near.empty() ? "" : " - did you mean 'dtf-launch " + near + "'?"));
}

// A word that looks like no file, and is none.
bool isNoFile(const std::string& word) {
  std::error_code ignored;
  return word.find_first_of("./") == std::string::npos && !std::filesystem::exists(word, ignored);
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
  if (line.has("days") && action == "show") line.fail("--days is for keys that are made");
  refuseOfJobs(line, "keys");
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
  if (options.verb == Verb::kInit) {
    if (!words.empty()) line.fail("unexpected argument '" + words.front() + "': --data names data");
    return refuseOfJobs(line, "init");
  }
  if (words.empty()) line.fail("which job? the name of a CLUSTER.yaml is missing");
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

// An option that another verb would ignore is a mistake.
void checkFits(const CommandLine& line, const Options& options) {
  const std::pair<const char*, std::vector<Verb>> only[] = {
      {"detach", {Verb::kUp, Verb::kServe}},
      {"dry-run", {Verb::kUp, Verb::kServe, Verb::kSubmit, Verb::kGraph}},
      {"fresh", {Verb::kUp, Verb::kGraph}},
      {"follow", {Verb::kLogs}},
      {"as-root", {Verb::kUp, Verb::kServe, Verb::kImport, Verb::kStop}},
      {"network", {Verb::kCheck}},
      {"checkpoint", {Verb::kEval, Verb::kPredict, Verb::kExport}},
      {"best", {Verb::kEval, Verb::kPredict, Verb::kExport}},
      {"to", {Verb::kExport}},
      {"from", {Verb::kImport}},
      {"layout", {Verb::kImport}},
      {"graph", {Verb::kGraph}},
      {"timeline", {Verb::kGraph}},
      {"timeline-step", {Verb::kGraph}},
      {"dot", {Verb::kGraph, Verb::kExplain}},
      {"parts", {Verb::kExplain}},
      {"input", {Verb::kPredict}},
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
  options.verbosity = line.has("quiet")     ? Verbosity::kQuiet
                      : line.has("verbose") ? Verbosity::kVerbose
                                            : Verbosity::kNormal;
  const std::string color = line.value("color").value_or("auto");
  if (!parseColorMode(color, options.color))
    line.fail("--color expects auto, always or never, got '" + color + "'");
  options.checkpoint = line.value("checkpoint").value_or("");
  options.best = line.has("best");
  options.input = fileOf(line, "input");
  options.output = fileOf(line, "output");
  options.data = fileOf(line, "data");
  options.target = line.value("target");
  options.features = line.value("features");
  options.force = line.has("force");
  options.to = fileOf(line, "to");
  options.from = fileOf(line, "from");
  options.layout = layoutOf(line);
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
