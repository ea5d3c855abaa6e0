#pragma once

// TF_CONFIG, the environment variable by which TensorFlow's programs, and the systems that start
// them, pass a cluster and a process's place in it:
//   {"cluster": {"ps": ["a:2222"], "chief": ["b:2222"], "worker": ["c:2222"]},
//    "task": {"type": "worker", "index": 0}}
// dtf's worker/0 is the chief. So with a `chief` (or `master`, its older name) TensorFlow's worker
// N is worker/N+1. dtf has no evaluator: the chief evaluates.

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace dtf::cluster {

// Value type.
struct TfConfig {
  std::vector<std::string> ps;      // addresses, "host:port"
  std::vector<std::string> worker;  // likewise, the chief first; empty: the text names no cluster
  std::optional<TaskId> task;       // of this process

  // The cluster as an override, `cluster={ps: [...], worker: [...]}` (cluster_yaml.h).
  std::string setting() const;
};

// Reads the variable's text. Every key is used, or one of TensorFlow's that means nothing here:
// `environment`, `job`, `rpc_layer`.
// Errors: kBadConfig with all mistakes, each at its line and column of TF_CONFIG: no JSON, an
// unknown key, an address without a port or of two tasks, a task that isn't in the cluster, an
// evaluator.
TfConfig readTfConfig(const std::string& text);

// Reads the variable of this process's environment; nullopt: it is not set, or empty.
// Errors: see readTfConfig().
std::optional<TfConfig> tfConfigOfEnvironment();

}  // namespace dtf::cluster
