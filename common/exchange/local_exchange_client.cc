#include "common/exchange/local_exchange_client.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/exchange/gradient_rows.h"
#include "common/exchange/step_agreement.h"
#include "common/replication/replication_rules.h"

namespace dtf::exchange {

// Carries messages between shards: at once, because all shards share one lock and one turn.
class LocalCluster::Peers final : public replication::SyncPeers {
 public:
  Peers(LocalCluster& cluster, uint32_t ps_task) : cluster_(cluster), ps_task_(ps_task) {}

  // Called by a shard, so under the lock; the analysis can't see that through a callback.
  void reportReceived(replication::StepName step, uint32_t rank) override
      DTF_TSA(no_thread_safety_analysis) {
    cluster_.shards_[0]->peers().onReceived(ps_task_, step, rank);
  }
  void announceDecision(replication::StepName step, const std::vector<uint32_t>& ranks) override
      DTF_TSA(no_thread_safety_analysis) {
    for (size_t ps = 1; ps < cluster_.shards_.size(); ++ps) {
      cluster_.shards_[ps]->peers().onDecision(step, ranks);
    }
  }

 private:
  LocalCluster& cluster_;
  const uint32_t ps_task_;
};

LocalCluster::LocalCluster(uint32_t ps_tasks, uint32_t workers, const Clock& clock,
                           Duration timeout, optimizer::UpdateRunner* runner)
    : workers_(workers), timeout_(timeout) {
  for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
    peers_.push_back(std::make_unique<Peers>(*this, ps));
    const shard::ShardOptions options{.ps_task = ps,
                                      .ps_tasks = ps_tasks,
                                      .workers = workers,
                                      .lease = Duration::max(),
                                      .step_timeout = timeout};
    shards_.push_back(std::make_unique<shard::Shard>(
        options, clock, runner == nullptr ? in_place_ : *runner, peers_.back().get()));
  }
}

LocalCluster::~LocalCluster() = default;

void LocalCluster::loseWorker(uint32_t rank) {
  const MutexLock lock(mutex_);
  for (const auto& shard : shards_) shard->workers().markLost(rank);
}

shard::ShardStatus LocalCluster::status(uint32_t ps_task) {
  const MutexLock lock(mutex_);
  return shards_[ps_task]->status();
}

void LocalCluster::ask(uint32_t ps_task, const std::function<void(shard::Shard&)>& question) {
  const MutexLock lock(mutex_);
  question(*shards_.at(ps_task));
}

// The answers to one round of calls. Shared with the callbacks, because a caller may give up before
// they come. Threads: under the cluster's lock.
template <class Answer>
struct LocalExchangeClient::Round {
  explicit Round(size_t calls) : answers(calls), missing(calls) {}
  std::vector<std::optional<Answer>> answers;
  size_t missing;
  std::optional<Error> error;  // the first

  void set(size_t index, const Answer& answer) {
    if (const Error* failed = std::get_if<Error>(&answer); failed && !error) error = *failed;
    answers[index] = answer;
    --missing;
  }
};

LocalExchangeClient::LocalExchangeClient(LocalCluster& cluster, uint32_t rank)
    : cluster_(cluster), rank_(rank), pending_([this](uint64_t step, uint32_t batch, float loss) {
        return exchange(step, batch, loss);
      }) {
  DTF_CHECK(rank < cluster.workers_);
  const MutexLock lock(cluster.mutex_);
  is_alone_ = cluster.shards_.size() == 1 && cluster.workers_ == 1;
}

template <class Answer>
std::function<void(Answer)> LocalExchangeClient::recorder(std::shared_ptr<Round<Answer>> round,
                                                          size_t index) {
  return [round = std::move(round), index, cond = &cluster_.answered_](const Answer& answer) {
    round->set(index, answer);
    cond->notifyAll();
  };
}

// Waits until all answers are there; throws the first error among them.
template <class Answer>
void LocalExchangeClient::await(Round<Answer>& round, std::string_view what) {
  const auto deadline =
      replication::deadlineAfter(std::chrono::steady_clock::now(), cluster_.timeout_);
  while (round.missing > 0 && !round.error) {
    if (cluster_.answered_.waitUntil(cluster_.mutex_, deadline)) continue;
    if (round.missing == 0 || round.error) break;
    throw Error(ErrorCode::kDeadline,
                fmt::format("{} has waited {} for {}", replication::workerName(rank_),
                            replication::secondsText(cluster_.timeout_), what));
  }
  if (round.error) throw *round.error;
}

void LocalExchangeClient::take(size_t ps, const replication::PushAnswer& answer) {
  const replication::PushReply& reply = std::get<replication::PushReply>(answer);
  settlement_->answered(static_cast<uint32_t>(ps), reply.state);
  epoch_ = reply.state.epoch;
  if (reply.parameters) parameters_[ps] = reply.parameters;
}

// Repeats pulls until all ps name the same step.
replication::StepState LocalExchangeClient::settle() {
  for (;;) {
    const std::vector<Agreement::Pull> pulls = settlement_->again();
    if (pulls.empty()) {
      const replication::StepState& state = settlement_->state();
      progress_ = state.done && state.progress > 0 ? replication::kProgressEnd : state.progress;
      return state;
    }
    const MutexLock lock(cluster_.mutex_);
    auto answers = std::make_shared<Round<replication::PushAnswer>>(pulls.size());
    for (size_t i = 0; i < pulls.size(); ++i)
      cluster_.shards_[pulls[i].ps_task]->pull(rank_, incarnation_, pulls[i].wanted,
                                               recorder(answers, i));
    await(*answers, "parameters of the same step from every ps");
    for (size_t i = 0; i < pulls.size(); ++i) take(pulls[i].ps_task, *answers->answers[i]);
  }
}

Traits LocalExchangeClient::traits() const {
  return {.overlaps = overlaps(), .on_device = is_alone_};
}

void LocalExchangeClient::declare(const arena::ModelDeclaration& model,
                                  std::shared_ptr<optimizer::DeviceArrays> device) {
  on_device_ = device != nullptr;
  DTF_CHECK(!on_device_ || is_alone_);
  const MutexLock lock(cluster_.mutex_);
  if (on_device_) cluster_.shards_[0]->keepOn(std::move(device));
  for (const auto& shard : cluster_.shards_) {
    shard->workers().join(rank_, incarnation_);
    shard->workers().declare(rank_, incarnation_, model);
  }
  declaration_ = model;
  const size_t ps_tasks = model.layout.shards.size();
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    gradients_.emplace_back(arena::GradientLayout(model.layout, ps));
  if (overlaps()) {
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      pushed_.emplace_back(arena::GradientLayout(model.layout, ps));
    pending_.startThread();
  }
  parameters_.resize(ps_tasks);
  averages_.resize(ps_tasks);
  settlement_.emplace(model.replication, static_cast<uint32_t>(ps_tasks),
                      replication::workerName(rank_));
}

void LocalExchangeClient::initialise(std::span<const std::span<const float>> values,
                                     uint64_t epoch) {
  const MutexLock lock(cluster_.mutex_);
  DTF_CHECK(values.size() == cluster_.shards_.size());
  for (size_t ps = 0; ps < values.size(); ++ps) {
    cluster_.shards_[ps]->initialise(rank_, incarnation_, values[ps], epoch);
  }
}

void LocalExchangeClient::waitInitialised() {
  const MutexLock lock(cluster_.mutex_);
  const size_t ps_tasks = cluster_.shards_.size();
  auto answers = std::make_shared<Round<replication::WaitAnswer>>(ps_tasks);
  for (size_t ps = 0; ps < ps_tasks; ++ps) {
    cluster_.shards_[ps]->waitInitialised(rank_, incarnation_, cluster_.timeout_,
                                          recorder(answers, ps));
  }
  await(*answers, "the chief to initialise every ps");
}

// All parameters come with every answer.
replication::StepState LocalExchangeClient::pull(Values what) {
  if (what == Values::kParameters) return state_ = pullParameters();
  if (what == Values::kAverages) pullAverages();
  return state_;
}

replication::StepState LocalExchangeClient::pullParameters() {
  {
    const MutexLock lock(cluster_.mutex_);
    const size_t ps_tasks = cluster_.shards_.size();
    auto answers = std::make_shared<Round<replication::PushAnswer>>(ps_tasks);
    for (size_t ps = 0; ps < ps_tasks; ++ps) {
      cluster_.shards_[ps]->pull(rank_, incarnation_, {.progress = progress_},
                                 recorder(answers, ps));
    }
    await(*answers, "a pull from every ps");
    settlement_->start();
    for (size_t ps = 0; ps < ps_tasks; ++ps) take(ps, *answers->answers[ps]);
  }
  return settle();
}

void LocalExchangeClient::pullAverages() {
  const MutexLock lock(cluster_.mutex_);
  auto answers = std::make_shared<Round<replication::PushAnswer>>(averages_.size());
  for (size_t ps = 0; ps < averages_.size(); ++ps)
    cluster_.shards_[ps]->pullAside(rank_, incarnation_, shard::Shard::Aside::kAverages,
                                    recorder(answers, ps));
  await(*answers, "moving averages from every ps");
  for (size_t ps = 0; ps < averages_.size(); ++ps)
    averages_[ps] = std::get<replication::PushReply>(*answers->answers[ps]).parameters;
}

const float* LocalExchangeClient::view(Values what, uint32_t ps_task) const {
  const auto& values = what == Values::kAverages ? averages_ : parameters_;
  DTF_CHECK(ps_task < values.size() && values[ps_task] != nullptr);
  if (on_device_ && what != Values::kAverages) {
    const MutexLock lock(cluster_.mutex_);
    DTF_CHECK(cluster_.shards_[0]->readers().newest() == parameters_[0]);
  }
  return values[ps_task]->data();
}

float* LocalExchangeClient::gradients(uint32_t ps_task) {
  DTF_CHECK(ps_task < gradients_.size());
  return gradients_[ps_task].values();
}

// All rows of the parameters come with every answer.
void LocalExchangeClient::setRows(RowsOf what, uint32_t ps_task, const arena::RowSet& rows) {
  if (what == RowsOf::kParameters) return;
  arena::GradientBuffer& gradient = gradients_.at(ps_task);
  gradient.setRows(rows.counts);
  writeIds(gradient.layout(), rows, gradient.values());
}

void LocalExchangeClient::begin(uint64_t step, uint32_t batch, float loss, Gradient gradient) {
  const bool beside = overlaps() && gradient == Gradient::kWhole;
  if (beside) turn();
  pending_.begin(step, batch, loss, beside);
}

void LocalExchangeClient::written(std::span<const uint64_t> elements) {
  DTF_CHECK(elements.size() == gradients_.size());
}

replication::StepState LocalExchangeClient::finish(const Error* failure) {
  if (failure != nullptr) {
    pending_.drop();
    return state_;
  }
  if (overlaps() && !pending_.isBeside()) turn();
  return state_ = pending_.finish();
}

void LocalExchangeClient::turn() {
  std::swap(gradients_, pushed_);
  read_ = parameters_;
}

replication::StepState LocalExchangeClient::exchange(uint64_t step, uint32_t batch, float loss) {
  const std::vector<arena::GradientBuffer>& gradients = overlaps() ? pushed_ : gradients_;
  {
    const MutexLock lock(cluster_.mutex_);
    const size_t ps_tasks = cluster_.shards_.size();
    auto answers = std::make_shared<Round<replication::PushAnswer>>(ps_tasks);
    ++sequence_;
    // The ps keeps a queued batch beyond this call, so it gets a copy.
    const bool kept = replication::queuesBatches(declaration_.replication);
    for (size_t ps = 0; ps < ps_tasks; ++ps) {
      arena::Gradient gradient = kept ? gradients[ps].copy() : gradients[ps].share();
      cluster_.shards_[ps]->push({.rank = rank_,
                                  .incarnation = incarnation_,
                                  .step = step,
                                  .batch = batch,
                                  .epoch = epoch_,
                                  .progress = progress_,
                                  .sequence = sequence_,
                                  .loss = loss,
                                  .gradient = gradient.values,
                                  .owner = std::move(gradient.owner),
                                  .row_counts = std::move(gradient.row_counts)},
                                 recorder(answers, ps));
    }
    await(*answers, fmt::format("step {} on every ps", step));
    settlement_->start();
    for (size_t ps = 0; ps < ps_tasks; ++ps) take(ps, *answers->answers[ps]);
  }
  return settle();
}

void LocalExchangeClient::barrier(std::string_view name) {
  const MutexLock lock(cluster_.mutex_);
  auto answers = std::make_shared<Round<replication::WaitAnswer>>(1);
  cluster_.shards_[0]->workers().barrier(rank_, incarnation_, name, replication::Arrival::kFirst,
                                         cluster_.timeout_, recorder(answers, 0));
  await(*answers, fmt::format("the others at barrier '{}'", name));
}

// All waits of one process have the same deadline.
void LocalExchangeClient::setEvaluating(bool) {}

void LocalExchangeClient::leave() {
  const MutexLock lock(cluster_.mutex_);
  for (const auto& shard : cluster_.shards_) shard->workers().finish(rank_, incarnation_);
}

}  // namespace dtf::exchange
