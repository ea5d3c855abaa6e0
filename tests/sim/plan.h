#pragma once

// Everything that one seed decides beforehand: the cluster, its network, the faults and when.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/ps/parameter_client.h"
#include "tests/sim/network.h"

namespace dtf::sim {

struct Fault {
  enum class Kind : uint8_t {
    kKillWorker,
    kKillPs,
    kFreezeWorker,  // SIGSTOP for `length`; with `successor` a new process starts meanwhile
    kFreezePs,
    kCut,      // a connection is reset
    kSilence,  // nothing passes on a connection for `length`
  };
  Kind kind = Kind::kCut;
  Duration at{};  // since the start
  uint32_t target = 0;
  Duration length{};
  bool successor = false;
  std::string text() const;
};

struct Plan {
  uint64_t seed = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  uint32_t aggregate = 0;  // sync: gradients a step; 0: async
  uint64_t steps = 10;
  bool slow_updates = false;    // arenas too large to be updated in place, on a slow runner
  double echo_share = 0;        // of the exchanges: said a second time, after the answer
  double early_echo_share = 0;  // of the exchanges: said a second time beside the first
  Duration compute_max{};       // of one batch
  double straggler_share = 0;   // of the batches: these take 20 times as long
  cluster::Timeouts timeouts;
  bool early_timeouts = false;
  Duration checkpoint_pause{};  // the longest between two checkpoints; 0: there are none
  double disk_error_share = 0;  // of the operations on the disk that change something
  NetworkOptions network;
  std::vector<Fault> faults;

  bool sync() const { return aggregate > 0; }
  bool hasBackups() const { return sync() && aggregate < workers; }
  uint32_t batchesMax() const;
  ps::ModelDeclaration model(uint64_t elements) const;

  // Nothing at all goes wrong: no process may fail.
  bool undisturbed() const;
  // What goes wrong can be mended by starting workers again: the job must finish.
  bool mustFinish() const;
  std::string text() const;
};

// A worker is started at most this often.
inline constexpr uint32_t kProcessesMax = 8;

Plan makePlan(uint64_t seed);

}  // namespace dtf::sim
