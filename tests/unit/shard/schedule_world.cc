#include "tests/unit/shard/schedule_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace dtf::shard {

namespace {

constexpr uint64_t kChecked = 16;  // elements
// The process that brings the initial values, before all others.
constexpr Incarnation kInitialiser = Incarnation::of(0, 0, 0xff);

}  // namespace

World::World(const WorldOptions& options)
    : options_(options), random_(options.seed), workers_(options.workers) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t ps = 0; ps < options.ps_tasks; ++ps) {
    variables.push_back(
        {"v" + std::to_string(ps), Shape{static_cast<int64_t>(kChecked)}, {{ps, 0, kChecked}}});
  }
  model_.layout = arena::makeLayout(variables, options.ps_tasks);
  model_.optimizer.kind = cluster::OptimizerSpec::Kind::kAdagrad;
  model_.optimizer.learning_rate = 0.1;
  model_.steps = options.steps;
  if (options.aggregate > 0) {
    model_.replication = {cluster::ReplicationSpec::Mode::kSync, options.aggregate,
                          options.workers};
  }
  if (options.staleness)
    model_.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded,
                          .staleness = *options.staleness};
  const std::vector<float> zeros(kChecked);
  for (uint32_t ps = 0; ps < options.ps_tasks; ++ps) {
    runners_.push_back(
        std::make_unique<SlowRunner>(options.slow_updates, link(fmt::format("update {}", ps))));
    peers_.push_back(std::make_unique<Peers>(*this, ps));
    shards_.push_back(std::make_unique<Shard>(
        ShardOptions{.ps_task = ps, .ps_tasks = options.ps_tasks, .workers = options.workers},
        clock_, *runners_[ps], peers_[ps].get()));
    // The chief's first process brings the values; the one that trains replaces it.
    shards_[ps]->workers().join(0, kInitialiser);
    shards_[ps]->workers().declare(0, kInitialiser, model_);
    shards_[ps]->initialise(0, kInitialiser, zeros);
  }
  for (uint32_t rank = 0; rank < options.workers; ++rank) startWorker(rank);
}

std::string World::replayName() const {
  return fmt::format(
      "seed {} ps {} workers {} aggregate {} staleness {} crashes {} gone {} slow {}",
      options_.seed, options_.ps_tasks, options_.workers, options_.aggregate,
      options_.staleness ? std::to_string(*options_.staleness) : "any", options_.crashes_max,
      options_.gone_for_good_max, options_.slow_updates);
}

std::vector<float> World::gradient(uint32_t rank, uint64_t step, uint32_t batch) {
  Random random(1000 * step + batch, rank);
  std::vector<float> values(kChecked);
  for (float& value : values) value = random.normal();
  return values;
}

void World::Peers::reportReceived(replication::StepName step, uint32_t rank) {
  Shard& leader = *world_.shards_[0];
  world_.link(fmt::format("report {}", ps_)).push_back([this, &leader, step, rank] {
    leader.peers().onReceived(ps_, step, rank);
  });
}

void World::Peers::announceDecision(replication::StepName step,
                                    const std::vector<uint32_t>& ranks) {
  for (uint32_t ps = 1; ps < world_.shards_.size(); ++ps) {
    Shard& shard = *world_.shards_[ps];
    world_.link(fmt::format("decision {}", ps)).push_back([&shard, step, ranks] {
      shard.peers().onDecision(step, ranks);
    });
  }
}

void World::startWorker(uint32_t rank) {
  Worker& worker = workers_[rank];
  worker.incarnation = Incarnation{++incarnations_};
  worker.settlement.emplace(model_.replication, options_.ps_tasks, replication::workerName(rank));
  worker.settlement->start();
  worker.parameters.assign(options_.ps_tasks, nullptr);
  worker.first.reset();
  worker.done = false;
  ++worker.processes;
  ++worker.round;
  worker.missing = options_.ps_tasks;
  for (uint32_t ps = 0; ps < options_.ps_tasks; ++ps) {
    const Incarnation incarnation = worker.incarnation;
    link(fmt::format("to {} from {}.{}", ps, rank, worker.processes))
        .push_back([this, rank, ps, incarnation] {
          try {
            shards_[ps]->workers().join(rank, incarnation);
          } catch (const Error&) {
            // The process was replaced before the call arrived: its later calls are rejected too.
          }
        });
    sendPull(rank, ps, {});
  }
}

// A lease ends some time after the last message has arrived: the process's lease, or all of
// the rank's leases if no other process will come.
void World::expireLease(uint32_t ps, uint32_t rank, uint64_t process, Incarnation incarnation) {
  link(fmt::format("lease {} {}.{}", ps, rank, process))
      .push_back([this, ps, rank, process, incarnation] {
        const bool gone = workers_[rank].gone;
        bool quiet = true;
        for (uint64_t p = gone ? 1 : process; p <= process; ++p) {
          quiet &= link(fmt::format("to {} from {}.{}", ps, rank, p)).empty();
        }
        if (!quiet) return expireLease(ps, rank, process, incarnation);
        const Incarnation present = shards_[ps]->status().members[rank].incarnation;
        if (gone || present == incarnation) shards_[ps]->workers().markLost(rank);
      });
}

void World::crash(uint32_t rank) {
  ++crashes;
  const Incarnation old = workers_[rank].incarnation;
  // From some moment on the dead process's messages may be lost, on each connection by itself.
  for (uint32_t ps = 0; ps < options_.ps_tasks; ++ps) {
    Link& sent = link(fmt::format("to {} from {}.{}", ps, rank, workers_[rank].processes));
    while (!sent.empty() && random_.below(2) == 0) sent.pop_back();
  }
  Worker& worker = workers_[rank];
  worker.first.reset();
  worker.gone = gone_for_good < options_.gone_for_good_max && random_.below(2) == 0;
  if (worker.gone) ++gone_for_good;
  if (worker.gone || random_.below(2) == 0) {
    for (uint32_t ps = 0; ps < options_.ps_tasks; ++ps) {
      expireLease(ps, rank, worker.processes, old);
    }
  }
  ++worker.round;
  worker.missing = 0;
  if (worker.gone) return;
  link(fmt::format("restart {}", rank)).push_back([this, rank] { startWorker(rank); });
}

replication::PushCallback World::replyTo(uint32_t rank, uint32_t ps) {
  const uint64_t round = workers_[rank].round;
  return [this, rank, ps, round](const replication::PushAnswer& answer) {
    link(fmt::format("from {} to {}", ps, rank)).push_back([this, rank, ps, round, answer] {
      if (workers_[rank].round == round) onAnswer(rank, ps, answer);
    });
  };
}

void World::sendPull(uint32_t rank, uint32_t ps, const replication::Wanted& wanted) {
  Worker& worker = workers_[rank];
  link(fmt::format("to {} from {}.{}", ps, rank, worker.processes))
      .push_back(
          [this, rank, ps, wanted, incarnation = worker.incarnation, reply = replyTo(rank, ps)] {
            shards_[ps]->pull(rank, incarnation, wanted, reply);
          });
}

void World::sendPush(uint32_t rank, const replication::StepState& state) {
  Worker& worker = workers_[rank];
  ++worker.round;
  worker.missing = options_.ps_tasks;
  worker.settlement->start();
  auto values =
      std::make_shared<std::vector<float>>(gradient(rank, state.next_step, state.next_batch));
  values->resize(kChecked);
  for (uint32_t ps = 0; ps < options_.ps_tasks; ++ps) {
    const replication::Contribution contribution{.rank = rank,
                                                 .incarnation = worker.incarnation,
                                                 .step = state.next_step,
                                                 .batch = state.next_batch,
                                                 .progress = state.progress,
                                                 .sequence = worker.round,
                                                 .gradient = *values,
                                                 .owner = values};
    // Now and then a connection delivers a push twice; the second one gets the reply.
    const int times = random_.below(8) == 0 ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      link(fmt::format("to {} from {}.{}", ps, rank, worker.processes))
          .push_back([this, ps, contribution,
                      reply = i + 1 < times
                                  ? [](const replication::PushAnswer&) {}
                                  : replyTo(rank, ps)] { shards_[ps]->push(contribution, reply); });
    }
  }
}

void World::onAnswer(uint32_t rank, uint32_t ps, const replication::PushAnswer& answer) {
  Worker& worker = workers_[rank];
  if (const Error* error = std::get_if<Error>(&answer)) {
    ++errors;
    if (options_.crashes_max == 0) problems.push_back(error->message());
    if (error->code() == ErrorCode::kBadData) problems.push_back(error->message());
    ++worker.round;
    worker.missing = 0;
    return link(fmt::format("restart {}", rank)).push_back([this, rank] { startWorker(rank); });
  }
  const replication::PushReply& reply = std::get<replication::PushReply>(answer);
  worker.settlement->answered(ps, reply.state);
  if (reply.parameters) {
    worker.parameters[ps] = reply.parameters;
    checkSameOnEveryPs(*reply.parameters);
  }
  if (--worker.missing == 0) onRoundComplete(rank);
}

void World::onRoundComplete(uint32_t rank) {
  Worker& worker = workers_[rank];
  const std::vector<exchange::Agreement::Pull> pulls = worker.settlement->again();
  if (!pulls.empty()) {
    ++worker.round;
    worker.missing = static_cast<uint32_t>(pulls.size());
    for (const exchange::Agreement::Pull& pull : pulls) {
      sendPull(rank, pull.ps_task, pull.wanted);
    }
    return;
  }
  const replication::StepState state = worker.settlement->state();
  if (state.outcome == replication::Outcome::kStale) ++stale;
  checkParameters(rank, state);
  checkStaleness(rank, state);
  if (state.done) {
    worker.done = true;
    return;
  }
  sendPush(rank, state);
}

// Sync: a worker computes with parameters of one step, on every ps.
void World::checkParameters(uint32_t rank, const replication::StepState& state) {
  if (options_.aggregate == 0) return;
  for (uint32_t ps = 0; ps < options_.ps_tasks; ++ps) {
    const uint64_t version = workers_[rank].parameters[ps]->version();
    if (version == state.next_step) continue;
    problems.push_back(fmt::format("worker/{} goes on to step {} with ps/{} parameters of step {}",
                                   rank, state.next_step, ps, version));
  }
}

// By ps/0's status: a fenced process, or one considered lost, holds no other back.
bool World::isAtWork(uint32_t rank) const {
  const replication::Member member = shards_[0]->status().members[rank];
  return member.state == replication::MemberState::kJoined &&
         member.incarnation == workers_[rank].incarnation;
}

// Bounded: a worker that begins a step is close to all others at work, also after deaths. It has
// all their pushes up to `staleness` steps before. The first push of a late worker may be missing:
// ps/0 learns of that worker first.
void World::checkStaleness(uint32_t rank, const replication::StepState& state) {
  Worker& worker = workers_[rank];
  worker.last = state;
  if (!worker.first) worker.first = state;
  if (!options_.staleness || state.done) return;
  uint64_t due = state.next_step;  // number of pushes that its parameters have at least: its own
  for (uint32_t other = 0; other < workers_.size(); ++other) {
    const Worker& by = workers_[other];
    if (other == rank || by.done || !by.first || !isAtWork(other)) continue;
    // The last push of either worker may arrive before its reply does.
    const auto lead = static_cast<int64_t>(state.progress - by.last.progress);
    lead_max = std::max(lead_max, std::abs(lead));
    const uint64_t begun = by.first->progress - by.first->next_step + *options_.staleness;
    if (state.progress > begun + 1) due += state.progress - begun;
  }
  if (lead_max > *options_.staleness + 1)
    problems.push_back(fmt::format("worker/{} begins step {} at {}, {} from another at work", rank,
                                   state.next_step, state.progress, lead_max));
  for (uint32_t ps = 0; ps < options_.ps_tasks && options_.crashes_max == 0; ++ps)
    if (const uint64_t has = worker.parameters[ps]->version(); has < due)
      problems.push_back(
          fmt::format("worker/{} begins step {}, at {}, with {} updates of ps/{}, {} are due", rank,
                      state.next_step, state.progress, has, ps, due));
}

// Sync: every shard gets the same gradients here, so the same set on every ps means the same bits.
void World::checkSameOnEveryPs(const arena::ParameterVersion& snapshot) {
  if (options_.aggregate == 0) return;
  const std::vector<float> values(snapshot.data(), snapshot.data() + kChecked);
  const auto [at, is_new] = seen_.try_emplace(snapshot.version(), values);
  if (is_new || std::memcmp(at->second.data(), values.data(), sizeof(float) * kChecked) == 0)
    return;
  problems.push_back(fmt::format("step {} differs between ps", snapshot.version()));
}

bool World::allWorkersDone() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.done || w.gone; });
}

std::vector<float> World::parameters(uint32_t ps) {
  std::vector<float> values(kChecked);
  shards_[ps]->workers().join(0, Incarnation{~uint64_t{0} - 1});
  shards_[ps]->pull(
      0, Incarnation{~uint64_t{0} - 1}, {}, [&](const replication::PushAnswer& answer) {
        const replication::PushReply& reply = std::get<replication::PushReply>(answer);
        std::copy_n(reply.parameters->data(), kChecked, values.begin());
      });
  return values;
}

void World::run() {
  constexpr int kEventsMax = 100'000;
  for (int event = 0; event < kEventsMax; ++event) {
    std::vector<Link*> ready;
    for (auto& [name, link] : links_) {
      if (!link.empty()) ready.push_back(&link);
    }
    if (ready.empty() || !problems.empty()) return;
    if (crashes < options_.crashes_max && random_.below(60) == 0) {
      const auto rank = static_cast<uint32_t>(random_.below(options_.workers));
      if (workers_[rank].missing > 0) crash(rank);
      continue;
    }
    Link& link = *ready[random_.below(ready.size())];
    const std::function<void()> deliver = std::move(link.front());
    link.pop_front();
    deliver();
  }
  problems.push_back("the job does not end");
}

}  // namespace dtf::shard
