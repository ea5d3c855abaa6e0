// Jobs whose workers host shards, without ps or, hybrid, beside them: a lost worker is a lost
// shard, too.

#include <algorithm>

#include "common/base/check.h"
#include "tests/sim/draw.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

Kind ofWorker(Kind kind) {
  if (kind == Kind::kKillPs) return Kind::kKillWorker;
  if (kind == Kind::kFreezePs) return Kind::kFreezeWorker;
  if (kind == Kind::kCutPs) return Kind::kCutWorker;
  return kind;
}

// Without ps: makes a fault of one that of the worker that hosts its shard.
void moveToHost(Fault& fault, const Plan& plan) {
  const bool is_of_any = fault.kind == Kind::kCut || fault.kind == Kind::kSilence;
  if (plan.ps_tasks == 0) {
    fault.kind = ofWorker(fault.kind);
    if (!is_of_any) fault.target %= plan.workers;
  }
  // A frozen process keeps its port. By hand nobody stops all hosts at once.
  if (!plan.launched) fault.successor = false;
}

std::vector<uint32_t> drawVictims(Random& random, uint32_t workers) {
  std::vector<uint32_t> victims(workers);
  for (uint32_t rank = 0; rank < workers; ++rank) victims[rank] = rank;
  const uint64_t many = random.below(4);
  if (many == 3) return victims;
  for (uint32_t i = 0; i < workers; ++i)
    std::swap(victims[i], victims[i + random.below(workers - i)]);
  victims.resize(std::min<size_t>(workers, many == 2 ? 2 : 1));
  return victims;
}

// A host is killed, and when two steps have been made since, another or the same: nothing is lost.
void drawTwoLosses(Random& random, Plan& plan, Fault fault) {
  plan.replicas = true;
  plan.snapshot_every_steps = 0;
  plan.checkpoints = false;
  plan.steps += plan.epochs == 0 ? 10 : 0;
  fault.kind = Kind::kKillWorker;
  fault.target = static_cast<uint32_t>(random.below(plan.workers));
  plan.lives[0].faults = {fault};
  fault.since = Fault::Since::kTrainsOn;
  fault.at = upTo(random, milliseconds(oneIn(random, 2) ? 5 : 200));
  fault.target = static_cast<uint32_t>(random.below(plan.workers));
  plan.lives[0].faults.push_back(fault);
}

// One host, two or all are killed, frozen or cut off at a named point of a step or of a recovery.
void drawLostHosts(Random& random, Plan& plan) {
  plan.lives.resize(1);
  plan.early_timeouts = false;
  plan.early_echo_share = 0;
  plan.timeouts = planTimeouts();
  plan.disk_error_share = 0;
  std::vector<Fault>& faults = plan.lives[0].faults;
  faults.clear();
  Fault fault;
  fault.at = milliseconds(350) + upTo(random, plan.compute_max * static_cast<int64_t>(plan.steps));
  const uint64_t how = random.below(4);
  fault.kind = how < 2 ? Kind::kKillWorker : how == 2 ? Kind::kFreezeWorker : Kind::kCutWorker;
  fault.length = seconds(5);
  const uint64_t point = random.below(6);
  if (point == 5 && plan.sync()) return drawTwoLosses(random, plan, fault);
  if (point == 1) {
    fault.since = Fault::Since::kAllJoined;
    fault.at = upTo(random, milliseconds(20));
  } else if (point == 2) {
    plan.slow_updates = true;
    fault.since = Fault::Since::kFollowerUpdates;
    fault.at = upTo(random, milliseconds(5));
  } else if (point > 2) {
    Fault first = fault;
    first.kind = Kind::kKillWorker;
    first.target = static_cast<uint32_t>(random.below(plan.workers));
    faults.push_back(first);
    fault.since = point == 3 ? Fault::Since::kPsIsBack : Fault::Since::kGoingBack;
    fault.at = upTo(random, milliseconds(oneIn(random, 2) ? 20 : 400));
  }
  for (const uint32_t victim : drawVictims(random, plan.workers)) {
    fault.target = victim;
    faults.push_back(fault);
  }
}

// The same of a ps, alone or beside them.
void drawLostPs(Random& random, Plan& plan) {
  std::vector<Fault>& faults = plan.lives[0].faults;
  if (faults.empty() || oneIn(random, 2)) return;
  Fault fault = faults.back();
  if (oneIn(random, 2)) faults.pop_back();
  fault.kind = fault.kind == Kind::kKillWorker     ? Kind::kKillPs
               : fault.kind == Kind::kFreezeWorker ? Kind::kFreezePs
                                                   : Kind::kCutPs;
  fault.target = static_cast<uint32_t>(random.below(plan.ps_tasks));
  faults.push_back(fault);
}

}  // namespace

// A job that keeps nothing ends with the first loss, so all of these keep something.
void drawHosts(Random& random, Plan& plan) {
  if (plan.workers == 1 || plan.isOfTheEnd() || plan.givesUpParts()) return;
  plan.workers_host = true;
  Random hybrid = streamOf(plan.seed, Stream::kHybrid);
  if (!oneIn(hybrid, 3)) plan.ps_tasks = 0;
  plan.ps_return = true;
  if (oneIn(random, 2) || !plan.supervised()) {
    plan.replicas = true;
    plan.snapshot_every_steps = 0;
  }
  for (Life& life : plan.lives)
    for (Fault& fault : life.faults) moveToHost(fault, plan);
  if (oneIn(random, 2)) {
    drawLostHosts(random, plan);
    if (plan.isHybrid()) drawLostPs(hybrid, plan);
  }
  // Where replicas alone don't suffice, all go back to a checkpoint.
  for (const Life& life : plan.lives) {
    const bool has_replicas = plan.onlyPsAreKilled(life) && plan.keepsReplicas(life);
    const bool is_one = life.faults.size() <= 1;
    if (plan.replicas && !has_replicas && !is_one) plan.checkpoints = true;
  }
  if (plan.lives.size() > 1) plan.checkpoints = true;
  // An early repeat ends the process that makes it, so two shards may be lost at once.
  if (plan.early_echo_share > 0) plan.checkpoints = true;
}

}  // namespace dtf::sim
