#include "tests/sim/plan.h"

#include <algorithm>

#include "tests/sim/draw.h"

namespace dtf::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

NetworkOptions drawNetwork(Random& random) {
  NetworkOptions network;
  network.latency_max = microseconds(100 + random.below(5000));
  if (oneIn(random, 3)) network.slow_share = 0.05;
  if (oneIn(random, 3)) network.split_share = 0.2;
  if (oneIn(random, 3)) network.tiny_read_share = 0.3;
  return network;
}

Fault drawFault(Random& random, const Plan& plan) {
  Fault fault;
  // While the job lives: it starts in about half a second.
  fault.at = upTo(random, milliseconds(600) + plan.compute_max * static_cast<int64_t>(plan.steps));
  const uint64_t kind = random.below(20);
  fault.kind = kind < 6    ? Fault::Kind::kKillWorker
               : kind < 7  ? Fault::Kind::kKillPs
               : kind < 12 ? Fault::Kind::kFreezeWorker
               : kind < 14 ? Fault::Kind::kFreezePs
               : kind < 17 ? Fault::Kind::kCut
                           : Fault::Kind::kSilence;
  const bool is_ps = fault.kind == Fault::Kind::kKillPs || fault.kind == Fault::Kind::kFreezePs;
  fault.target = static_cast<uint32_t>(random.below(is_ps ? plan.ps_tasks : plan.workers));
  if (fault.kind == Fault::Kind::kCut || fault.kind == Fault::Kind::kSilence)
    fault.target = static_cast<uint32_t>(random.below(1000));
  // Around the lease: shorter, and long enough to lose it.
  fault.length = milliseconds(50) + upTo(random, seconds(6));
  fault.successor = oneIn(random, 2);
  return fault;
}

// Draws the fault that ends a life before its job is done.
Fault drawEnding(Random& random, const Plan& plan) {
  Fault fault;
  fault.at = upTo(random, milliseconds(500) + plan.compute_max * static_cast<int64_t>(plan.steps));
  const uint64_t kind = random.below(8);
  fault.kind = kind < 4   ? Fault::Kind::kStop
               : kind < 7 ? Fault::Kind::kKillAll
                          : Fault::Kind::kKillPs;
  const bool is_ps = fault.kind == Fault::Kind::kKillPs;
  fault.target = static_cast<uint32_t>(random.below(is_ps ? plan.ps_tasks : plan.workers));
  fault.successor = oneIn(random, 3);
  return fault;
}

void sortFaults(std::vector<Fault>& faults) {
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// The first life has its faults already; the others go on where it ended.
void drawLives(Random& random, Plan& plan) {
  const uint64_t count = plan.checkpoints ? 1 + random.below(kLivesMax) : oneIn(random, 8) ? 2 : 1;
  for (uint64_t i = 1; i < count; ++i) {
    if (!oneIn(random, 5)) plan.lives.back().faults.push_back(drawEnding(random, plan));
    sortFaults(plan.lives.back().faults);
    plan.lives.back().power_cut = oneIn(random, 2);
    plan.lives.emplace_back();
    if (oneIn(random, 2)) continue;
    Fault fault = drawFault(random, plan);
    if (fault.kind != Fault::Kind::kKillPs) plan.lives.back().faults.push_back(fault);
  }
}

void drawCheckpoints(Random& random, Plan& plan) {
  plan.checkpoint = {.every_seconds = 0, .every_steps = 0, .keep = 0, .keep_every_hours = 0};
  if (oneIn(random, 2)) {
    plan.checkpoint.every_steps = 1 + random.below(4);
  } else {
    plan.checkpoint.every_seconds = 0.005 + 0.2 * random.uniform();
  }
  if (oneIn(random, 4)) plan.checkpoint.keep = 2;
}

void drawOptimizer(Random& random, Plan& plan) {
  using Kind = cluster::OptimizerSpec::Kind;
  const uint64_t kind = random.below(5);
  plan.optimizer.kind = kind < 2   ? Kind::kGradientDescent
                        : kind < 4 ? Kind::kAdam
                                   : Kind::kMomentum;
  plan.optimizer.learning_rate = plan.optimizer.kind == Kind::kAdam ? 0.5 : 1;
  plan.optimizer.momentum = 0.5;
}

void drawReplication(Random& random, Plan& plan) {
  const uint64_t mode = random.below(10);
  if (mode < 3) {
    plan.aggregate = 0;
  } else if (mode < 6) {
    plan.aggregate = plan.workers;
  } else if (mode < 9 && plan.workers > 1) {
    plan.aggregate = 1 + static_cast<uint32_t>(random.below(plan.workers - 1));
  } else {
    plan.aggregate = plan.workers + 1 + static_cast<uint32_t>(random.below(plan.workers));
  }
  Random overlap = streamOf(plan.seed, Stream::kOverlap);
  plan.overlap = oneIn(overlap, 2);
  Random shared_memory = streamOf(plan.seed, Stream::kSharedMemory);
  plan.shares_memory = oneIn(shared_memory, 3);
  Random streamed = streamOf(plan.seed, Stream::kStreamed);
  plan.streams = oneIn(streamed, 2);
  Random narrow = streamOf(plan.seed, Stream::kNarrow);
  plan.narrows = oneIn(narrow, 4);
  Random named = streamOf(plan.seed, Stream::kNamedRows);
  plan.names_rows = oneIn(named, 2);
  Random bounded = streamOf(plan.seed, Stream::kBounded);
  plan.bounds = oneIn(bounded, 2);
  plan.staleness = static_cast<uint32_t>(bounded.below(4));
}

// With backup workers on several ps a loss matters only while some ps have a gradient that others
// lack. So there are many losses.
void drawManyLosses(Random& random, Plan& plan) {
  constexpr size_t kLosses = 8;
  if (!plan.hasBackups() || plan.ps_tasks == 1 || oneIn(random, 4)) return;
  plan.lives[0].faults.clear();
  for (size_t i = 0; i < kLosses; ++i) {
    Fault fault = drawFault(random, plan);
    fault.kind = Fault::Kind::kKillWorker;
    fault.target = static_cast<uint32_t>(random.below(plan.workers));
    plan.lives[0].faults.push_back(fault);
  }
  sortFaults(plan.lives[0].faults);
}

// Draws losses in two intervals: while all go back, or between the last step and the end.
void drawLossesInBetween(Random& random, Plan& plan) {
  if (!plan.psComeBack() || !oneIn(random, 2)) return;
  // Alone in half of the plans: other faults would excuse broken promises.
  std::vector<Fault>& faults = plan.lives[0].faults;
  if (oneIn(random, 2)) faults.clear();
  const bool is_end = oneIn(random, 2);
  if (!is_end) {
    Fault first = drawFault(random, plan);
    first.kind = Fault::Kind::kKillPs;
    first.target = static_cast<uint32_t>(random.below(plan.ps_tasks));
    faults.push_back(first);
    sortFaults(faults);
  }
  Fault fault;
  fault.since = is_end ? Fault::Since::kFirstTrained : Fault::Since::kGoingBack;
  fault.at = upTo(random, milliseconds(is_end ? 60 : 8));
  const bool is_ps = is_end || oneIn(random, 2);
  fault.kind = is_ps ? Fault::Kind::kKillPs : Fault::Kind::kKillWorker;
  fault.target = is_ps ? static_cast<uint32_t>(random.below(plan.ps_tasks)) : kChief.index;
  faults.push_back(fault);
}

// A ps or two are lost while all train, and nothing else happens in that life: their replicas must
// bring everything back.
void drawLostReplicas(Random& random, Plan& plan) {
  plan.replicas = plan.ps_return = true;
  plan.snapshot_every_steps = 0;
  plan.early_timeouts = false;
  plan.timeouts = planTimeouts();
  plan.disk_error_share = 0;
  plan.lives[0].faults.clear();
  std::vector<Fault> faults;
  Fault first;
  first.kind = Fault::Kind::kKillPs;
  // The ps that decides the sets has most to lose.
  const bool decides = oneIn(random, plan.hasBackups() ? 2 : 4);
  // Then two gradients wait for a third: if they were lost, the other two workers would not
  // suffice.
  if (decides) plan.workers = 4, plan.aggregate = 3;
  first.target = decides ? 0 : static_cast<uint32_t>(random.below(plan.ps_tasks));
  first.at = milliseconds(200) + upTo(random, plan.compute_max * static_cast<int64_t>(plan.steps));
  faults.push_back(first);
  // Then the ps whose replica the first one kept is lost: its replica is whole again, or not quite.
  if (oneIn(random, 2)) {
    Fault second = first;
    second.target = (first.target + plan.ps_tasks - 1) % plan.ps_tasks;
    // Before a worker has pushed again, the refilled ps has all its values from the other one.
    const bool at_once = oneIn(random, 2);
    second.since = at_once ? Fault::Since::kPsIsBack : Fault::Since::kStart;
    if (at_once) plan.straggler_share = 0.3;
    second.at = at_once ? upTo(random, milliseconds(400))
                        : first.at + milliseconds(300) + upTo(random, milliseconds(2200));
    faults.push_back(second);
  }
  // A moment that a drawn time hardly ever hits.
  const uint64_t moment = faults.size() == 1 ? random.below(3) : 0;
  if (moment == 1) {
    // While the first replicas are being made: no worker may have trained, and no cut excuses a
    // loss.
    plan.lives.resize(1);
    plan.checkpoints = false;
    faults[0].since = Fault::Since::kAllJoined;
    faults[0].at = upTo(random, milliseconds(20));
  } else if (moment == 2 && decides) {
    // While some ps lack an update that ps/0 has announced.
    plan.slow_updates = true;
    faults[0].since = Fault::Since::kFollowerUpdates;
    faults[0].at = upTo(random, milliseconds(3));
  }
  sortFaults(faults);
  plan.lives[0].faults = faults;
  // A second loss may come before the replicas are whole again.
  if (faults.size() > 1 || plan.lives.size() > 1) plan.checkpoints = true;
}

// The link to a ps's replica breaks, again and again, before the ps is killed: a gradient that was
// sent twice is in the replica once.
void drawReplicaLinks(Random& random, Plan& plan) {
  constexpr int kBreaks = 6;
  if (!plan.replicas || !plan.psComeBack() || oneIn(random, 3)) return;
  std::vector<Fault>& faults = plan.lives[0].faults;
  const auto killed = std::find_if(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == Fault::Kind::kKillPs && fault.since == Fault::Since::kStart;
  });
  // With two losses, the second one is to meet the state after the first.
  if (killed == faults.end() || faults.size() > 1) return;
  const Fault kill = *killed;
  for (int i = 0; i < kBreaks; ++i) {
    Fault fault;
    fault.kind = oneIn(random, 4) ? Fault::Kind::kSilenceReplica : Fault::Kind::kCutReplica;
    fault.target = kill.target;
    fault.at = upTo(random, kill.at);
    fault.length = milliseconds(50) + upTo(random, seconds(3));
    faults.push_back(fault);
  }
  sortFaults(faults);
}

// A ps is lost soon after a request to stop: all go back to a cut, and stop there.
void drawLossAfterStop(Random& random, Plan& plan) {
  if (!plan.psComeBack()) return;
  for (Life& life : plan.lives) {
    if (!life.has(Fault::Kind::kStop) || oneIn(random, 2)) continue;
    Fault fault;
    fault.kind = Fault::Kind::kKillPs;
    // Or when training stops: some workers may have left already.
    fault.since = oneIn(random, 2) ? Fault::Since::kStopped : Fault::Since::kFirstTrained;
    fault.at = upTo(random, milliseconds(40));
    fault.target = oneIn(random, 2) ? 0 : static_cast<uint32_t>(random.below(plan.ps_tasks));
    life.faults.push_back(fault);
  }
}

// One task is killed again and again, each time when its budget has refilled enough.
void drawSpacedKills(Random& random, Plan& plan) {
  constexpr int kKills = 6;
  plan.restarts_max = 2;
  plan.refill_seconds = 1.5;
  plan.compute_max = milliseconds(600);
  plan.straggler_share = 0;
  plan.early_timeouts = false;
  plan.timeouts = planTimeouts();
  plan.early_echo_share = 0;
  plan.disk_error_share = 0;
  Fault fault;
  const bool is_ps = plan.psComeBack() && oneIn(random, 3);
  fault.kind = is_ps ? Fault::Kind::kKillPs : Fault::Kind::kKillWorker;
  fault.target = static_cast<uint32_t>(random.below(is_ps ? plan.ps_tasks : plan.workers));
  plan.lives[0].faults.clear();
  for (int i = 0; i < kKills; ++i) {
    fault.at = milliseconds(800 * (i + 1));
    plan.lives[0].faults.push_back(fault);
  }
}

// Backup workers die for good: as many as no step needs, or one more.
void drawMissedBackups(Random& random, Plan& plan) {
  plan.restarts_max = static_cast<uint32_t>(random.below(2));
  plan.compute_max = milliseconds(400);
  plan.straggler_share = 0;
  plan.early_timeouts = false;
  plan.timeouts = planTimeouts();
  plan.early_echo_share = 0;
  plan.disk_error_share = 0;
  plan.lives.resize(1);
  std::vector<Fault>& faults = plan.lives[0].faults;
  faults.clear();
  const uint32_t backups = plan.workers - plan.aggregate;
  const uint32_t lost = backups + (oneIn(random, 4) ? 1 : 0);
  for (uint32_t i = 0; i < lost; ++i) {
    Fault fault;
    fault.kind = Fault::Kind::kKillWorker;
    fault.target = 1 + i;  // not the chief
    if (fault.target >= plan.workers) break;
    fault.at = milliseconds(600) + upTo(random, milliseconds(900));
    for (uint32_t times = 0; times <= plan.restarts_max; ++times) {
      faults.push_back(fault);
      fault.at += milliseconds(1000);
    }
  }
  sortFaults(faults);
}

// Draws the starter of the tasks. dtf-launch starts a lost ps again even if no task holds its
// values; the simulated chief does not supervise values that are not saved.
void drawLaunch(Random& random, Plan& plan) {
  const bool ps_lost = std::any_of(plan.lives.begin(), plan.lives.end(), [](const Life& life) {
    return life.has(Fault::Kind::kKillPs) || life.has(Fault::Kind::kFreezePs);
  });
  plan.launched = oneIn(random, 2) && (plan.psComeBack() || !ps_lost);
  if (plan.launched && oneIn(random, 8)) return drawSpacedKills(random, plan);
  if (plan.launched && plan.hasBackups() && oneIn(random, 3)) drawMissedBackups(random, plan);
}

Plan makeSeededPlan(uint64_t seed) {
  Random random = streamOf(seed, Stream::kCluster);
  Plan plan;
  plan.seed = seed;
  plan.ps_tasks = 1 + static_cast<uint32_t>(random.below(3));
  plan.workers = 1 + static_cast<uint32_t>(random.below(4));
  drawReplication(random, plan);
  plan.steps = 5 + random.below(12);
  plan.slow_updates = oneIn(random, 12);
  plan.network = drawNetwork(random);
  plan.compute_max = milliseconds(1 + random.below(60));
  if (oneIn(random, 3)) plan.straggler_share = 0.1;
  if (oneIn(random, 2)) plan.echo_share = 0.2;
  if (oneIn(random, 8)) plan.early_echo_share = 0.05;
  plan.timeouts = planTimeouts();
  plan.lives.emplace_back();
  if (oneIn(random, 12)) {
    plan.early_timeouts = true;
    plan.timeouts.step_seconds = 0.05 + random.uniform();
  }
  if (!oneIn(random, 4)) {
    const uint64_t count = 1 + random.below(3);
    for (uint64_t i = 0; i < count; ++i) plan.lives[0].faults.push_back(drawFault(random, plan));
    sortFaults(plan.lives[0].faults);
  }
  Random disk = streamOf(seed, Stream::kCheckpoints);
  plan.checkpoints = oneIn(disk, 2);
  if (oneIn(disk, 4)) plan.disk_error_share = 0.02;
  drawCheckpoints(disk, plan);
  Random lives = streamOf(seed, Stream::kLives);
  drawOptimizer(lives, plan);
  Random rows = streamOf(seed, Stream::kSparse);
  plan.sparse = oneIn(rows, 4);
  drawLives(lives, plan);
  Random recovery = streamOf(seed, Stream::kLostPs);
  plan.ps_return = !oneIn(recovery, 4);
  Random durability = streamOf(seed, Stream::kDurability);
  if (oneIn(durability, 3))
    plan.snapshot_every_steps = 1 + durability.below(4);
  else if (plan.ps_tasks > 1 && plan.checkpoints && oneIn(durability, 2))
    plan.replicas = true;
  // Kills of ps are rare above, because once they ended every job.
  while (plan.psComeBack() && oneIn(recovery, 2)) {
    Fault fault = drawFault(recovery, plan);
    fault.kind = Fault::Kind::kKillPs;
    fault.target = static_cast<uint32_t>(recovery.below(plan.ps_tasks));
    plan.lives[0].faults.push_back(fault);
    sortFaults(plan.lives[0].faults);
  }
  Random losses = streamOf(seed, Stream::kManyLosses);
  drawManyLosses(losses, plan);
  Random in_between = streamOf(seed, Stream::kLossesInBetween);
  drawLossesInBetween(in_between, plan);
  // Snapshots are not needed where no ps is lost: those seeds are for other faults.
  if (std::none_of(plan.lives.begin(), plan.lives.end(),
                   [](const Life& life) { return life.has(Fault::Kind::kKillPs); }))
    plan.snapshot_every_steps = 0;
  Random replicas = streamOf(seed, Stream::kLostReplicas);
  if (plan.ps_tasks > 1 && oneIn(replicas, 3)) drawLostReplicas(replicas, plan);
  Random links = streamOf(seed, Stream::kReplicaLinks);
  drawReplicaLinks(links, plan);
  Random stops = streamOf(seed, Stream::kLossAfterStop);
  drawLossAfterStop(stops, plan);
  Random launch = streamOf(seed, Stream::kLaunch);
  drawLaunch(launch, plan);
  Random gather = streamOf(seed, Stream::kGather);
  plan.gather = plan.checkpoints && oneIn(gather, 3);
  plan.stay = plan.checkpoints && !plan.gather && oneIn(gather, 3);
  return plan;
}

}  // namespace

Plan makePlanOfSteps(uint64_t seed) {
  return seed >= kFirstEndPlan ? makeEndPlan(seed - kFirstEndPlan) : makeSeededPlan(seed);
}

Plan makePlan(uint64_t seed) {
  Plan plan = makePlanOfSteps(seed);
  Random epochs = streamOf(seed, Stream::kEpochs);
  if (oneIn(epochs, 3)) drawEpochs(epochs, plan);
  Random hosts = streamOf(seed, Stream::kHosts);
  if (oneIn(hosts, 4)) drawHosts(hosts, plan);
  return plan;
}

}  // namespace dtf::sim
