#pragma once

// Everything that one seed decides beforehand of a world of sessions: the tasks that serve, their
// clients, the network, the faults and when.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/sim/network.h"

namespace dtf::sim {

struct SessionFault {
  enum class Kind : uint8_t {
    kKillTask,    // started again after `length`
    kKillClient,  // likewise
    kFreezeTask,  // SIGSTOP for `length`
    kFreezeClient,
    kCut,      // a connection is reset
    kSilence,  // nothing passes on a connection for `length`
  };
  Kind kind = Kind::kCut;
  Duration at{};
  uint32_t target = 0;
  Duration length{};
  std::string text() const;
};

struct SessionPlan {
  uint64_t seed = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  uint32_t devices = 1;  // CPUs of each task
  uint32_t clients = 1;
  uint32_t steps = 10;     // that each client needs to end well
  int64_t elements = 4;    // of most tensors: a few are copied into their message, many referred to
  bool lookups = false;    // each session runs a second plan beside the first
  double bad_share = 0;    // of the lookups: with an index out of range
  double abort_share = 0;  // of the steps: their client aborts them
  double slow_share = 0;   // of the devices' programs: they take up to `slow_max`
  Duration slow_max = std::chrono::seconds(3);
  bool jobs = false;      // each session fills a queue, and empties it, beside its steps
  bool stranger = false;  // a stranger sends tensors that are late, doubled, or of a dead process
  Duration step_max{};
  Duration abort_max = std::chrono::seconds(5);
  NetworkOptions network;
  std::vector<SessionFault> faults;

  uint32_t tasks() const { return ps_tasks + workers; }
  bool has(SessionFault::Kind kind) const;
  // Without faults: a step may fail only for its own client's actions.
  bool isCalm() const { return faults.empty(); }
  // Clients die, and nothing else happens: no other client may notice.
  bool onlyClientsDie() const;
  // A client may give up a task: for a fault, or because a program outlasts an abort.
  bool losesTasks() const { return !onlyClientsDie() || slow_share > 0; }
  // Every report of an end arrives soon: nothing is frozen, silent or slow.
  bool isPrompt() const;
  std::string text() const;
};

SessionPlan makeSessionPlan(uint64_t seed);

}  // namespace dtf::sim
