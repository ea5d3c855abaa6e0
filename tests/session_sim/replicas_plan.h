#pragma once

// Everything that one seed decides beforehand of a training by synchronous replicas, each under a
// supervisor: the tasks that serve, the clients, the network, the faults and when.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/session_sim/session_plan.h"

namespace dtf::sim {

// Seeds from here on are trainings by replicas, before it sessions of one client each.
inline constexpr uint64_t kFirstReplicasSeed = 1'000'000'000;

struct ReplicasFault {
  SessionFault fault;
  // The fault comes with this message of the network; 0: at its time.
  uint64_t message = 0;
  // The chief dies within its checkpoint instead, at so many operations of the disk from now; 0: it
  // doesn't.
  uint32_t disk_operations = 0;
  std::string text() const;
};

struct ReplicasPlan {
  // Its seed, tasks, clients, network and limits; `steps`: of the whole training. Its faults are
  // unused.
  SessionPlan world;
  uint32_t aggregate = 1;  // gradients of one step
  std::string optimizer = "gradient_descent learning_rate=0.5";
  Duration save_every{};
  Duration poll_every{};
  Duration wait_max{};
  std::vector<ReplicasFault> faults;

  // Each step has the gradients of all clients: the batch may follow from the rank, too.
  bool hasAllRanks() const { return aggregate >= world.clients; }
  std::string text() const;
};

ReplicasPlan makeReplicasPlan(uint64_t seed);

}  // namespace dtf::sim
