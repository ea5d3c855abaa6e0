#include "tests/session_sim/replicas_plan.h"

#include <fmt/format.h>

#include "tests/sim/draw.h"

namespace dtf::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = SessionFault::Kind;

NetworkOptions drawReplicasNetwork(Random& random) {
  NetworkOptions network;
  network.latency_max = microseconds(100 + random.below(3000));
  if (oneIn(random, 4)) network.slow_share = 0.02;
  if (oneIn(random, 3)) network.split_share = 0.3;
  if (oneIn(random, 4)) network.tiny_read_share = 0.3;
  return network;
}

ReplicasFault drawReplicasFault(Random& random) {
  ReplicasFault drawn;
  SessionFault& fault = drawn.fault;
  fault.at = upTo(random, seconds(3));
  const uint64_t kind = random.below(20);
  fault.kind = kind < 7    ? Kind::kKillTask
               : kind < 14 ? Kind::kKillClient
               : kind < 16 ? Kind::kFreezeTask
               : kind < 18 ? Kind::kFreezeClient
                           : Kind::kCut;
  fault.target = static_cast<uint32_t>(random.below(1000));
  fault.length = milliseconds(50) + upTo(random, seconds(4));
  if (oneIn(random, 2)) drawn.message = 1 + random.below(3000);
  if (oneIn(random, 10)) drawn.disk_operations = 1 + static_cast<uint32_t>(random.below(30));
  return drawn;
}

}  // namespace

ReplicasPlan makeReplicasPlan(uint64_t seed) {
  Random random(seed, 103);
  ReplicasPlan plan;
  SessionPlan& world = plan.world;
  world.seed = seed;
  world.ps_tasks = 1 + static_cast<uint32_t>(random.below(3));
  world.workers = static_cast<uint32_t>(random.below(2));
  world.clients = 1 + static_cast<uint32_t>(random.below(3));
  world.steps = 4 + static_cast<uint32_t>(random.below(12));
  world.elements = 4;
  world.step_max = oneIn(random, 4) ? seconds(10 + random.below(20)) : seconds(600);
  world.network = drawReplicasNetwork(random);
  // Each client brings one gradient, some are backups, or some bring several.
  plan.aggregate = world.clients;
  if (oneIn(random, 4) && plan.aggregate > 1)
    --plan.aggregate;
  else if (oneIn(random, 4))
    ++plan.aggregate;
  if (oneIn(random, 2)) plan.optimizer = "momentum learning_rate=0.25 momentum=0.5";
  plan.save_every = milliseconds(5) + upTo(random, milliseconds(300));
  plan.poll_every = milliseconds(100) + upTo(random, milliseconds(400));
  plan.wait_max = seconds(60);
  const uint64_t faults = oneIn(random, 8) ? 0 : 1 + random.below(6);
  for (uint64_t i = 0; i < faults; ++i) plan.faults.push_back(drawReplicasFault(random));
  return plan;
}

std::string ReplicasFault::text() const {
  if (disk_operations > 0)
    return fmt::format("the chief dies within {} operations of its disk", disk_operations);
  if (message == 0) return fault.text();
  return fmt::format("{}, but with message {}", fault.text(), message);
}

std::string ReplicasPlan::text() const {
  std::string text = fmt::format(
      "seed {}: {} ps, {} workers, {} clients, {} gradients a step, {} steps in {:g} s each, {}\n"
      "  saved every {:.3f} s, looked at every {:.3f} s\n",
      world.seed, world.ps_tasks, world.workers, world.clients, aggregate, world.steps,
      toSeconds(world.step_max), optimizer, toSeconds(save_every), toSeconds(poll_every));
  for (const ReplicasFault& fault : faults) text += "  " + fault.text() + "\n";
  return text;
}

}  // namespace dtf::sim
