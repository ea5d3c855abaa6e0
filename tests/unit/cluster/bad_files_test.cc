// One bad file a row, and the exact first line of the report on it.

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/cluster/bad_file.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

constexpr BadFile kBadClusters[] = {
    {"cluster:\n  ps: [a:1]\n  wrokers: [b:1]\n  worker: [b:2]\n",
     "c.yaml:3:3: error: unknown key 'wrokers' in 'cluster' - did you mean 'worker'?"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nbanana: 1\n",
     "c.yaml:2:1: error: unknown key 'banana' (one of job, run_dir, cluster, keys, insecure, "
     "sessions_max, shared_memory, stream_gradients, transport, launch, "
     "timeouts, durability, metrics, traces, train)"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nbatch_size: 1\n",
     "c.yaml:2:1: error: unknown key 'batch_size' - it belongs in train.data"},
    {"job: x\ncluster:\n",
     "c.yaml:2:1: error: 'cluster' needs a value: the tasks; default: one process, {worker: "
     "[local]}"},
    {"cluster: {worker: [b:1]}\ndurability: replica\n",
     "c.yaml:2:13: error: 'replica' needs at least two workers, or two ps, as each keeps the "
     "values "
     "of another, and this job is one process: leave 'durability' out"},
    {"cluster: {worker: [local]}\ndurability: {snapshot: {every_steps: 5}}\n",
     "c.yaml:2:14: error: 'snapshot' needs a ps, and the cluster has none: leave 'durability' out; "
     "a job in one process goes on from its checkpoints ('checkpoint' in 'train')"},
    {"cluster: here\n", "c.yaml:1:10: error: expected a map for 'cluster', got 'here'"},
    {"cluster: {ps: a:1, worker: [b:1]}\n",
     "c.yaml:1:15: error: expected a list for 'ps', got 'a:1'"},
    {"cluster: {ps: [a:1], worker: []}\n",
     "c.yaml:1:22: error: 'worker' must have from 1 to 1024 tasks, got 0"},
    {"cluster: {ps: [a:1], worker: [a:0]}\n",
     "c.yaml:1:31: error: bad address 'a:0': a port is from 1 to 65535, or auto"},
    {"cluster: {ps: [a:1], worker: [a:70000]}\n",
     "c.yaml:1:31: error: bad address 'a:70000': a port is from 1 to 65535, or auto"},
    {"cluster: {ps: [a:1], worker: ['a b:7']}\n",
     "c.yaml:1:31: error: bad address 'a b:7': a host name has letters, digits, '.', '-' and '_', "
     "and "
     "does not start with '-'"},
    {"cluster: {ps: [a:1], worker: ['::1:7']}\n",
     "c.yaml:1:31: error: bad address '::1:7': an IPv6 address goes between brackets: "
     "\"[::1]:2222\""},
    {"cluster:\n  ps: [localhost:1]\n  worker: [b:1, 127.0.0.1:1]\n",
     "c.yaml:3:17: error: ps/0 and worker/1 are both at 127.0.0.1:1"},
    {"cluster:\n  ps: [a:1]\n  worker:\n    - devices: [cpu:0]\n",
     "c.yaml:4:7: error: missing key 'address' in 'worker/0': host:port, or host:auto for a port "
     "that "
     "dtf-launch chooses"},
    {"cluster:\n  ps: [a:1]\n  worker:\n    - adress: b:1\n      address: b:1\n",
     "c.yaml:4:7: error: unknown key 'adress' in 'worker/0' - did you mean 'address'?"},
    {"cluster: {ps: [{address: a:1, threads: 2}], worker: [b:1]}\n",
     "c.yaml:1:40: error: 'threads' is for workers: a ps chooses its number of threads itself"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, threads: 0}]}\n",
     "c.yaml:1:55: error: 'threads' must be from 1 to 1024, got '0'"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, devices: [tpu]}]}\n",
     "c.yaml:1:56: error: unknown device 'tpu': this version has cpu:0 to cpu:63 and gpu:0 to "
     "gpu:15"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, devices: [gpu:0, gpu:16]}]}\n",
     "c.yaml:1:63: error: unknown device 'gpu:16': this version has cpu:0 to cpu:63 and gpu:0 to "
     "gpu:15"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, devices: [cpu:1, cpu:01]}]}\n",
     "c.yaml:1:63: error: unknown device 'cpu:01': this version has cpu:0 to cpu:63 and gpu:0 to "
     "gpu:15"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, devices: [cpu:1, cpu:0, cpu:1]}]}\n",
     "c.yaml:1:70: error: device 'cpu:1' is listed twice"},
    {"cluster: {ps: [{address: a:1, devices: [cpu:0, cpu:1]}], worker: [b:1]}\n",
     "c.yaml:1:48: error: device 'cpu:1' of a ps: only workers have devices other than cpu:0"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, env: {9A: x}}]}\n",
     "c.yaml:1:52: error: an environment variable's name has letters, digits and '_', got '9A'"},
    {"cluster: {ps: [a:1], worker: [{address: b:1, env: {A: \"x\\0y\"}}]}\n",
     "c.yaml:1:55: error: 'A' holds a control character"},
    {"cluster: {ps: [a:1], worker: [b:1, ~]}\n",
     "c.yaml:1:36: error: 'worker/1' needs a value: a text"},
    {"job: a/b\ncluster: {ps: [a:1], worker: [b:1]}\n",
     "c.yaml:1:6: error: a job's name has letters, digits, '.', '_' and '-', does not start with "
     "'.' or '-', and has at most 128 characters, got 'a/b'"},
    {"job: ..\ncluster: {ps: [a:1], worker: [b:1]}\n",
     "c.yaml:1:6: error: a job's name has letters, digits, '.', '_' and '-', does not start with "
     "'.' or '-', and has at most 128 characters, got '..'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: kubernetes}\n",
     "c.yaml:2:15: error: 'kubernetes' is not available in this version"},
    {"cluster: {ps: [a:1], worker: [b:auto]}\nlaunch: {via: systemd}\n",
     "c.yaml:1:31: error: via systemd each task needs an address with a port number: the others "
     "reconnect to it after a restart"},
    {"cluster: {ps: [a:1], worker: {count: 2}}\nlaunch: {via: systemd}\n",
     "c.yaml:1:30: error: via systemd each task needs an address with a port number: the others "
     "reconnect to it after a restart"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {via: rsh}\n",
     "c.yaml:2:15: error: unknown via 'rsh' - did you mean 'ssh'?"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nlaunch: {user: me}\n",
     "c.yaml:2:10: error: 'user' is for 'via: ssh' and 'via: systemd'"},
    {"cluster: {ps: ['-a:1'], worker: [b:1]}\n",
     "c.yaml:1:16: error: bad address '-a:1': a host name has letters, digits, '.', '-' and '_', "
     "and "
     "does not start with '-'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntimeouts: {lease_seconds: 0}\n",
     "c.yaml:2:27: error: 'lease_seconds' must be more than 0 and at most 86400, got '0'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntimeouts: {lease_seconds: 1}\n",
     "c.yaml:2:1: error: 'lease_seconds' (1) must be more than 'heartbeat_seconds' (1)"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nmetrics:\n",
     "c.yaml:2:1: error: 'metrics' needs a value: /metrics, /healthz and /readyz of each task, "
     "over "
     "HTTP; default: none"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nmetrics: {}\n",
     "c.yaml:2:1: error: missing key 'port' in 'metrics': auto, or the port of each host's first "
     "task; the others count up"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntraces: {every_steps: 5}\n",
     "c.yaml:2:1: error: missing key 'endpoint' in 'traces': http://host[:port][/path]; default "
     ":4318/v1/traces, in JSON"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntraces: {endpoint: 'https://c:4318'}\n",
     "c.yaml:2:20: error: bad endpoint 'https://c:4318': TLS to a collector is not supported yet: "
     "use http:// to a collector on each host, or in a network that you trust"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntraces: {endpoint: 'c:4318'}\n",
     "c.yaml:2:20: error: bad endpoint 'c:4318': it does not begin with http://"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntraces: {endpoint: 'http://c:auto'}\n",
     "c.yaml:2:20: error: bad endpoint 'http://c:auto': a collector's port is a number"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntraces: {endpoint: \"http://c/a b\"}\n",
     "c.yaml:2:20: error: bad endpoint 'http://c/a b': its path has characters that a URL can't "
     "have"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nmetrics: {port: 0}\n",
     "c.yaml:2:17: error: bad port '0': a port is from 1 to 65535, or auto"},
    {"cluster: {ps: [a:1], worker: [a:2, A:3]}\nmetrics: {port: 65534}\n",
     "c.yaml:2:17: error: worker/1 would answer at port 65536: the tasks of a host count up from "
     "65534, and the last port is 65535"},
    {"cluster: {ps: [a:9401], worker: [b:1, a:2]}\nmetrics: {port: 9400}\n",
     "c.yaml:2:17: error: worker/1 would answer at a:9401, the address of ps/0: the tasks of a "
     "host count up from 9400"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: replicas\n",
     "c.yaml:2:13: error: unknown durability 'replicas' - did you mean 'replica'?"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: [replica]\n",
     "c.yaml:2:1: error: expected one durability, got a list"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability:\n",
     "c.yaml:2:1: error: 'durability' needs a value: source of a lost ps's values; default "
     "checkpoint; without ps replica"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: {replica: , checkpoint: }\n",
     "c.yaml:2:1: error: expected one durability, got a map, 'replica' and 'checkpoint'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: replica\n",
     "c.yaml:2:13: error: 'replica' needs at least two ps tasks, as each keeps the values of "
     "another, got 1: add a ps to the cluster, or choose checkpoint or snapshot"},
    {"cluster: {ps: [a:1, a:2], worker: [b:1]}\ndurability: {replica: {every_steps: 3}}\n",
     "c.yaml:2:14: error: 'replica' has no settings: write durability: replica"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: snapshot\n",
     "c.yaml:2:13: error: missing key 'every_steps' in 'snapshot': global steps between snapshots"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: {snapshot: {every_steps: 0}}\n",
     "c.yaml:2:38: error: 'every_steps' must be from 1 to 1000000000000, got '0'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ndurability: {snapshot: {every_steps: 5, every_step: "
     "5}}\n",
     "c.yaml:2:41: error: unknown key 'every_step' in 'snapshot' - did you mean 'every_steps'?"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntrain: none.yaml\n",
     "c.yaml:2:8: error: cannot read none.yaml: No such file or directory (2)"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntrain: [1]\n",
     "c.yaml:2:1: error: expected a map for 'train', got a list"},
    {"cluster: {worker: [a:1, b:1]}\ntrain: {model: {input: {shape: [4]}, layers: [relu], loss: "
     "mse}, replication: {leader: ps/0}}\n",
     "c.yaml:2:88: error: the leader is one of the workers, as worker/1, got 'ps/0'"},
    {"cluster: {worker: [a:1, b:1]}\ntrain: {model: {input: {shape: [4]}, layers: [relu], loss: "
     "mse}, replication: {leader: worker/2}}\n",
     "c.yaml:2:88: error: there is no 'worker/2': the cluster has 2 workers"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nrun_dir: \"\"\n",
     "c.yaml:2:10: error: 'run_dir' is empty: write a text, or leave it out"},
    {"cluster: {ps: [a:1], worker: [b:1]}\nrun_dir: ~somebody/x\n",
     "c.yaml:2:10: error: '~somebody' is not expanded: write the whole path"},
    {"cluster: {ps: [\"http://a:1\"], worker: [b:1]}\n",
     "c.yaml:1:16: error: bad address 'http://a:1': an address is host:port, without 'http://'"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ninsecure: yes\n",
     "c.yaml:2:11: error: expected true or false for 'insecure', got 'yes'"},
    {"job:x\ncluster: {ps: [a:1], worker: [b:1]}\n",
     "c.yaml:1:1: error: a space is missing after 'job:'"},
    {"model: {input: {shape: [4]}, layers: [relu], loss: mse}\nstesp: 5\n",
     "c.yaml:2:1: error: unknown key 'stesp' in 'train' - did you mean 'steps'?"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ntrain: c.yaml\n",
     "c.yaml:2:8: error: 'c.yaml' is a CLUSTER.yaml (it has 'cluster' and no 'model'): 'train' "
     "names a TRAIN.yaml"},
    {"cluster: {ps: [a:1], worker: [b:1]}\ncluster: {}\n",
     "c.yaml:2:1: error: duplicate key 'cluster', first on line 1"},
    {"cluster:\n\tps: [a:1]\n",
     "c.yaml:2:1: error: a tab in the indentation: YAML indents with spaces"},
    {"cluster: {ps: [a:1], worker: [b:1]\n", "c.yaml:1:10: error: this '{' is never closed"},
};

}  // namespace

TEST(BadFiles, ClusterFiles) {
  const TemporaryFiles files;
  for (const BadFile& bad : kBadClusters) {
    files.write("c.yaml", bad.text);
    EXPECT_EQ(firstLine(badConfigOf([] { loadCluster("c.yaml", {}); })), bad.first_line)
        << bad.text;
  }
}

}  // namespace dtf::cluster
