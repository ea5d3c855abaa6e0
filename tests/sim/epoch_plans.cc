// Jobs that use each example once an epoch.

#include <algorithm>

#include "tests/sim/draw.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;

// One worker is lost again and again, and not awaited for long: others may do its part.
void drawGivenUpParts(Random& random, Plan& plan) {
  constexpr int kKills = 5;
  if (plan.workers == 1 || plan.launched || plan.isOfTheEnd() || !oneIn(random, 3)) return;
  plan.timeouts = planTimeouts();
  plan.timeouts.rejoin_seconds = 0.05 + 0.4 * random.uniform();
  plan.early_timeouts = false;
  plan.early_echo_share = 0;
  plan.disk_error_share = 0;
  plan.lives.resize(1);
  std::vector<Fault>& faults = plan.lives[0].faults;
  faults.clear();
  Fault fault;
  fault.kind = Fault::Kind::kKillWorker;
  fault.target = static_cast<uint32_t>(random.below(plan.workers));
  fault.at = milliseconds(400);
  for (int i = 0; i < kKills; ++i) {
    fault.at += upTo(random, plan.compute_max * 4);
    faults.push_back(fault);
  }
}

// The ps that grants the steps is lost, and filled from its replica, when some workers may have
// done their parts and others not.
void drawLostLeader(Random& random, Plan& plan) {
  if (plan.workers == 1 || plan.ps_tasks == 1 || plan.isOfTheEnd() || !oneIn(random, 3)) return;
  plan.replicas = plan.ps_return = true;
  plan.snapshot_every_steps = 0;
  plan.straggler_share = 0.3;
  plan.early_timeouts = false;
  plan.timeouts = planTimeouts();
  plan.lives.resize(1);
  Fault fault;
  fault.kind = Fault::Kind::kKillPs;
  const Duration all = plan.compute_max * static_cast<int64_t>(plan.steps / plan.workers);
  fault.at = milliseconds(200) + all / 2 + upTo(random, 2 * all);
  if (oneIn(random, 2)) {
    fault.since = Fault::Since::kPartDone;
    fault.at = upTo(random, milliseconds(20));
  }
  plan.lives[0].faults = {fault};
}

// A worker is lost as the training begins, and returns when the others have done their parts: it
// comes further ahead of them than the bound allows.
void drawLateReturn(Random& random, Plan& plan) {
  if (!plan.bounded() || plan.workers == 1 || plan.isOfTheEnd() || !oneIn(random, 3)) return;
  plan.compute_max = milliseconds(1 + random.below(4));
  plan.straggler_share = 0;
  plan.staleness = static_cast<uint32_t>(random.below(2));
  plan.early_timeouts = false;
  plan.early_echo_share = 0;
  plan.timeouts = planTimeouts();
  plan.disk_error_share = 0;
  plan.lives.resize(1);
  Fault fault;
  fault.kind = Fault::Kind::kKillWorker;
  fault.since = Fault::Since::kAllJoined;
  fault.at = upTo(random, milliseconds(20));
  fault.target = static_cast<uint32_t>(random.below(plan.workers));
  plan.lives[0].faults = {fault};
}

}  // namespace

// The last step of an epoch is short in most plans, and in half of them some of its shares are
// empty. Weights of rows are exact: the largest batch is a power of two.
void drawEpochs(Random& random, Plan& plan) {
  const uint32_t batches = plan.sync() ? std::max(plan.aggregate, plan.workers) : 1;
  plan.epochs = 1 + random.below(3);
  const uint64_t groups = std::max<uint64_t>(1, plan.steps / plan.epochs);
  plan.batch_size = plan.sparse ? uint64_t{1} << random.below(4) : 1 + random.below(6);
  const uint64_t full = plan.batch_size * batches;
  const bool is_empty = batches > 1 && oneIn(random, 2);
  uint64_t last = 1 + random.below(is_empty ? batches - 1 : full);
  if (plan.sparse && groups == 1) last = full;
  plan.steps = plan.epochs * groups;
  plan.examples = (groups - 1) * full + last;
  if (plan.sync()) return;
  drawGivenUpParts(random, plan);
  if (plan.givesUpParts()) return;
  drawLostLeader(random, plan);
  drawLateReturn(random, plan);
}

}  // namespace dtf::sim
