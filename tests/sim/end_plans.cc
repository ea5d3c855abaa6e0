// Jobs that are hurt at their end: each task, each pair of tasks and all of them are killed, frozen
// and cut off at each named point from the last step to the last task's leaving, with each way in
// which a job keeps its values, with ps and without, under dtf-launch and by hand.

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "tests/sim/draw.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Since = Fault::Since;

constexpr std::array kPoints = {
    Since::kFirstTrained,   Since::kLastSave,  Since::kLastSaved,   Since::kFirstMet,
    Since::kLastEvaluation, Since::kResult,    Since::kFirstLeaves, Since::kFirstLeft,
    Since::kChiefLeaves,    Since::kChiefLeft,
};

enum class How : uint8_t { kKill, kFreeze, kCut };
constexpr std::array kHows = {How::kKill, How::kFreeze, How::kCut};

// Bit sets of ps/0, ps/1, worker/0 and worker/1, or of four workers without ps: each, each pair,
// all.
constexpr std::array<uint32_t, 11> kVictims = {1, 2, 4, 8, 3, 5, 9, 6, 10, 12, 15};
constexpr uint32_t kTasks = 4;
constexpr uint32_t kPsTasks = 2;

enum class Keeps : uint8_t { kCheckpoints, kSnapshots, kReplicas, kSnapshotsBesideCheckpoints };
constexpr std::array kKeeps = {Keeps::kCheckpoints, Keeps::kSnapshots, Keeps::kReplicas,
                               Keeps::kSnapshotsBesideCheckpoints};
constexpr uint64_t kModes = 2;     // sync, async
constexpr uint64_t kStarters = 2;  // dtf-launch, by hand
constexpr uint64_t kHosts = 2;     // ps, workers

// Has no divisor in common with kEndPlans, so that some numbers in a row are plans of all kinds.
constexpr uint64_t kStride = 1009;

static_assert(kEndPlans == kPoints.size() * kHows.size() * kVictims.size() * kKeeps.size() *
                               kModes * kStarters * kHosts);

// The digits of a number, each with a base of its own.
class Digits {
 public:
  explicit Digits(uint64_t number) : rest_(number) {}
  uint64_t take(uint64_t base) {
    const uint64_t digit = rest_ % base;
    rest_ /= base;
    return digit;
  }

 private:
  uint64_t rest_;
};

// `ps_tasks`: the first tasks are ps.
Fault faultOn(uint32_t task, uint32_t ps_tasks, How how) {
  using Kind = Fault::Kind;
  const bool is_ps = task < ps_tasks;
  Fault fault;
  fault.target = is_ps ? task : task - ps_tasks;
  fault.kind = how == How::kKill     ? is_ps ? Kind::kKillPs : Kind::kKillWorker
               : how == How::kFreeze ? is_ps ? Kind::kFreezePs : Kind::kFreezeWorker
               : is_ps               ? Kind::kCutPs
                                     : Kind::kCutWorker;
  return fault;
}

void keepValues(Plan& plan, Keeps keeps) {
  plan.checkpoints = keeps == Keeps::kCheckpoints || keeps == Keeps::kSnapshotsBesideCheckpoints;
  plan.checkpoint = {.every_seconds = 0, .every_steps = 3, .keep = 0, .keep_every_hours = 0};
  if (keeps == Keeps::kSnapshots || keeps == Keeps::kSnapshotsBesideCheckpoints)
    plan.snapshot_every_steps = 2;
  plan.replicas = keeps == Keeps::kReplicas;
  plan.ps_return = true;
}

}  // namespace

Plan makeEndPlan(uint64_t number) {
  Plan plan;
  plan.seed = kFirstEndPlan + number;
  Digits digits(number % kEndPlans * kStride % kEndPlans);
  const How how = kHows[digits.take(kHows.size())];
  const uint32_t victims = kVictims[digits.take(kVictims.size())];
  const Since point = kPoints[digits.take(kPoints.size())];
  plan.launched = digits.take(kStarters) == 0;
  const Keeps keeps = kKeeps[digits.take(kKeeps.size())];
  const bool is_sync = digits.take(kModes) == 0;
  plan.workers_host = digits.take(kHosts) == 1;
  // Beyond, the same plans at other moments.
  Random random = streamOf(plan.seed, Stream::kCluster);
  plan.ps_tasks = plan.workers_host ? 0 : kPsTasks;
  plan.workers = kTasks - plan.ps_tasks;
  plan.aggregate = is_sync ? plan.workers : 0;
  plan.steps = 6;
  plan.compute_max = milliseconds(5);
  plan.evaluation = milliseconds(20);
  plan.timeouts = planTimeouts();
  plan.optimizer.learning_rate = 1;
  keepValues(plan, keeps);
  plan.lives.emplace_back();
  // dtf-launch kills a task that stays frozen, but not a job of which all tasks are frozen.
  const bool is_all = victims == kVictims.back();
  const Duration frozen = plan.launched && !is_all ? Duration(seconds(1000)) : seconds(5);
  for (uint32_t task = 0; task < kTasks; ++task) {
    if ((victims >> task & 1) == 0) continue;
    Fault fault = faultOn(task, plan.ps_tasks, how);
    fault.since = point;
    fault.at = oneIn(random, 2) ? Duration{} : upTo(random, milliseconds(4));
    fault.length = frozen;
    plan.lives.back().faults.push_back(fault);
  }
  return plan;
}

}  // namespace dtf::sim
