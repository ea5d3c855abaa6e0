#include "launcher/verbs.h"

#include <array>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

constexpr VerbInfo kVerbs[] = {
    {"up", Verb::kUp, "CLUSTER.yaml [OPTION...]", "run the job; `up` may be left out",
     "Starts every task, watches them, and prints the result. Ctrl-C saves a checkpoint, unless "
     "the\n"
     "file has 'checkpoint: none', and ends the job; the same command then goes on from it. A job\n"
     "that is done is not started again: --fresh begins anew, more train.steps go on.\n"
     "With -d it returns once every task is ready, and the job goes on: see status, attach,\n"
     "stop.\n"},
    {"init", Verb::kInit, "FILE [--target NAME]", "write a job's file for data",
     "Reads FILE, a table in text, an archive or array of NumPy, or a folder of images, and "
     "writes\n"
     "NAME.yaml, which trains as it is; its comments describe the data. -o names the job's file "
     "(-\n"
     "is stdout), and --force replaces an existing one. `--data FILE` is the same as FILE.\n"},
    {"submit", Verb::kSubmit, "CLUSTER.yaml", "have Slurm run the job: 'launch: {via: slurm}'",
     "Gives sbatch a script that runs `dtf-launch up` on the first of launch.nodes nodes, from\n"
     "where it starts the tasks on all of them, and prints Slurm's number of the job. --dry-run\n"
     "prints the script. Before the time limit (launch.time) the job saves and ends; when it is\n"
     "submitted again, or requeued by launch.requeue, it goes on from there. Within an allocation\n"
     "(salloc, or a script of your own) use `up`.\n"},
    {"check", Verb::kCheck, "CLUSTER.yaml", "check model, data and memory; list the tasks",
     "Starts nothing. Reads all data, as the workers will; the images of a folder are only "
     "counted.\n"
     "--network also measures the network: bytes a second and round trips from each host to every\n"
     "address of the others, by the programs and connections of a job, over TLS if the file has\n"
     "keys. It warns of pairs below half of the best, and of a host with a faster interface than\n"
     "the one in the file. A row takes about a second; rows of different hosts are measured at "
     "the\n"
     "same time. Exit code 69: some hosts don't reach each other.\n"},
    {"explain", Verb::kExplain, "CLUSTER.yaml", "print the model layer by layer, and its placement",
     "Prints each layer with its output, parameters and floating-point operations, then the ps of\n"
     "each variable. Starts nothing. With --graph it prints the graph of a training step instead:\n"
     "each op with its device and outputs, and the bytes between a worker and each ps; with --dot\n"
     "for Graphviz: ... --graph --dot | dot -Tsvg -o step.svg\n"
     "--measure measures the links between the hosts instead, for a second, and prints the time "
     "of\n"
     "an exchange with the parameters on the ps and on the workers, and what 'placement: auto'\n"
     "chooses.\n"},
    {"graph", Verb::kGraph, "CLUSTER.yaml --graph FILE", "run a graph of ops on tasks that serve",
     "Start the tasks of the file first: see serve. Each op runs on its device; variables are "
     "drawn\n"
     "from the graph's seed, the targets run in each step, and the fetches are printed. --dry-run\n"
     "prints where each op runs, and needs no tasks. --timeline FILE records the second step, or\n"
     "--timeline-step N, of every task: its ops, its waits for tensors of other tasks and the\n"
     "tensors it sent, as a Chrome trace for ui.perfetto.dev or chrome://tracing.\n"},
    {"serve", Verb::kServe, "CLUSTER.yaml", "start tasks without a job: they wait for clients",
     "Each task runs graphs for its clients: `dtf-launch graph`, or a program with libdtf\n"
     "(Session session(\"dtf://host:port\")). The key `train` of the file is not used. Variables "
     "live\n"
     "as long as their task; a task that ends is started again, without them. Ctrl-C or stop ends\n"
     "all tasks.\n"},
    {"runs", Verb::kRuns, "[FOLDER...]", "list your runs, from any folder: state and result",
     "Prints one line for each run, newest first: its id, job, state (running, serving, done,\n"
     "stopped, interrupted, failed, killed), start, time, steps, loss of the last batch, metrics "
     "of\n"
     "the last evaluation, newest checkpoint and folder. With folders: only the runs in them, or\n"
     "in their runs/. A run whose folder is gone is not listed. --json prints an object a line.\n"
     "Example: dtf-launch runs ~/experiments\n"},
    {"compare", Verb::kCompare, "RUN RUN...", "compare runs: settings that differ, and results",
     "A RUN is a run directory, the name of a job, or the beginning of a name or id that\n"
     "`dtf-launch runs` prints. The settings are from RUN/job.yaml, which has the job with --set\n"
     "and defaults; - marks a key that a run's file doesn't have.\n"
     "Example: dtf-launch compare digits runs/digits-adam\n"},
    {"status", Verb::kStatus, "CLUSTER.yaml", "print the progress of the job, or how it ended",
     "Finds the run of this file from any folder. Exit code 0: it runs; 3: it doesn't.\n"},
    {"attach", Verb::kAttach, "CLUSTER.yaml", "watch a running job; Ctrl-C leaves it running",
     "Ends with the job, and with its exit code.\n"},
    {"logs", Verb::kLogs, "CLUSTER.yaml [TASK...]", "print the logs of the last run, by time",
     "Prints the lines of all tasks, or of the named ones (worker/1), merged by time. -f goes on "
     "as\n"
     "long as the job runs. --list prints the names of the tasks that have a log.\n"},
    {"stop", Verb::kStop, "CLUSTER.yaml", "save and end a running job",
     "Finds the run of this file from any folder, and waits until it has ended. Exit code 0: it\n"
     "was saved, or done; 3: nothing ran; else the exit code of the job, which ended unsaved.\n"},
    {"eval", Verb::kEval, "CLUSTER.yaml", "evaluate the newest checkpoint, without a cluster",
     "Computes loss and metrics on the job's evaluation data, as the job's own evaluations do, in\n"
     "this process alone; the job may run meanwhile. --checkpoint STEP, or a checkpoint's folder,\n"
     "uses another checkpoint, --best the best one (checkpoint: {keep_best: METRIC}).\n"
     "--report adds precision, recall, F1 and support of each class, their averages, and the\n"
     "confusion matrix; of more than 20 classes the most confused pairs.\n"
     "Example: dtf-launch eval job.yaml --best --report\n"},
    {"predict", Verb::kPredict, "CLUSTER.yaml", "predict each example by the newest checkpoint",
     "Prints the class and the model's outputs of each example in --input FILE, or in the job's\n"
     "evaluation data; the outputs are probabilities if the loss gives them. With --json: one\n"
     "JSON object for each example. --keep COLUMNS copies columns of an input table into each\n"
     "line, as an id. Each record has its line, in order: `example` is its number, from 0.\n"
     "--input - reads standard input: a table in text, with its header if the job's has one, an\n"
     "array of NumPy, IDX, or one image.\n"
     "Example: zcat new.csv.gz | dtf-launch predict job.yaml --input - --keep id -o out.csv\n"},
    {"export", Verb::kExport, "CLUSTER.yaml --to FILE",
     "write the newest checkpoint for other programs",
     "Writes all variables, whole, without the optimizer's slots: FILE.safetensors, FILE.npz\n"
     "(NumPy), or FILE.onnx (opset 17) with the whole model, including the scaling of its input.\n"
     "The metadata of the file describe the model's inputs and outputs.\n"},
    {"import", Verb::kImport, "CLUSTER.yaml --from FILE",
     "start the job from weights of another program",
     "Saves them as the checkpoint of step 0, from which the job then goes on. Variables are "
     "found\n"
     "by name and shape (\"conv1.weight\" is conv1/weights); variables that the file lacks are "
     "drawn\n"
     "as always. Prints the variables that were used, transposed, drawn anew and not used. For a\n"
     "file that neither dtf nor an ONNX exporter wrote, --layout gives the order of dimensions.\n"
     "pytorch: matrices [units, inputs], filters [filters, channels, height, width], images\n"
     "flattened by channel; dtf, as TensorFlow: [inputs, units], [height, width, channels,\n"
     "filters], by position. Other names are brought to the model's by --prefix and --rename;\n"
     "PyTorch's 'module.' is taken off where a variable has the rest.\n"},
    {"keys", Verb::kKeys, "init|issue|renew|show DIR",
     "make, renew and list the keys of a job: TLS",
     "init makes the job's CA in DIR, and a key for each task of --cluster FILE; issue DIR "
     "TASK...\n"
     "makes keys for more tasks (ps/0, worker/1), or for a client (status, attach, graph); renew\n"
     "makes all of DIR's keys anew, which running tasks use from their next connection on; show\n"
     "lists them. A cluster file uses them by 'keys: DIR'. Only the CA needs DIR/ca-key.pem: keep\n"
     "it where no task runs.\n"},
};

// Verbs of other tools.
constexpr std::array<std::pair<std::string_view, std::string_view>, 37> kSynonyms = {
    {{"load", "import"},   {"save", "export"},      {"convert", "export"}, {"evaluate", "eval"},
     {"infer", "predict"}, {"classify", "predict"}, {"test", "eval"},      {"down", "stop"},
     {"kill", "stop"},     {"cancel", "stop"},      {"ps", "status"},      {"ls", "runs"},
     {"list", "runs"},     {"top", "status"},       {"validate", "check"}, {"lint", "check"},
     {"verify", "check"},  {"describe", "explain"}, {"model", "explain"},  {"show", "explain"},
     {"run", "up"},        {"start", "up"},         {"launch", "up"},      {"resume", "up"},
     {"server", "serve"},  {"log", "logs"},         {"watch", "attach"},   {"key", "keys"},
     {"certs", "keys"},    {"sbatch", "submit"},    {"queue", "submit"},   {"new", "init"},
     {"create", "init"},   {"train", "up"},         {"fit", "up"},         {"history", "runs"},
     {"diff", "compare"}}};

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

std::string verbNear(const std::string& word) {
  for (const auto& [synonym, verb] : kSynonyms)
    if (word == synonym) return std::string(verb);
  std::vector<std::string_view> verbs = {"help"};
  for (const VerbInfo& info : kVerbs) verbs.push_back(info.name);
  return nearestWord(word, verbs);
}

}  // namespace dtf::launcher
