#include "common/ps/local_parameter_client.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/replication_rules.h"
#include "common/ps/step_agreement.h"

namespace dtf::ps {

// Carries what one shard tells another: at once, because all shards share one lock and one turn.
class LocalCluster::Peers final : public SyncPeers {
 public:
  Peers(LocalCluster& cluster, uint32_t ps_task) : cluster_(cluster), ps_task_(ps_task) {}

  // Called by a shard, so under the lock, which the analysis can't see through a callback.
  void reportReceived(StepName step, uint32_t rank) override DTF_TSA(no_thread_safety_analysis) {
    cluster_.shards_[0]->onReceived(ps_task_, step, rank);
  }
  void announceDecision(StepName step, const std::vector<uint32_t>& ranks) override
      DTF_TSA(no_thread_safety_analysis) {
    for (size_t ps = 1; ps < cluster_.shards_.size(); ++ps) {
      cluster_.shards_[ps]->onDecision(step, ranks);
    }
  }

 private:
  LocalCluster& cluster_;
  const uint32_t ps_task_;
};

LocalCluster::LocalCluster(uint32_t ps_tasks, uint32_t workers, const Clock& clock,
                           Duration timeout, UpdateRunner* runner)
    : workers_(workers), timeout_(timeout) {
  for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
    peers_.push_back(std::make_unique<Peers>(*this, ps));
    const ShardOptions options{.ps_task = ps,
                               .ps_tasks = ps_tasks,
                               .workers = workers,
                               .lease = Duration::max(),
                               .step_timeout = timeout};
    shards_.push_back(std::make_unique<Shard>(
        options, clock, runner == nullptr ? in_place_ : *runner, peers_.back().get()));
  }
}

LocalCluster::~LocalCluster() = default;

void LocalCluster::loseWorker(uint32_t rank) {
  const MutexLock lock(mutex_);
  for (const auto& shard : shards_) shard->markLost(rank);
}

ShardStatus LocalCluster::status(uint32_t ps_task) {
  const MutexLock lock(mutex_);
  return shards_[ps_task]->status();
}

void LocalCluster::ask(uint32_t ps_task, const std::function<void(Shard&)>& question) {
  const MutexLock lock(mutex_);
  question(*shards_.at(ps_task));
}

// Answers to one round of calls. Shared with the callbacks, because a caller may give up before
// they come. Threads: under the cluster's lock.
template <class Answer>
struct LocalParameterClient::Round {
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

LocalParameterClient::LocalParameterClient(LocalCluster& cluster, uint32_t rank)
    : cluster_(cluster), rank_(rank) {
  DTF_CHECK(rank < cluster.workers_);
}

template <class Answer>
std::function<void(Answer)> LocalParameterClient::recorder(std::shared_ptr<Round<Answer>> round,
                                                           size_t index) {
  return [round = std::move(round), index, cond = &cluster_.answered_](const Answer& answer) {
    round->set(index, answer);
    cond->notifyAll();
  };
}

// Until all answers are there; throws the first error among them.
template <class Answer>
void LocalParameterClient::await(Round<Answer>& round, std::string_view what) {
  const auto deadline = deadlineAfter(std::chrono::steady_clock::now(), cluster_.timeout_);
  while (round.missing > 0 && !round.error) {
    if (cluster_.answered_.waitUntil(cluster_.mutex_, deadline)) continue;
    if (round.missing == 0 || round.error) break;
    throw Error(ErrorCode::kDeadline, fmt::format("{} has waited {} for {}", workerName(rank_),
                                                  secondsText(cluster_.timeout_), what));
  }
  if (round.error) throw *round.error;
}

void LocalParameterClient::take(size_t ps, const PushAnswer& answer) {
  const PushReply& reply = std::get<PushReply>(answer);
  settlement_->answered(static_cast<uint32_t>(ps), reply.state);
  epoch_ = reply.state.epoch;
  if (reply.parameters) parameters_[ps] = reply.parameters;
}

// Asks again until all ps name the same step.
StepState LocalParameterClient::settle() {
  for (;;) {
    const std::vector<Agreement::Pull> pulls = settlement_->again();
    if (pulls.empty()) {
      const StepState& state = settlement_->state();
      progress_ = state.done && state.progress > 0 ? kProgressEnd : state.progress;
      return state;
    }
    const MutexLock lock(cluster_.mutex_);
    auto answers = std::make_shared<Round<PushAnswer>>(pulls.size());
    for (size_t i = 0; i < pulls.size(); ++i)
      cluster_.shards_[pulls[i].ps_task]->pull(rank_, incarnation_, pulls[i].wanted,
                                               recorder(answers, i));
    await(*answers, "parameters of the same step from every ps");
    for (size_t i = 0; i < pulls.size(); ++i) take(pulls[i].ps_task, *answers->answers[i]);
  }
}

void LocalParameterClient::keepOn(std::shared_ptr<DeviceArrays> device) {
  const MutexLock lock(cluster_.mutex_);
  DTF_CHECK(cluster_.shards_.size() == 1 && cluster_.workers_ == 1);
  cluster_.shards_[0]->keepOn(std::move(device));
  on_device_ = true;
}

void LocalParameterClient::declare(const ModelDeclaration& model) {
  const MutexLock lock(cluster_.mutex_);
  for (const auto& shard : cluster_.shards_) {
    shard->join(rank_, incarnation_);
    shard->declare(rank_, incarnation_, model);
  }
  declaration_ = model;
  const size_t ps_tasks = model.layout.shards.size();
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    gradients_.emplace_back(GradientLayout(model.layout, ps));
  if (model.replication.overlap) {
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      pushed_.emplace_back(GradientLayout(model.layout, ps));
    beside_ = std::make_unique<ExchangeThread>([this](uint64_t step, uint32_t batch, float loss) {
      return exchangeGradients(pushed_, step, batch, loss);
    });
  }
  parameters_.resize(ps_tasks);
  averages_.resize(ps_tasks);
  settlement_.emplace(model.replication, static_cast<uint32_t>(ps_tasks), workerName(rank_));
}

void LocalParameterClient::initialise(std::span<const std::span<const float>> values,
                                      uint64_t epoch) {
  const MutexLock lock(cluster_.mutex_);
  DTF_CHECK(values.size() == cluster_.shards_.size());
  for (size_t ps = 0; ps < values.size(); ++ps) {
    cluster_.shards_[ps]->initialise(rank_, incarnation_, values[ps], epoch);
  }
}

void LocalParameterClient::waitInitialised() {
  const MutexLock lock(cluster_.mutex_);
  const size_t ps_tasks = cluster_.shards_.size();
  auto answers = std::make_shared<Round<WaitAnswer>>(ps_tasks);
  for (size_t ps = 0; ps < ps_tasks; ++ps) {
    cluster_.shards_[ps]->waitInitialised(rank_, incarnation_, cluster_.timeout_,
                                          recorder(answers, ps));
  }
  await(*answers, "the chief to initialise every ps");
}

StepState LocalParameterClient::pull() {
  {
    const MutexLock lock(cluster_.mutex_);
    const size_t ps_tasks = cluster_.shards_.size();
    auto answers = std::make_shared<Round<PushAnswer>>(ps_tasks);
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

void LocalParameterClient::pullAverages() {
  const MutexLock lock(cluster_.mutex_);
  auto answers = std::make_shared<Round<PushAnswer>>(averages_.size());
  for (size_t ps = 0; ps < averages_.size(); ++ps)
    cluster_.shards_[ps]->pullAside(rank_, incarnation_, Shard::Aside::kAverages,
                                    recorder(answers, ps));
  await(*answers, "moving averages from every ps");
  for (size_t ps = 0; ps < averages_.size(); ++ps)
    averages_[ps] = std::get<PushReply>(*answers->answers[ps]).parameters;
}

const float* LocalParameterClient::parameters(uint32_t ps_task) const {
  DTF_CHECK(ps_task < parameters_.size() && parameters_[ps_task] != nullptr);
  if (on_device_) {
    const MutexLock lock(cluster_.mutex_);
    DTF_CHECK(cluster_.shards_[0]->readableParameters() == parameters_[0]);
  }
  return parameters_[ps_task]->data();
}

float* LocalParameterClient::gradients(uint32_t ps_task) {
  DTF_CHECK(ps_task < gradients_.size());
  return gradients_[ps_task].values();
}

void LocalParameterClient::setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) {
  gradients_.at(ps_task).setRows(row_counts);
}

StepState LocalParameterClient::exchange(uint64_t step, uint32_t batch, float loss) {
  return exchangeGradients(gradients_, step, batch, loss);
}

void LocalParameterClient::startExchange(uint64_t step, uint32_t batch, float loss) {
  DTF_CHECK(beside_ != nullptr);
  std::swap(gradients_, pushed_);
  read_ = parameters_;
  beside_->start(step, batch, loss);
}

StepState LocalParameterClient::finishExchange() {
  DTF_CHECK(beside_ != nullptr);
  return beside_->finish();
}

StepState LocalParameterClient::exchangeGradients(const std::vector<GradientBuffer>& gradients,
                                                  uint64_t step, uint32_t batch, float loss) {
  {
    const MutexLock lock(cluster_.mutex_);
    const size_t ps_tasks = cluster_.shards_.size();
    auto answers = std::make_shared<Round<PushAnswer>>(ps_tasks);
    ++sequence_;
    // A queued batch is kept by the ps beyond this call: it gets its own copy.
    const bool kept = queuesBatches(declaration_.replication);
    for (size_t ps = 0; ps < ps_tasks; ++ps) {
      Gradient gradient = kept ? gradients[ps].copy() : gradients[ps].share();
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

void LocalParameterClient::barrier(std::string_view name) {
  const MutexLock lock(cluster_.mutex_);
  auto answers = std::make_shared<Round<WaitAnswer>>(1);
  cluster_.shards_[0]->barrier(rank_, incarnation_, name, Arrival::kFirst, cluster_.timeout_,
                               recorder(answers, 0));
  await(*answers, fmt::format("the others at barrier '{}'", name));
}

void LocalParameterClient::finish() {
  const MutexLock lock(cluster_.mutex_);
  for (const auto& shard : cluster_.shards_) shard->finish(rank_, incarnation_);
}

const float* LocalParameterClient::averages(uint32_t ps_task) const {
  DTF_CHECK(ps_task < averages_.size() && averages_[ps_task] != nullptr);
  return averages_[ps_task]->data();
}

}  // namespace dtf::ps
