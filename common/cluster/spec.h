#pragma once

// What CLUSTER.yaml and TRAIN.yaml say, as value types. Parsing and its error messages are in
// cluster_yaml.h; these types hold only what passed validation. Defaults here are the documented
// defaults.

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
  std::string host;         // as written: a name or a numeric address
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
  int threads = 0;  // that a worker computes with; 0: see computeThreads()
  // The file says how many there are, not where: on this host, or on nodes that Slurm gives.
  bool by_count = false;
};

// What the task computes on: a worker has a tower on each. At least one.
std::vector<std::string> devicesOf(const TaskSpec& task);

struct ClusterSpec {
  std::vector<TaskSpec> ps;
  std::vector<TaskSpec> worker;
  bool insecure = false;       // tasks may listen where other hosts can connect, without keys too
  std::filesystem::path keys;  // folder (net/key_folder.h); empty: connections are plain
  // Tasks of one host read what they exchange in each other's memory.
  bool shared_memory = true;
  // Gradients leave while the rest of them is computed.
  bool stream_gradients = true;
  // Whether tasks may listen where other hosts can connect.
  bool mayBeReached() const { return insecure || !keys.empty(); }
  const std::vector<TaskSpec>& tasks(JobKind job) const {
    return job == JobKind::kPs ? ps : worker;
  }
};

// How many of the workers are on the host of worker `index`, itself included: those whose addresses
// name the same host.
int workersBeside(const ClusterSpec& cluster, uint32_t index);

// The same of all tasks, ps and workers.
int tasksBeside(const ClusterSpec& cluster, TaskId task);

// How many threads worker `index` computes with on all its devices together: as many as the file
// says, or its share of the `cores` that its host has; at least 1.
int computeThreads(const ClusterSpec& cluster, uint32_t index, int cores);

// What every task answers over HTTP on a port of its own: /metrics, /healthz, /readyz.
struct MetricsSpec {
  uint16_t port = 0;  // of the first task of each host, the others count up; 0: the kernel chooses
};

// Traces of steps, for a collector of OpenTelemetry's over HTTP.
struct TracesSpec {
  Address collector;
  std::string path;          // "/v1/traces"
  uint64_t every_steps = 0;  // of each worker: every so many steps; from 1
};

// How long each wait may last, in seconds; every one is named when it runs out.
struct Timeouts {
  double start_seconds = 60;     // for every task of the cluster to come up
  double heartbeat_seconds = 1;  // between heartbeats
  double lease_seconds = 10;     // without a heartbeat: the task is lost
  double step_seconds = 60;      // one exchange with a ps
  double rejoin_seconds = 60;    // for a lost worker that the others need to be started again
  double stop_seconds = 30;      // after SIGTERM, for the last checkpoint
  double finish_seconds = 600;   // for the slowest worker to finish, and for an evaluation
};

// ---- training

struct ReplicationSpec {
  // kBounded: async, but no worker runs more than `staleness` steps ahead of the slowest.
  enum class Mode : uint8_t { kAsync = 1, kSync = 2, kBounded = 3 } mode = Mode::kAsync;
  uint32_t replicas_to_aggregate = 0;  // sync; 0: as many as total_num_replicas
  uint32_t total_num_replicas = 0;     // sync; 0: as many as there are workers
  uint32_t staleness = 0;              // bounded
  // async, bounded: a worker computes its next batch while the gradient of the one before travels.
  bool overlap = false;
  // What parameters and gradients are rounded to where they travel between workers and ps; all
  // compute in float32.
  enum class TransferDtype : uint8_t {
    kFloat32,
    kBFloat16
  } transfer_dtype = TransferDtype::kFloat32;
  bool operator==(const ReplicationSpec&) const = default;
};

struct PlacementSpec {
  enum class Strategy : uint8_t { kRoundRobin, kGreedy } strategy = Strategy::kRoundRobin;
  std::map<std::string, std::string>
      pins;  // variable -> device: {"softmax/weights": "/job:ps/task:1"}
  std::map<std::string, yaml::Mark> pin_marks;  // of each pin's variable
  // A variable of at least this many bytes is split over all ps; 0: none is. Default 4 MiB.
  uint64_t partition_min_bytes = uint64_t{4} << 20;
};

// Checkpoints, in <run_dir>/checkpoints. TensorFlow's defaults.
struct CheckpointSpec {
  double every_seconds = 600;        // 0: not by time
  uint64_t every_steps = 0;          // 0: not by steps
  uint32_t keep = 5;                 // the newest so many; 0: all
  double keep_every_hours = 10'000;  // and one for each so many hours of training
  bool gather = false;               // all files are the chief's; else each ps writes its own
  bool stay = false;                 // and keeps it on its host; not with `gather`
  std::string keep_best{};           // a metric: its best checkpoint stays, too; empty: none
  yaml::Mark mark;
};

// Ends a job whose evaluations no longer improve, as Keras' EarlyStopping does.
struct EarlyStoppingSpec {
  std::string metric = "loss";  // of the evaluations
  uint64_t patience = 0;        // evaluations without an improvement that end the job; from 1
  double min_delta = 0;         // a change has to be larger to be an improvement
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

// By what the way of each convolution is chosen.
enum class KernelRule : uint8_t {
  kTable,  // what was measured elsewhere: the same everywhere
  kTimed,  // what the chief measures when the run begins: see train/kernel_choices.h
};

struct TrainSpec {
  model::ModelSpec model;
  DataSpec data;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  PlacementSpec placement;
  KernelRule kernels = KernelRule::kTable;
  Precision precision = Precision::kFloat32;
  // None: nothing is saved or restored. A file without the key saves all the same.
  std::optional<CheckpointSpec> checkpoint;
  std::optional<EarlyStoppingSpec> early_stopping;  // none: all steps are trained
  std::optional<SummariesSpec> summaries;           // none: nothing is written
  uint64_t steps = 1000;                            // global steps
  uint64_t epochs = 0;  // in place of steps, which then follow from the data; 0: not given
  uint64_t eval_every_steps = 0;    // 0: only at the end
  uint64_t report_every_steps = 0;  // 0: about twice a second
};

// Of each task that fails after it was ready, by dtf-launch.
struct RestartsSpec {
  uint64_t max = 10;           // in `refill_minutes`; 0: none
  double refill_minutes = 10;  // until the whole budget is there again
};

// How the system's ssh client reaches a host; what is not given here its own configuration says.
struct SshSpec {
  std::string user;
  uint16_t port = 0;               // 0: not given
  std::filesystem::path identity;  // a private key
  std::filesystem::path config;    // in the place of ~/.ssh/config
  std::string binary_dir;  // there, of dtf-agent, psd and workerd; empty: they are in the PATH
};

// What `dtf-launch submit` asks Slurm for.
struct SlurmSpec {
  uint32_t nodes = 0;                // 0: not given; one, or what the allocation has
  std::string time;                  // limit, as sbatch has it; empty: the partition's
  bool requeue = false;              // at the limit: save, and wait for another turn
  std::vector<std::string> options;  // of sbatch: "--partition=gpu"
};

// What is brought to hosts that lack it, over ssh.
struct CopySpec {
  bool programs = false;  // dtf's own
  bool data = false;      // what the workers of a host read
  std::string dir;        // there, of the copies; empty: ~/.cache/dtf/copies
  uint64_t max_gib = 64;  // of all copies on one host
  bool any() const { return programs || data; }
};

struct LaunchSpec {
  enum class Via : uint8_t { kLocal, kSsh, kSlurm, kSystemd } via = Via::kLocal;
  // By an agent on each host (launcher/ssh/), not by dtf-launch's own host.
  bool byAgents() const { return via == Via::kSsh || via == Via::kSlurm; }
  // What becomes of a job that is saved because a task was told to end: all tasks end with 0, or
  // with kPausedExitCode, for whoever starts them to do it again.
  enum class OnSigterm : uint8_t { kStop, kPause } on_sigterm = OnSigterm::kStop;
  bool pauses() const { return on_sigterm == OnSigterm::kPause; }
  RestartsSpec restarts;
  SlurmSpec slurm;
  CopySpec copy;
  bool fetch_model = true;               // by agents: when the job has ended, to dtf-launch's host
  SshSpec ssh;                           // of every host but these; of Slurm: binary_dir
  std::map<std::string, SshSpec> hosts;  // by hostKey(): as `ssh`, with what differs
  const SshSpec& sshOf(const std::string& host) const;
};

// What takes the place of the values that a lost ps held.
enum class Durability : uint8_t {
  kCheckpoint = 1,  // all ps go back to the newest checkpoint
  kSnapshot,        // all go back to the newest cut that each keeps in the memory of its host
  kReplica,         // nothing is lost: another ps holds them, too
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
  std::optional<MetricsSpec> metrics;  // none: nothing is answered over HTTP
  std::optional<TracesSpec> traces;    // none: nothing is traced
  std::optional<TrainSpec> train;      // psd needs none
  yaml::Mark mark;                     // of the file
  std::string text;                    // the file as it was understood (understood.h)
};

// Where that task answers over HTTP; 0: at a port that the kernel chooses. nullopt: it doesn't.
std::optional<uint16_t> metricsPort(const JobSpec& job, TaskId task);

}  // namespace dtf::cluster
