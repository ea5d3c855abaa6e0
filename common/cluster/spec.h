#pragma once

// CLUSTER.yaml and TRAIN.yaml as value types, which hold validated values only. cluster_yaml.h
// parses them. Defaults here are the documented defaults.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/data_spec.h"
#include "common/cluster/optimizer_spec.h"
#include "common/model/model_spec.h"
#include "common/tensor/precision.h"
#include "common/yaml/mark.h"

namespace dtf::cluster {

struct Address {
  std::string host;         // a name or a numeric address, as in the file
  uint16_t port = 0;        // 0: `auto`, chosen by dtf-launch when it binds
  std::string str() const;  // "localhost:2222", "localhost:auto", "[::1]:2222"
};

inline constexpr int kThreadsMax = 1024;  // of one worker
inline constexpr int kDevicesMax = 64;    // likewise, CPUs
inline constexpr int kGpusMax = 16;       // likewise

struct TaskSpec {
  Address address;
  std::vector<std::string> devices;  // "cpu:1", each once; empty: see devicesOf()
  std::map<std::string, std::string> env;
  yaml::Mark mark;
  int threads = 0;  // compute threads of a worker; 0: see computeThreads()
  // The file has a number of tasks without addresses: they run on this host, or on Slurm's nodes.
  bool by_count = false;
};

// Returns the devices of a task, at least one. A worker has a tower on each.
std::vector<std::string> devicesOf(const TaskSpec& task);

// The way of parameters and gradients between tasks on different hosts. Words go over TCP or TLS.
enum class Transport : uint8_t {
  kTcp,
  kRdma,  // network cards read and write the memory of the other host, see net/channels/
};

// Clients' sessions of a task that serves: several hundred clients, with room for those that return
// before the task has noticed their loss.
inline constexpr uint32_t kSessionsMaxDefault = 512;
inline constexpr uint32_t kSessionsMaxMost = 65536;

struct ClusterSpec {
  std::vector<TaskSpec> ps;
  std::vector<TaskSpec> worker;
  uint32_t sessions_max = kSessionsMaxDefault;  // of each task that serves, at once
  bool insecure = false;                        // tasks may listen beyond loopback without keys
  std::filesystem::path keys;  // folder (net/key_folder.h); empty: connections are plain
  // Tasks of one host exchange tensors through shared memory.
  bool shared_memory = true;
  // The worker that hosts shard 0, in a job without ps: replication.leader.
  uint32_t leader = 0;
  // A worker sends gradients while it computes the others.
  bool stream_gradients = true;
  Transport transport = Transport::kTcp;
  // Every worker hosts a shard beside those of the ps, see PlacementSpec::Strategy::kHybrid.
  bool hybrid = false;
  // Whether tasks may listen beyond loopback.
  bool mayBeReached() const { return insecure || !keys.empty(); }
  const std::vector<TaskSpec>& tasks(JobKind job) const {
    return job == JobKind::kPs ? ps : worker;
  }
  const TaskSpec& task(TaskId id) const { return tasks(id.job).at(id.index); }
  // The tasks that host the shards of the parameters: the ps; without any, or with `hybrid`, the
  // workers.
  ShardHosts shardHosts() const;
  const TaskSpec& host(uint32_t shard) const { return task(shardHosts().of(shard)); }
  std::vector<TaskSpec> hosts() const;  // of all shards
  // Whether every worker hosts a shard that others use, too.
  bool workersHost() const { return shardHosts().workers > 0 && !isOneProcess(); }
  // Whether the job is one process, with its only shard inside.
  bool isOneProcess() const { return ps.empty() && worker.size() == 1; }
};

// Returns the number of workers with the host of worker `index`, itself included.
int workersBeside(const ClusterSpec& cluster, uint32_t index);

// Returns of each worker the lowest rank with the same host.
std::vector<uint32_t> hostLeaders(const ClusterSpec& cluster);

// Returns the number of tasks, ps and workers, with the host of `task`, itself included.
int tasksBeside(const ClusterSpec& cluster, TaskId task);

// Returns the number of compute threads of worker `index` for all its devices together: the file's
// `threads`, or its share of its host's `cores`; at least 1.
int computeThreads(const ClusterSpec& cluster, uint32_t index, int cores);

// The HTTP server of every task, on a port of its own: /metrics, /healthz, /readyz.
struct MetricsSpec {
  uint16_t port = 0;  // of the first task of each host; the others count up. 0: the kernel chooses
};

// Traces of steps, sent to an OpenTelemetry collector over HTTP.
struct TracesSpec {
  Address collector;
  std::string path;          // "/v1/traces"
  uint64_t every_steps = 0;  // each worker traces one step of this many; from 1
};

// Longest waits, in seconds. The error of a wait that ran out names its timeout.
struct Timeouts {
  double start_seconds = 60;     // for every task of the cluster to come up
  double heartbeat_seconds = 1;  // between heartbeats
  double lease_seconds = 10;     // without a heartbeat: the task is lost
  double step_seconds = 60;      // one exchange with a ps
  double rejoin_seconds = 60;    // for a lost worker that a step needs to be back
  double stop_seconds = 30;      // after SIGTERM, for the last checkpoint
  double finish_seconds = 600;   // for the slowest worker to finish, and for an evaluation
};

// ---- training

struct ReplicationSpec {
  // kBounded: async, but no worker runs more than `staleness` steps ahead of the slowest.
  enum class Mode : uint8_t { kAsync = 1, kSync = 2, kBounded = 3 } mode = Mode::kAsync;
  uint32_t replicas_to_aggregate = 0;  // sync; 0: total_num_replicas
  uint32_t total_num_replicas = 0;     // sync; 0: the number of workers
  uint32_t staleness = 0;              // bounded
  // The worker that hosts shard 0, in a job without ps; see ClusterSpec, which has it, too.
  uint32_t leader = 0;
  // async, bounded: a worker computes its next batch while it sends a gradient.
  bool overlap = false;
  // Form of parameters and gradients on the wire between workers and ps: rounded from float32, or,
  // with error feedback, as 8 bits or only the largest ones (arena/codecs/).
  enum class TransferDtype : uint8_t {
    kFloat32,
    kBFloat16,
    kInt8,
    kTopK
  } transfer_dtype = TransferDtype::kFloat32;
  double transfer_top_k = 0;  // kTopK: the share of the elements
  // sync, `topology: {hosts: sum}`: of each worker, the lowest rank on its host, which exchanges
  // the mean gradient of them all. Empty: each worker exchanges its own gradient.
  std::vector<uint32_t> host_leaders{};
  bool operator==(const ReplicationSpec&) const = default;
};

struct PlacementSpec {
  // kHybrid: sparse variables on the ps, the others on the workers.
  // kAuto: dtf-launch measures the links between the hosts when the run begins, and gives the tasks
  // the placement that it has chosen (launcher/placement/). No task trains with kAuto.
  enum class Strategy : uint8_t {
    kRoundRobin,
    kGreedy,
    kEven,
    kHybrid,
    kAuto
  } strategy = Strategy::kRoundRobin;
  // kEven, kHybrid: the weight of each shard, which a file gives by host; empty: all equal.
  std::vector<double> shares{};
  // kAuto: the placements to choose from, as their names in the file; empty: all.
  std::vector<std::string> among{};
  yaml::Mark strategy_mark{};  // or of `placement`, without a strategy
  std::map<std::string, std::string>
      pins;  // variable -> device: {"softmax/weights": "/job:ps/task:1"}
  std::map<std::string, yaml::Mark> pin_marks;  // of each pin's variable
  // Smallest variable that is split over all ps; 0: none is. Default 4 MiB.
  uint64_t partition_min_bytes = uint64_t{4} << 20;
  bool whole_variables = false;  // the optimizer needs them: none is split
  uint64_t part_alignment = 0;   // elements: parts begin at multiples; 0: the placer's own
  uint32_t sparse_shards = 0;    // kHybrid: the shards on the ps, which are the first
};

// Checkpoints, in <run_dir>/checkpoints. TensorFlow's defaults.
struct CheckpointSpec {
  double every_seconds = 600;        // 0: not by time
  double first_seconds = 60;         // of a job that has none of its own training: until the first
  uint64_t every_steps = 0;          // 0: not by steps
  uint32_t keep = 5;                 // number of newest checkpoints to keep; 0: all
  double keep_every_hours = 10'000;  // and one for each interval of this many hours of training
  bool gather = false;               // the chief writes all files; else each ps its own
  bool stay = false;                 // each ps keeps its file on its host; not with `gather`
  std::string keep_best{};           // a metric: the best checkpoint by it is kept; empty: none
  yaml::Mark mark;
};

// Ends a job when its evaluations no longer improve, as Keras' EarlyStopping does.
struct EarlyStoppingSpec {
  std::string metric = "loss";  // of the evaluations
  uint64_t patience = 0;        // evaluations without an improvement that end the job; from 1
  double min_delta = 0;         // a change has to be larger to be an improvement
  yaml::Mark mark{};            // of `patience`
};

// TensorBoard's event files, in <run_dir>/events, and one step's timeline. TensorFlow's defaults.
struct SummariesSpec {
  double every_seconds = 120;  // 0: not by time
  uint64_t every_steps = 0;    // 0: not by steps
  bool histograms = true;      // of the variables and the chief's gradients
  bool graph = true;
  uint64_t images = 0;         // of a batch
  uint64_t timeline_step = 0;  // 0: no timeline
};

// How the kernel of each convolution is chosen.
enum class KernelRule : uint8_t {
  kTable,  // by a built-in table: the same on every host
  kTimed,  // by the chief's measurements at the start of the run: see train/kernel_choices.h
};

struct TrainSpec {
  model::ModelSpec model;
  DataSpec data;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  PlacementSpec placement;
  KernelRule kernels = KernelRule::kTable;
  Precision precision = Precision::kFloat32;
  // None: nothing is saved or restored. A file without the key has one, see readTrain().
  std::optional<CheckpointSpec> checkpoint;
  std::optional<EarlyStoppingSpec> early_stopping;  // none: all steps are trained
  std::optional<SummariesSpec> summaries;           // none: nothing is written
  uint64_t steps = 1000;                            // global steps
  uint64_t epochs = 0;            // replaces `steps`, which then depends on the data; 0: not given
  uint64_t eval_every_steps = 0;  // 0: only at the end
  uint64_t report_every_steps = 0;  // 0: about twice a second
};

// The budget for each task that fails after it was ready; dtf-launch restarts it.
struct RestartsSpec {
  uint64_t max = 10;           // restarts per `refill_minutes`; 0: none
  double refill_minutes = 10;  // until the budget is full again
};

// Options of the system's ssh client for a host. The client's own configuration has the rest.
struct SshSpec {
  std::string user;
  uint16_t port = 0;               // 0: not given
  std::filesystem::path identity;  // a private key
  std::filesystem::path config;    // replaces ~/.ssh/config
  std::string binary_dir;          // folder of dtf-agent, psd and workerd on that host; empty: PATH
};

// The allocation that `dtf-launch submit` requests from Slurm.
struct SlurmSpec {
  uint32_t nodes = 0;                // 0: not given: one, or the nodes of the allocation
  std::string time;                  // limit in sbatch's format; empty: the partition's
  bool requeue = false;              // at the limit: save, and wait for another turn
  std::vector<std::string> options;  // of sbatch: "--partition=gpu"
};

// Files that are copied over ssh to hosts that lack them.
struct CopySpec {
  bool programs = false;  // dtf-agent, psd, workerd
  bool data = false;      // the training data that the workers of a host read
  std::string dir;        // folder of the copies on a host; empty: ~/.cache/dtf/copies
  uint64_t max_gib = 64;  // size of all copies on one host
  bool any() const { return programs || data; }
};

struct LaunchSpec {
  enum class Via : uint8_t { kLocal, kSsh, kSlurm, kSystemd } via = Via::kLocal;
  // Whether an agent on each host (launcher/ssh/) starts the tasks.
  bool byAgents() const { return via == Via::kSsh || via == Via::kSlurm; }
  // The end of a job that was saved after a SIGTERM to a task: all tasks exit with 0, or, so that
  // their supervisor restarts them, with kPausedExitCode.
  enum class OnSigterm : uint8_t { kStop, kPause } on_sigterm = OnSigterm::kStop;
  bool pauses() const { return on_sigterm == OnSigterm::kPause; }
  RestartsSpec restarts;
  SlurmSpec slurm;
  CopySpec copy;
  bool fetch_model = true;               // byAgents(): copy the model to dtf-launch's host
  SshSpec ssh;                           // of hosts not in `hosts`; Slurm: only binary_dir
  std::map<std::string, SshSpec> hosts;  // by hostKey(): `ssh` with the host's own settings
  const SshSpec& sshOf(const std::string& host) const;
};

// The source of the values of a lost ps.
enum class Durability : uint8_t {
  kCheckpoint = 1,  // all ps go back to the newest checkpoint
  kSnapshot,        // all ps go back to the newest snapshot that each has in its host's memory
  kReplica,         // another ps holds the same values: no step is lost
};

struct DurabilitySpec {
  Durability kind = Durability::kCheckpoint;
  uint64_t snapshot_every_steps = 0;  // kSnapshot: global steps, from 1; else 0
  std::string str() const;            // as in the file: "snapshot: {every_steps: 100}"
};

// A whole CLUSTER.yaml.
struct JobSpec {
  std::string job = "job";        // [A-Za-z0-9._-]{1,128}
  std::filesystem::path run_dir;  // "runs/<job>" unless the file says otherwise
  ClusterSpec cluster;
  LaunchSpec launch;
  Timeouts timeouts;
  DurabilitySpec durability;
  std::optional<MetricsSpec> metrics;  // none: no HTTP servers
  std::optional<TracesSpec> traces;    // none: no traces
  std::optional<TrainSpec> train;      // psd needs none
  yaml::Mark mark;                     // of the file
  std::string text;                    // the file as it was understood (understood.h)

  bool savesNothing() const { return train && !train->checkpoint; }
};

// Returns the HTTP port of `task`; 0: the kernel chooses one. nullopt: no HTTP server.
std::optional<uint16_t> metricsPort(const JobSpec& job, TaskId task);
// "http://localhost:9400", with keys https. Empty: it doesn't answer, or at a port that the kernel
// chooses.
std::string metricsUrl(const JobSpec& job, TaskId task);

}  // namespace dtf::cluster
