#include "launcher/verbs.h"

#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

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

// Verbs of other tools.
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

}  // namespace

std::span<const VerbInfo> allVerbs() {
  return kVerbs;
}

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

std::string helpOf(const VerbInfo& info) {
  return fmt::format("dtf-launch {} {}: {}\n\n{}{}All options: dtf-launch --help\n", info.name,
                     info.words, info.what, info.more, info.more.empty() ? "" : "\n");
}

std::string verbNear(const std::string& word) {
  for (const auto& [synonym, verb] : kSynonyms)
    if (word == synonym) return std::string(verb);
  std::vector<std::string_view> verbs = {"help"};
  for (const VerbInfo& info : kVerbs) verbs.push_back(info.name);
  return nearestWord(word, verbs);
}

}  // namespace dtf::launcher
