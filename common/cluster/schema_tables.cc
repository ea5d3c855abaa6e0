#include "common/cluster/schema.h"

#include <vector>

#include "common/model/layer_table.h"
#include "common/yaml/keys.h"

namespace dtf::cluster {

using yaml::boolean;
using yaml::choice;
using yaml::kCountMax;
using yaml::Key;
using yaml::kNotNegative;
using yaml::kPatience;
using yaml::kPositive;
using yaml::kSeconds;
using yaml::kSeedMax;
using yaml::list;
using yaml::listOrMap;
using yaml::map;
using yaml::number;
using yaml::numberOrMap;
using yaml::required;
using yaml::Table;
using yaml::text;
using yaml::textOrMap;
using yaml::whole;

namespace {

constexpr Key kJobKeys[] = {
    text("job", "name of the job, default 'job': letters, digits, '.', '_' and '-'"),
    text("run_dir", "folder of the job's files; default runs/<job>, where you start it"),
    map("cluster", "the tasks; default: one process, {worker: [local]}"),
    text("keys", "folder made by dtf-launch keys, for TLS; relative to this file"),
    boolean("insecure", "listen beyond loopback without keys, open to all; default false"),
    whole("sessions_max", 1, 65536, "--serve: sessions of clients at once, each task; default 512"),
    boolean("shared_memory", "tasks of one host read each other's memory; default true"),
    boolean("stream_gradients", "gradients leave while the rest is computed; default true"),
    choice("transport", "tcp|rdma", "",
           "rdma: values by network cards (UCX), never run on one; default tcp"),
    map("launch", "how dtf-launch starts the tasks"),
    map("timeouts", "how long each wait may last"),
    textOrMap("durability", "source of a lost ps's values; default checkpoint; without ps replica"),
    map("metrics", "/metrics, /healthz and /readyz of each task, over HTTP; default: none"),
    map("traces", "traces of steps for an OpenTelemetry collector; default: none"),
    textOrMap("train", "a TRAIN.yaml, relative to this file, or its keys in place"),
};

constexpr Key kClusterKeys[] = {
    listOrMap("ps", "parameter servers: addresses, maps, {count: 2}; none: workers hold all"),
    required(listOrMap("worker", "the workers: addresses (host:port), or maps, or {count: 2}")),
};

constexpr Key kTaskKeys[] = {
    required(text("address", "host:port, or host:auto for a port that dtf-launch chooses")),
    list("devices", "worker: a tower on each, with its share of the batch; default [cpu:0]"),
    whole("threads", 1, 1024,
          "worker: threads that compute; default: the host's cores / its workers"),
    map("env", "environment variables of the process"),
};

constexpr Key kTaskCountKeys[] = {
    required(whole("count", 1, 1024, "tasks: on this host; via slurm, on each node in turn")),
    list("devices", "worker: devices of each"),
    whole("threads", 1, 1024, "worker: threads of each"),
    map("env", "environment variables of each process"),
};

constexpr Key kLaunchKeys[] = {
    choice("via", "local|ssh|slurm|systemd", "kubernetes",
           "this host; hosts over ssh; Slurm's nodes (see submit); systemd units"),
    map("restarts", "budget for tasks that fail after they were ready"),
    choice("on_sigterm", "stop|pause", "",
           "SIGTERM to a task saves and ends the job; pause: with exit code 75"),
    text("user", "ssh, systemd: user there; this and the next default to ssh's files"),
    whole("port", 1, 65535, "ssh: port of the server"),
    text("identity", "ssh: file of the private key, relative to this one"),
    text("ssh_config", "ssh: file in place of ~/.ssh/config, relative to this one"),
    text("binary_dir", "folder of dtf-agent, psd, workerd; default: PATH (slurm: dtf-launch's)"),
    list("hosts", "ssh, systemd: settings of single hosts"),
    whole("nodes", 1, 1024, "slurm: number of nodes for submit; default 1"),
    text("time", "slurm: time limit, as for sbatch: 90 (minutes), or \"2:00:00\""),
    boolean("requeue", "slurm: at the limit, save and wait for another turn; default false"),
    list("sbatch", "slurm: further options of sbatch: [--partition=gpu, --exclusive]"),
    map("copy", "ssh: copies programs and data to hosts that lack them; default: none"),
    boolean("fetch_model", "ssh, slurm: copy the last checkpoint here; default true"),
};

constexpr Key kLaunchCopyKeys[] = {
    boolean("programs", "dtf-agent, psd and workerd of this host; default false"),
    boolean("data", "files of train.data, to hosts whose workers read them; default false"),
    text("dir", "folder of the copies there; default ~/.cache/dtf/copies"),
    whole("max_gib", 1, 1'000'000, "size of all copies on a host; the oldest go; default 64"),
};

constexpr Key kLaunchHostKeys[] = {
    required(text("host", "host, as in the addresses of its tasks")),
    text("user", "user there"),
    whole("port", 1, 65535, "port of its ssh server"),
    text("identity", "file of the private key, relative to this one"),
    text("binary_dir", "folder of dtf-agent, psd and workerd there"),
};

constexpr Key kRestartsKeys[] = {
    whole("max", 0, 1'000'000, "restarts of one task before it is given up; 0: none; default 10"),
    number("refill_minutes", kSeconds, "minutes until the whole budget is back; default 10"),
};

constexpr Key kTimeoutsKeys[] = {
    number("start_seconds", kSeconds, "for every task to come up; default 60"),
    number("heartbeat_seconds", kSeconds, "between heartbeats; default 1"),
    number("lease_seconds", kSeconds, "without a heartbeat before a task is lost; default 10"),
    number("step_seconds", kSeconds, "for one exchange with a ps; default 60"),
    number("rejoin_seconds", kPatience,
           "for a lost worker that a step needs to be back; 0: none; default 60"),
    number("stop_seconds", kSeconds,
           "after SIGTERM or Ctrl-C, for the last checkpoint; default 30"),
    number("finish_seconds", kSeconds,
           "the slowest worker, an evaluation, checkpoint files; default 600"),
};

constexpr Key kDurabilityKeys[] = {
    map("checkpoint", "loses the steps since the newest checkpoint"),
    map("snapshot", "loses the steps since the newest snapshot, in each ps's /dev/shm"),
    map("replica", "loses no step: another ps (or worker) has the same values"),
};

constexpr Key kSnapshotKeys[] = {
    required(whole("every_steps", 1, kCountMax, "global steps between snapshots")),
};

constexpr Key kTracesKeys[] = {
    required(text("endpoint", "http://host[:port][/path]; default :4318/v1/traces, in JSON")),
    whole("every_steps", 1, kCountMax, "traces one step of this many; default 100"),
};

constexpr Key kMetricsKeys[] = {
    required(text("port", "auto, or the port of each host's first task; the others count up")),
};

constexpr Key kTrainKeys[] = {
    required(map("model", "layers, loss and metrics")),
    map("data", "examples to train and evaluate on; default: the embedded digits"),
    textOrMap("optimizer", "a name, or {name: {settings}}; default gradient_descent"),
    map("replication", "how the workers' gradients are combined"),
    textOrMap("placement", "which variable lives where; a word is a strategy, as auto"),
    whole("steps", 1, kCountMax, "global steps to train; default 1000"),
    whole("epochs", 1, 1'000'000,
          "times through the training data, each example once; not with steps"),
    map("eval", "evaluation on data.eval"),
    map("report", "the lines that report progress"),
    choice("kernels", "table|timed", "",
           "how convolutions are computed; timed: the fastest here; default table"),
    choice("precision", "float32|tf32|bfloat16", "",
           "type of the numbers in a training step; default float32"),
    textOrMap("checkpoint", "save and resume; none: neither; default {gather: true}"),
    map("early_stopping", "end the job when its evaluations no longer improve; default: never"),
    map("summaries", "for TensorBoard; default: none"),
};

constexpr Key kDataKeys[] = {
    map("train", "default 10000 embedded digits, and 2000 others to evaluate"),
    map("eval", "default: none when data.train is given"),
    numberOrMap("eval_split", {0, 1, true, true},
                "in place of eval: this share of data.train is not trained on; or a map"),
    map("augment", "change the images of data.train each time they are read"),
    whole("batch_size", 1, 1'000'000,
          "examples per replica and step, fewer at an epoch's end; default 100"),
    whole("seed", 0, kSeedMax, "seed of batches, initial values, dropout and digits; default 1"),
};

constexpr Key kEvalSplitKeys[] = {
    required(number("fraction", {0, 1, true, true}, "this share is not trained on")),
    choice("by", "hash|time|group", "",
           "csv: examples; the last ones (time); whole groups; default hash"),
    text("column", "time, group: a column; it is no feature unless feature_columns has it"),
};

constexpr Key kAugmentKeys[] = {
    boolean("flip_horizontal", "mirror a random half of the images; default false"),
    whole("crop_padding", 0, 1000,
          "move each image by up to this many pixels in each direction; default 0"),
};

constexpr Key kDatasetKeys[] = {
    required(choice("format", "digits|idx|cifar10|cifar100|synthetic|csv|npy|npz|images|libsvm", "",
                    "idx: MNIST's; csv: tables; npy, npz: NumPy's; images: JPEG, WebP, ...")),
    text("images", "idx: a file, relative to this one; bytes are divided by 255"),
    text("labels", "idx, npy: a file, relative to this one; npz: an array; classes from 0"),
    list("files", "csv, libsvm, cifar10, cifar100: files, folders or *.csv; also .gz"),
    boolean("zero_based", "libsvm: indices begin at 0, and not at 1; default false"),
    choice("labels_as", "classes|targets", "",
           "libsvm: targets are numbers to learn; default classes"),
    choice("label_mode", "fine|coarse", "", "cifar100: 100 classes, or 20; default fine"),
    whole("count", 1, 1'000'000,
          "digits, synthetic: number of examples; default 10000 (eval: 2000)"),
    choice("problem", "friedman|linear|tags|centres|clicks", "",
           "synthetic: a number; 2 classes; 4 of 2; many; users and items"),
    whole("classes", 2, 1'000'000, "synthetic centres: number of classes; default 10"),
    boolean("header", "csv: the first line of each file names the columns; default true"),
    text("delimiter", "csv: one character, or tab; default ','"),
    text("label_column", "csv: name or number from 1 of the column with the class"),
    text("comment", "csv: lines that begin with this character are skipped; default none"),
    whole("skip_lines", 0, 1'000'000, "csv: lines before the table in each file; default 0"),
    choice("decimal", "point|comma", "", "csv: what divides a number's decimals; default point"),
    list("target_columns", "csv: columns of the numbers to learn, in place of a label"),
    list("feature_columns", "csv: columns to read as numbers; default: all others; []: none"),
    map("categorical_columns", "csv: name: {columns: [...]}, which an 'embedding' reads"),
    map("numeric_columns", "csv: column: {standardize: true, fill: mean, ...}; '*': all others"),
    map("categorical_arrays", "npy, npz: name: {array: ...}, which an 'embedding' reads"),
    listOrMap("class_names",
              "from class 0; csv: words, or {from: data}; libsvm; images: subfolders"),
    whole("max_bad_records", 0, 1'000'000'000,
          "csv, libsvm, images: bad records that may be left out; default 0"),
    text("folder", "images: a folder with a subfolder for each class"),
    choice("resize", "stretch|crop", "",
           "images: whole, or the middle of the right shape; default stretch"),
    text("archive", "npz: a file, relative to this one"),
    text("features", "npy: a file, relative to this one; npz: an array"),
    text("targets", "npy, npz: as labels, but numbers to learn, one row each"),
    choice("features_as", "float32|pixels|indices", "",
           "npy, npz: pixels are divided by 255; default float32"),
};

constexpr Key kCategoricalKeys[] = {
    required(list("columns", "names, or numbers from 1; an embedding gives a row for each")),
    whole("hash_bucket_size", 1, 1'000'000'000,
          "fields are words, hashed to whole numbers below it (XXH3)"),
    list("vocabulary_list", "fields are these words, from number 0; default: whole numbers"),
    whole("num_oov_buckets", 1, 1'000'000'000,
          "other words are hashed to this many numbers after the list's"),
    list("buckets", "of numbers: the row is the count of these bounds up to it: [18, 65]"),
    map("vocabulary", "{from: data, max_size, min_count}: the list is learned"),
    text("split", "several words in a field, with this between: '|'; rows from 1"),
    whole("max_words", 1, 4096, "with split: the most words of a field; default 16"),
};

constexpr Key kVocabularyKeys[] = {
    required(choice("from", "data", "", "the words of the training data, the most frequent first")),
    whole("max_size", 1, 1'000'000, "at most so many words; default 10000"),
    whole("min_count", 1, kCountMax, "only words that occur so often; default 1"),
};

constexpr Key kClassNamesKeys[] = {
    required(choice("from", "data", "", "the words of the training data, sorted")),
};

constexpr Key kNumericKeys[] = {
    text("fill", "mean, median or a number, for a missing field; default: an error"),
    boolean("missing_indicator", "a further feature, 1 where the field is missing; default false"),
    boolean("log1p", "log(1 + x), after fill; default false"),
    boolean("standardize", "(x - mean) / standard deviation, after log1p; default false"),
};

constexpr Key kCategoricalArrayKeys[] = {
    required(
        text("array", "npy: a file, relative to this one; npz: an array; whole numbers from 0")),
    whole("count", 1, 1'000'000, "numbers of each example; default 1"),
};

constexpr Key kReplicationKeys[] = {
    choice("mode", "async|sync|bounded|allreduce", "",
           "default async; without ps sync, which is also spelt allreduce there"),
    whole("replicas_to_aggregate", 1, 65536,
          "sync: gradients in an update; the replicas beyond that are backups"),
    whole("total_num_replicas", 1, 65536, "sync: the number of workers"),
    whole("staleness", 0, 65536, "bounded: how many steps a worker may be ahead of the slowest"),
    boolean("overlap", "async, bounded: compute while a gradient travels; default false"),
    text("leader", "without ps: the worker that counts the steps; default worker/0"),
    choice("transfer_dtype", "float32|bfloat16", "",
           "parameters and gradients travel rounded to it; default float32"),
    map("transfer", "{dtype: int8} or {top_k: 0.01}: fewer bytes, with error feedback"),
    map("topology", "sync: {hosts: sum}: one gradient leaves a host, of all its workers"),
};

constexpr Key kTopologyKeys[] = {
    choice("hosts", "apart|sum", "",
           "sum: the workers with one address sum in memory first; default apart"),
};

constexpr Key kTransferKeys[] = {
    choice("dtype", "float32|bfloat16|int8", "",
           "of parameters and gradients on their way; default float32"),
    number("top_k", {0, 0.5, true, false}, "only this share travels, the largest of each block"),
};

constexpr Key kPlacementKeys[] = {
    choice("strategy", "round_robin|greedy|even|hybrid|auto", "",
           "even: by bytes; hybrid: dense ones on workers; sync's default: even"),
    list("shares", "even, hybrid: the weight of each host, [3, 1]; default: equal"),
    list("among", "auto: what may be chosen, of ps, hybrid, workers; default: all"),
    map("pins", "variable: device, {\"softmax/weights\": \"/job:ps/task:1\"}"),
    textOrMap("partition", "none, or from which size on a variable is split over all ps"),
};

constexpr Key kPartitionKeys[] = {
    whole("min_bytes", 1, int64_t{1} << 40, "smallest variable that is split; default 4194304"),
};

constexpr Key kEvalKeys[] = {
    whole("every_steps", 1, kCountMax,
          "global steps between evaluations; default: only at the end"),
};

constexpr Key kCheckpointKeys[] = {
    number("every_seconds", kSeconds, "default 600, the first after 60; none with every_steps"),
    whole("every_steps", 1, kCountMax, "at multiples of this number of global steps"),
    whole("keep", 0, 1'000'000, "number of newest checkpoints to keep, 0: all; default 5"),
    number("keep_every_hours", kPositive, "also keep one per this many hours; default 10000"),
    boolean("gather", "worker/0 keeps all files; default false: a disk that all tasks share"),
    boolean("stay", "each ps keeps its own file, worker/0 the manifest; default false"),
    text("keep_best", "a metric: the checkpoint of its best evaluation stays; see eval --best"),
};

constexpr Key kEarlyStoppingKeys[] = {
    text("metric", "loss of data.eval, or one of model.metrics; default loss"),
    required(whole("patience", 1, 1'000'000, "evaluations without an improvement")),
    number("min_delta", kNotNegative, "a smaller change is no improvement; default 0"),
};

constexpr Key kSummariesKeys[] = {
    number("every_seconds", kSeconds, "default 120, or none when every_steps is given"),
    whole("every_steps", 1, kCountMax, "global steps"),
    boolean("histograms", "histograms of variables and the chief's gradients; default true"),
    boolean("graph", "the model's graph and its placement; default true"),
    whole("images", 0, 1000, "number of the chief's first images of a batch; default 0"),
    whole("timeline_step", 1, kCountMax, "step that every task records (async: its own batch)"),
};

constexpr Key kReportKeys[] = {
    whole("every_steps", 1, kCountMax,
          "global steps between the lines; default: about twice a second"),
};

}  // namespace

namespace schema {
constinit const Table kJob{"", kJobKeys};
constinit const Table kCluster{"cluster", kClusterKeys};
constinit const Table kTask{"cluster.ps.N, cluster.worker.N", kTaskKeys};
constinit const Table kLaunch{"launch", kLaunchKeys};
constinit const Table kTaskCount{"cluster.ps or .worker", kTaskCountKeys};
constinit const Table kLaunchCopy{"launch.copy", kLaunchCopyKeys};
constinit const Table kLaunchHost{"launch.hosts", kLaunchHostKeys};
constinit const Table kRestarts{"launch.restarts", kRestartsKeys};
constinit const Table kTimeouts{"timeouts", kTimeoutsKeys};
constinit const Table kDurability{"durability", kDurabilityKeys};
constinit const Table kSnapshot{"durability.snapshot", kSnapshotKeys};
constinit const Table kMetrics{"metrics", kMetricsKeys};
constinit const Table kTraces{"traces", kTracesKeys};
constinit const Table kTrain{"train", kTrainKeys};
constinit const Table kData{"train.data", kDataKeys};
constinit const Table kEvalSplit{"train.data.eval_split", kEvalSplitKeys};
constinit const Table kAugment{"train.data.augment", kAugmentKeys};
constinit const Table kDataset{"train.data.train, train.data.eval", kDatasetKeys};
constinit const Table kCategorical{"train.data.train.categorical_columns.NAME", kCategoricalKeys};
constinit const Table kVocabulary{"train.data.train.categorical_columns.NAME.vocabulary",
                                  kVocabularyKeys};
constinit const Table kClassNames{"train.data.train.class_names", kClassNamesKeys};
constinit const Table kNumeric{"train.data.train.numeric_columns.COLUMN", kNumericKeys};
constinit const Table kCategoricalArray{"train.data.train.categorical_arrays.NAME",
                                        kCategoricalArrayKeys};
constinit const Table kReplication{"train.replication", kReplicationKeys};
constinit const Table kTransfer{"train.replication.transfer", kTransferKeys};
constinit const Table kTopology{"train.replication.topology", kTopologyKeys};
constinit const Table kPlacement{"train.placement", kPlacementKeys};
constinit const Table kPartition{"train.placement.partition", kPartitionKeys};
constinit const Table kEval{"train.eval", kEvalKeys};
constinit const Table kCheckpoint{"train.checkpoint", kCheckpointKeys};
constinit const Table kEarlyStopping{"train.early_stopping", kEarlyStoppingKeys};
constinit const Table kSummaries{"train.summaries", kSummariesKeys};
constinit const Table kReport{"train.report", kReportKeys};
}  // namespace schema

yaml::Tables allTables() {
  using namespace schema;
  static const std::vector<const Table*> tables = [] {
    std::vector<const Table*> all = {&kJob,      &kCluster,    &kTask,       &kTaskCount,
                                     &kLaunch,   &kLaunchCopy, &kLaunchHost, &kRestarts,
                                     &kTimeouts, &kMetrics,    &kTraces,     &kTrain};
    for (const Table* table : model::modelTables()) all.push_back(table);
    for (const Table* table : {&kData,
                               &kEvalSplit,
                               &kAugment,
                               &kDataset,
                               &kCategorical,
                               &kVocabulary,
                               &kNumeric,
                               &kClassNames,
                               &kCategoricalArray,
                               &kOptimizers,
                               &kOptimizerCommon,
                               &kGradientDescent,
                               &kMomentum,
                               &kAdagrad,
                               &kAdadelta,
                               &kAdam,
                               &kAdamW,
                               &kRmsProp,
                               &kFtrl,
                               &kLars,
                               &kLamb,
                               &kLearningRate,
                               &kConstantRate,
                               &kExponentialRate,
                               &kPolynomialRate,
                               &kCosineRate,
                               &kMovingAverage,
                               &kReplication,
                               &kTransfer,
                               &kTopology,
                               &kPlacement,
                               &kPartition,
                               &kEval,
                               &kCheckpoint,
                               &kEarlyStopping,
                               &kSummaries,
                               &kReport,
                               &kDurability,
                               &kSnapshot})
      all.push_back(table);
    return all;
  }();
  return tables;
}

}  // namespace dtf::cluster
