#include "common/engine/replica_barrier.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/engine/variable.h"

namespace dtf::engine {
namespace {

Tensor counterTensor(int64_t value) {
  Tensor tensor(DType::kInt64, Shape());
  tensor.as<int64_t>()[0] = value;
  return tensor;
}

// With the nodes of containers.
constexpr uint64_t kRankBytes = 128, kArrivedBytes = 64, kWaitBytes = 256;

uint64_t outcomeBytes(int64_t wanted) {
  return static_cast<uint64_t>(3 + wanted) * sizeof(int64_t);
}

// Returns a line that one text has and the other lacks; empty if there is none.
std::string_view lineBeyond(std::string_view text, std::string_view other) {
  std::set<std::string_view> known;
  const auto each = [](std::string_view all, const auto& use) {
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      if (!use(all.substr(begin, end - begin))) return;
      begin = end + 1;
    }
  };
  each(other, [&](std::string_view line) { return known.insert(line), true; });
  std::string_view beyond;
  each(text, [&](std::string_view line) {
    if (known.contains(line)) return true;
    beyond = line;
    return false;
  });
  return beyond;
}

}  // namespace

// A process never repeats a ticket of a process before it: other tasks may still have its
// gradients.
ReplicaBarrier::ReplicaBarrier(std::string name, std::shared_ptr<ByteBudget> budget,
                               Incarnation process)
    : name_(std::move(name)),
      budget_(std::move(budget)),
      last_ticket_(static_cast<int64_t>(process.ticks() << Incarnation::kTicksShift)) {
  DTF_CHECK(budget_ != nullptr);
}

ReplicaBarrier::~ReplicaBarrier() {
  MutexLock lock(mutex_);
  DTF_CHECK_MSG(waiting_.empty() && pauses_.empty(), name_);  // they would never be called back
}

ByteBudget::Share ReplicaBarrier::take(uint64_t bytes) const {
  return budget_->take(bytes, "the replicas that meet at '" + name_ + "'");
}

GradientAccumulator::Ticket ReplicaBarrier::newTicket(int64_t rank) {
  MutexLock lock(mutex_);
  auto known = ranks_.find(rank);
  if (known == ranks_.end()) known = ranks_.emplace(rank, Rank{{}, take(kRankBytes)}).first;
  known->second.ticket.number = ++last_ticket_;
  return known->second.ticket;
}

// Several gradients of a rank count if there are fewer replicas than gradients.
int64_t ReplicaBarrier::shareOf(int64_t rank, int64_t wanted, int64_t total) {
  if (wanted <= total) return 1;
  return wanted / total + (rank < wanted % total ? 1 : 0);
}

// Whatever throws does so before anything here has changed.
Awaited::Wait ReplicaBarrier::arrive(Variable& global_step, const Arrival& arrival, Done done) {
  DTF_CHECK(arrival.replicas_to_aggregate > 0 && done != nullptr);
  follow(global_step);
  std::vector<Call> calls;
  Wait wait = 0;
  Share share = take(kWaitBytes + outcomeBytes(arrival.replicas_to_aggregate));
  {
    MutexLock lock(mutex_);
    if (finished_)
      throw Error(ErrorCode::kOutOfRange, "the training by '" + name_ +
                                              "' is finished: no gradient is taken any more; set "
                                              "or initialise it to train again");
    const int64_t step = counterValue(global_step);
    wantSameReplicas(arrival);
    wantSameVariables(arrival);
    if (isStale(step, arrival)) {
      calls.push_back({std::move(done), staleOutcome(step, arrival, std::move(share))});
    } else {
      if (waiting_.size() >= kWaitsMax)
        throw Error(ErrorCode::kUnavailable, "too many steps wait at '" + name_ + "' already");
      const int64_t missing =
          shareOf(arrival.rank, arrival.replicas_to_aggregate, arrival.total_num_replicas) -
          arrivedOf(arrival.rank);
      // Beyond the wanted ones while the barrier is paused.
      const bool counts = missing > 0 && !isComplete();
      Share of_arrival = take(counts ? kArrivedBytes : 0);
      remember(arrival);
      const bool decides =
          pauses_.empty() &&
          std::cmp_greater_equal(arrived_.size() + (counts ? 1 : 0), arrival.replicas_to_aggregate);
      if (decides) DTF_FAILPOINT("replicas.before_decide");
      if (decides) count(global_step, step);
      step_ = step;
      if (counts) {
        arrived_.push_back({arrival.rank, arrival.ticket, std::move(of_arrival)});
        ranks_.at(arrival.rank).ticket.arrived = arrival.ticket;
      }
      // The rank has more to bring before it waits; there is nothing to take.
      if (missing > 1 && counts) {
        calls.push_back(
            {std::move(done), outcomeOf(Decision{}, arrival, true, step, std::move(share))});
      } else {
        endWaits(arrival.rank, calls);
        wait = ++last_wait_;
        Waiting waiting{arrival, std::move(done), std::move(share)};
        waiting.arrival.local_steps = {};
        waiting.arrival.variables = {};
        waiting_.emplace(wait, std::move(waiting));
      }
      if (decides) {
        decide(step, calls);
        wait = 0;
        DTF_FAILPOINT("replicas.after_decide");
      }
    }
  }
  make(std::move(calls));
  return wait;
}

// Changes nothing while others are there: they are the same.
void ReplicaBarrier::remember(const Arrival& arrival) {
  if (clients_.variables != arrival.variables) {
    Share share = take(arrival.variables.size());
    clients_.variables = arrival.variables;
    clients_.share = std::move(share);
  }
  clients_.replicas_to_aggregate = arrival.replicas_to_aggregate;
  clients_.total = arrival.total_num_replicas;
}

void ReplicaBarrier::wantSameReplicas(const Arrival& arrival) const {
  if (arrived_.empty() && waiting_.empty()) return;
  if (arrival.replicas_to_aggregate == clients_.replicas_to_aggregate &&
      arrival.total_num_replicas == clients_.total)
    return;
  throw Error(ErrorCode::kBadConfig, "rank " + std::to_string(arrival.rank) + " aggregates " +
                                         std::to_string(arrival.replicas_to_aggregate) + " of " +
                                         std::to_string(arrival.total_num_replicas) +
                                         " replicas, but others at '" + name_ + "' aggregate " +
                                         std::to_string(clients_.replicas_to_aggregate) + " of " +
                                         std::to_string(clients_.total));
}

// Also between two steps: a step of some variables alone would leave the others behind.
void ReplicaBarrier::wantSameVariables(const Arrival& arrival) const {
  if (arrived_.empty() && waiting_.empty() && last_.step < 0) return;
  if (arrival.variables == clients_.variables) return;
  const std::string rank = "rank " + std::to_string(arrival.rank);
  const bool is_last = arrived_.empty() && waiting_.empty();
  const std::string others =
      std::string(is_last ? "the clients of the last step" : "the others") + " at '" + name_ + "'";
  std::string_view line = lineBeyond(arrival.variables, clients_.variables);
  std::string what = rank + " describes the variables of " + others + " in another order";
  if (!line.empty()) {
    what = rank + " trains " + std::string(line) + ", but " + others +
           (is_last ? " didn't" : " don't");
  } else if (line = lineBeyond(clients_.variables, arrival.variables); !line.empty()) {
    what = rank + " doesn't train " + std::string(line) + ", as " + others +
           (is_last ? " did" : " do");
  }
  throw Error(ErrorCode::kBadConfig,
              what +
                  ": give all clients the same graph and optimizer; after a change of them, reset "
                  "the tasks' containers (Session::reset), or start the ps again, so that the "
                  "chief initialises or restores the variables");
}

void ReplicaBarrier::follow(const Variable& global_step) {
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    const int64_t step = counterValue(global_step);
    if (last_.step + 1 != step) last_ = {};
    if (step_ == step) return;
    failAll(Error(ErrorCode::kUnavailable, "the global step '" + name_ + "' became " +
                                               std::to_string(step) +
                                               " while a step waited for other replicas"),
            calls);
    step_ = step;
  }
  make(std::move(calls));
}

bool ReplicaBarrier::isStale(int64_t step, const Arrival& arrival) const {
  const auto known = ranks_.find(arrival.rank);
  if (known == ranks_.end() || known->second.ticket.number != arrival.ticket) return true;
  return std::any_of(arrival.local_steps.begin(), arrival.local_steps.end(),
                     [&](int64_t local) { return local != step; });
}

// A variable that is behind takes the last decision; without one nothing can bring it on.
FifoQueue::Outcome ReplicaBarrier::staleOutcome(int64_t step, const Arrival& arrival,
                                                Share share) const {
  for (const int64_t local : arrival.local_steps)
    if (local > step || (local >= 0 && local < step && last_.step < 0))
      return Error(ErrorCode::kUnavailable,
                   "a variable has taken " + std::to_string(local) +
                       " steps, but the global step '" + name_ + "' is " + std::to_string(step) +
                       ": its task was started again, or values of two checkpoints are mixed; "
                       "restore a checkpoint");
  return outcomeOf(last_, arrival, false, step, std::move(share));
}

int64_t ReplicaBarrier::arrivedOf(int64_t rank) const {
  return std::count_if(arrived_.begin(), arrived_.end(),
                       [&](const Known& known) { return known.rank == rank; });
}

void ReplicaBarrier::count(Variable& global_step, int64_t step) {
  global_step.change(true, [&](const std::byte*, std::byte* after) {
    const int64_t next = step + 1;
    std::memcpy(after, &next, sizeof(next));
  });
}

void ReplicaBarrier::decide(int64_t step, std::vector<Call>& calls) {
  DTF_CHECK(std::cmp_equal(arrived_.size(), clients_.replicas_to_aggregate));
  std::stable_sort(arrived_.begin(), arrived_.end(),
                   [](const Known& a, const Known& b) { return a.rank < b.rank; });
  last_ = {.step = step};
  for (Known& known : arrived_) {
    last_.tickets.push_back(known.ticket);
    last_.shares.push_back(std::move(known.share));
  }
  arrived_.clear();
  step_ = step + 1;
  for (auto& [wait, waiting] : waiting_)
    calls.push_back({std::move(waiting.done),
                     outcomeOf(last_, waiting.arrival, false, step_, std::move(waiting.share))});
  waiting_.clear();
}

FifoQueue::Outcome ReplicaBarrier::outcomeOf(const Decision& decision, const Arrival& arrival,
                                             bool is_in, int64_t global_step, Share share) const {
  const int64_t wanted = arrival.replicas_to_aggregate;
  if (decision.step >= 0 && std::cmp_not_equal(decision.tickets.size(), wanted))
    return Error(ErrorCode::kBadConfig,
                 "the last step at '" + name_ + "' had " + std::to_string(decision.tickets.size()) +
                     " gradients, but rank " + std::to_string(arrival.rank) + " aggregates " +
                     std::to_string(wanted) + ": give all clients the same replicas_to_aggregate");
  Tensor numbers(DType::kInt64, Shape{1 + wanted});
  numbers.as<int64_t>()[0] = decision.step;
  std::copy(decision.tickets.begin(), decision.tickets.end(), numbers.as<int64_t>().begin() + 1);
  is_in = is_in || std::find(decision.tickets.begin(), decision.tickets.end(), arrival.ticket) !=
                       decision.tickets.end();
  FifoQueue::Elements one(1);
  one[0].components.push_back(std::move(numbers));
  one[0].components.push_back(counterTensor(is_in ? 1 : 0));
  one[0].components.push_back(counterTensor(global_step));
  one[0].share = std::move(share);
  return one;
}

void ReplicaBarrier::failAll(const Error& cause, std::vector<Call>& calls) {
  for (auto& [wait, waiting] : waiting_) calls.push_back({std::move(waiting.done), cause});
  waiting_.clear();
  arrived_.clear();
}

// A step of a client that returned; the one before may be of a client that is lost unnoticed.
void ReplicaBarrier::endWaits(int64_t rank, std::vector<Call>& calls) {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    if (each->second.arrival.rank != rank) {
      ++each;
      continue;
    }
    calls.push_back({std::move(each->second.done),
                     Error(ErrorCode::kUnavailable,
                           "another client of rank " + std::to_string(rank) + " waits at '" +
                               name_ + "' now: give each client a rank of its own")});
    each = waiting_.erase(each);
  }
}

bool ReplicaBarrier::isComplete() const {
  return !arrived_.empty() && std::cmp_equal(arrived_.size(), clients_.replicas_to_aggregate);
}

Awaited::Wait ReplicaBarrier::pause(Done done) {
  DTF_CHECK(done != nullptr);
  MutexLock lock(mutex_);
  if (pauses_.size() >= kPausesMax)
    throw Error(ErrorCode::kUnavailable, "too many clients pause '" + name_ + "' already");
  pauses_.emplace(++last_wait_, std::move(done));
  return last_wait_;
}

// The pauses end first: a global step without a value has an error below.
void ReplicaBarrier::resume(Variable& global_step) {
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    for (auto& [wait, done] : pauses_) calls.push_back({std::move(done), FifoQueue::Elements(1)});
    pauses_.clear();
  }
  make(std::exchange(calls, {}));
  follow(global_step);
  {
    MutexLock lock(mutex_);
    const int64_t step = counterValue(global_step);
    if (!pauses_.empty() || !isComplete()) return;  // a new pause has its own resume
    count(global_step, step);
    decide(step, calls);
  }
  make(std::move(calls));
}

void ReplicaBarrier::cancel(Wait wait) {
  std::map<Wait, Waiting>::node_type cancelled;  // freed without the lock
  std::map<Wait, Done>::node_type paused;        // likewise
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    cancelled = waiting_.extract(wait);
    paused = pauses_.extract(wait);
    if (paused && pauses_.empty() && isComplete()) {
      for (auto& [other, late] : waiting_)
        calls.push_back({std::move(late.done),
                         outcomeOf(last_, late.arrival, false, step_, std::move(late.share))});
      waiting_.clear();
      arrived_.clear();
    }
  }
  make(std::move(calls));
}

void ReplicaBarrier::finish() {
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    finished_ = true;
    failAll(Error(ErrorCode::kOutOfRange,
                  "the training by '" + name_ + "' was finished while a step waited for gradients"),
            calls);
  }
  make(std::move(calls));
}

void ReplicaBarrier::reset() {
  std::vector<Call> calls;
  {
    MutexLock lock(mutex_);
    finished_ = false;
    failAll(Error(ErrorCode::kUnavailable, "the global step '" + name_ +
                                               "' was set, or its container reset, while a step "
                                               "waited for other replicas"),
            calls);
    for (auto& [wait, done] : pauses_)
      calls.push_back(
          {std::move(done), Error(ErrorCode::kUnavailable, "the global step '" + name_ +
                                                               "' was set, or its container reset, "
                                                               "while its replicas were paused")});
    pauses_.clear();
    step_ = -1;
    last_ = {};
    // A gradient that was begun before belongs to the values before, also if the steps are equal.
    ranks_.clear();
    clients_ = {};
  }
  make(std::move(calls));
}

std::string ReplicaBarrier::awaited() const {
  constexpr int kNamedMax = 8;
  MutexLock lock(mutex_);
  std::map<int64_t, int64_t> there;
  for (const Known& known : arrived_) ++there[known.rank];
  std::string ranks;
  int missing = 0;
  for (int64_t rank = 0; rank < clients_.total; ++rank) {
    if (there[rank] >= shareOf(rank, clients_.replicas_to_aggregate, clients_.total)) continue;
    if (++missing > kNamedMax) continue;
    ranks += (ranks.empty() ? "; missing: rank " : ", ") + std::to_string(rank);
  }
  if (missing > kNamedMax) ranks += " and " + std::to_string(missing - kNamedMax) + " more";
  if (!pauses_.empty()) ranks += "; it is paused for a checkpoint";
  return "step " + std::to_string(step_) + " of '" + name_ + "' has " +
         std::to_string(arrived_.size()) + " of " + std::to_string(clients_.replicas_to_aggregate) +
         " gradients" + ranks;
}

void ReplicaBarrier::make(std::vector<Call> calls) {
  for (Call& call : calls) call.done(std::move(call.outcome));
}

}  // namespace dtf::engine
