#include "tests/session_sim/session_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/draw.h"

namespace dtf::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = SessionFault::Kind;

constexpr int64_t kManyElements = 20'000;  // 80 kB: a segment of its own

NetworkOptions drawNetwork(Random& random) {
  NetworkOptions network;
  network.latency_max = microseconds(100 + random.below(5000));
  if (oneIn(random, 4)) network.slow_share = 0.05;
  if (oneIn(random, 3)) network.split_share = 0.3;
  if (oneIn(random, 4)) network.tiny_read_share = 0.3;
  return network;
}

SessionFault drawFault(Random& random, bool only_clients) {
  SessionFault fault;
  fault.at = upTo(random, seconds(2));
  const uint64_t kind = only_clients ? 6 : random.below(20);
  fault.kind = kind < 6    ? Kind::kKillTask
               : kind < 11 ? Kind::kKillClient
               : kind < 13 ? Kind::kFreezeTask
               : kind < 14 ? Kind::kFreezeClient
               : kind < 18 ? Kind::kCut
                           : Kind::kSilence;
  fault.target = static_cast<uint32_t>(random.below(1000));
  fault.length = milliseconds(50) + upTo(random, seconds(6));
  return fault;
}

}  // namespace

bool SessionPlan::has(Kind kind) const {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const SessionFault& fault) { return fault.kind == kind; });
}

bool SessionPlan::onlyClientsDie() const {
  return std::all_of(faults.begin(), faults.end(),
                     [](const SessionFault& fault) { return fault.kind == Kind::kKillClient; });
}

bool SessionPlan::isPrompt() const {
  return slow_share == 0 && !has(Kind::kFreezeTask) && !has(Kind::kFreezeClient) &&
         !has(Kind::kSilence);
}

SessionPlan makeSessionPlan(uint64_t seed) {
  Random random(seed, 101);
  SessionPlan plan;
  plan.seed = seed;
  plan.ps_tasks = 1 + static_cast<uint32_t>(random.below(2));
  plan.workers = 1 + static_cast<uint32_t>(random.below(2));
  plan.devices = 1 + static_cast<uint32_t>(random.below(2));
  plan.clients = 1 + static_cast<uint32_t>(random.below(3));
  plan.steps = 5 + static_cast<uint32_t>(random.below(20));
  if (oneIn(random, 2)) plan.elements = kManyElements;
  plan.lookups = oneIn(random, 2);
  if (plan.lookups && oneIn(random, 2)) plan.bad_share = 0.2;
  if (oneIn(random, 3)) plan.abort_share = 0.2;
  if (oneIn(random, 4)) plan.slow_share = 0.01;
  if (oneIn(random, 2)) plan.slow_max = plan.abort_max + seconds(3);
  plan.stranger = oneIn(random, 2);
  plan.step_max = oneIn(random, 3) ? seconds(1 + random.below(10)) : seconds(600);
  plan.network = drawNetwork(random);
  const bool only_clients = oneIn(random, 4);
  const uint64_t faults = oneIn(random, 5) ? 0 : 1 + random.below(5);
  for (uint64_t i = 0; i < faults; ++i) plan.faults.push_back(drawFault(random, only_clients));
  plan.jobs = oneIn(random, 2);
  return plan;
}

std::string SessionFault::text() const {
  static constexpr const char* kNames[] = {"kill a task",     "kill a client", "freeze a task",
                                           "freeze a client", "cut",           "silence"};
  return fmt::format("{} {} at {:.3f} s for {:.3f} s", kNames[static_cast<size_t>(kind)], target,
                     toSeconds(at), toSeconds(length));
}

std::string SessionPlan::text() const {
  std::string text = fmt::format(
      "seed {}: {} ps, {} workers of {} CPUs, {} clients, {} steps of {} elements in {:g} s each\n",
      seed, ps_tasks, workers, devices, clients, steps, elements, toSeconds(step_max));
  text += fmt::format(
      "  lookups {}, of which bad {:g}; jobs {}; aborted {:g}, slow {:g}, stranger {}\n", lookups,
      bad_share, jobs, abort_share, slow_share, stranger);
  for (const SessionFault& fault : faults) text += "  " + fault.text() + "\n";
  return text;
}

}  // namespace dtf::sim
