#include "common/ps/local_parameter_client.h"

#include <fmt/format.h>

#include <cstring>

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
  void reportReceived(uint64_t step, uint32_t rank) override DTF_TSA(no_thread_safety_analysis) {
    cluster_.shards_[0]->onReceived(ps_task_, step, rank);
  }
  void announceDecision(uint64_t step, const std::vector<uint32_t>& ranks) override
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
                           Duration timeout)
    : workers_(workers), timeout_(timeout) {
  for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
    peers_.push_back(std::make_unique<Peers>(*this, ps));
    const ShardOptions options{.ps_task = ps,
                               .ps_tasks = ps_tasks,
                               .workers = workers,
                               .lease = Duration::max(),
                               .step_timeout = timeout};
    shards_.push_back(std::make_unique<Shard>(options, clock, runner_, peers_.back().get()));
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

namespace {

// Answers to one round of calls. Shared with the callbacks, because a caller may give up before
// they come. Threads: under the cluster's lock.
template <class Answer>
struct Round {
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

std::shared_ptr<Buffer> copyOf(const Buffer& buffer) {
  auto copy = std::make_shared<Buffer>(buffer.bytes());
  if (buffer.bytes() > 0) std::memcpy(copy->data(), buffer.data(), buffer.bytes());
  return copy;
}

}  // namespace

struct LocalParameterClient::Impl {
  Impl(LocalCluster& cluster_in, uint32_t rank_in) : cluster(cluster_in), rank(rank_in) {}

  void declare(const ModelDeclaration& model);
  void initialise(std::span<const std::span<const float>> values);
  void waitInitialised();
  StepState pull();
  const float* parameterData(uint32_t ps_task) const;
  void pullAverages();
  float* gradientData(uint32_t ps_task);
  StepState exchange(uint64_t step, uint32_t batch, float loss);
  void barrier(std::string_view name);
  void finish();

  LocalCluster& cluster;
  const uint32_t rank;
  const Incarnation incarnation = Incarnation::random();
  ModelDeclaration declaration;
  uint64_t sequence = 0;
  std::vector<std::shared_ptr<Buffer>> gradients;  // shared with pushes
  std::vector<std::shared_ptr<const Snapshot>> parameters;
  std::vector<std::shared_ptr<const Snapshot>> averages;
  std::optional<Settlement> settlement;  // once declared

  template <class Answer>
  std::function<void(Answer)> recorder(std::shared_ptr<Round<Answer>> round, size_t index) {
    return [round = std::move(round), index, cond = &cluster.answered_](const Answer& answer) {
      round->set(index, answer);
      cond->notifyAll();
    };
  }

  // Until all answers are there; throws the first error among them.
  template <class Answer>
  void await(Round<Answer>& round, std::string_view what) DTF_REQUIRES(cluster.mutex_) {
    const auto deadline = deadlineAfter(std::chrono::steady_clock::now(), cluster.timeout_);
    while (round.missing > 0 && !round.error) {
      if (cluster.answered_.waitUntil(cluster.mutex_, deadline)) continue;
      if (round.missing == 0 || round.error) break;
      throw Error(ErrorCode::kDeadline, fmt::format("{} has waited {} for {}", workerName(rank),
                                                    secondsText(cluster.timeout_), what));
    }
    if (round.error) throw *round.error;
  }

  void take(size_t ps, const PushAnswer& answer) {
    const PushReply& reply = std::get<PushReply>(answer);
    settlement->answered(static_cast<uint32_t>(ps), reply.state);
    if (reply.parameters) parameters[ps] = reply.parameters;
  }

  StepState settle();
};

// Asks again until all ps name the same step.
StepState LocalParameterClient::Impl::settle() {
  for (;;) {
    const std::vector<Agreement::Pull> pulls = settlement->again();
    if (pulls.empty()) return settlement->state();
    const MutexLock lock(cluster.mutex_);
    auto answers = std::make_shared<Round<PushAnswer>>(pulls.size());
    for (size_t i = 0; i < pulls.size(); ++i)
      cluster.shards_[pulls[i].ps_task]->pull(rank, incarnation, pulls[i].wanted_step,
                                              recorder(answers, i));
    await(*answers, "parameters of the same step from every ps");
    for (size_t i = 0; i < pulls.size(); ++i) take(pulls[i].ps_task, *answers->answers[i]);
  }
}

void LocalParameterClient::Impl::declare(const ModelDeclaration& model) {
  const MutexLock lock(cluster.mutex_);
  for (const auto& shard : cluster.shards_) {
    shard->declare(rank, model);
    shard->join(rank, incarnation);
  }
  declaration = model;
  const size_t ps_tasks = model.layout.shards.size();
  for (const ShardLayout& shard : model.layout.shards) {
    gradients.push_back(std::make_shared<Buffer>(shard.elements * sizeof(float)));
  }
  parameters.resize(ps_tasks);
  averages.resize(ps_tasks);
  settlement.emplace(model.replication, static_cast<uint32_t>(ps_tasks), workerName(rank));
}

void LocalParameterClient::Impl::initialise(std::span<const std::span<const float>> values) {
  const MutexLock lock(cluster.mutex_);
  DTF_CHECK(values.size() == cluster.shards_.size());
  for (size_t ps = 0; ps < values.size(); ++ps) {
    cluster.shards_[ps]->initialise(rank, incarnation, values[ps]);
  }
}

void LocalParameterClient::Impl::waitInitialised() {
  const MutexLock lock(cluster.mutex_);
  const size_t ps_tasks = cluster.shards_.size();
  auto answers = std::make_shared<Round<WaitAnswer>>(ps_tasks);
  for (size_t ps = 0; ps < ps_tasks; ++ps) {
    cluster.shards_[ps]->waitInitialised(rank, incarnation, cluster.timeout_,
                                         recorder(answers, ps));
  }
  await(*answers, "the chief to initialise every ps");
}

StepState LocalParameterClient::Impl::pull() {
  {
    const MutexLock lock(cluster.mutex_);
    const size_t ps_tasks = cluster.shards_.size();
    auto answers = std::make_shared<Round<PushAnswer>>(ps_tasks);
    for (size_t ps = 0; ps < ps_tasks; ++ps) {
      cluster.shards_[ps]->pull(rank, incarnation, std::nullopt, recorder(answers, ps));
    }
    await(*answers, "a pull from every ps");
    settlement->start();
    for (size_t ps = 0; ps < ps_tasks; ++ps) take(ps, *answers->answers[ps]);
  }
  return settle();
}

void LocalParameterClient::Impl::pullAverages() {
  const MutexLock lock(cluster.mutex_);
  auto answers = std::make_shared<Round<PushAnswer>>(averages.size());
  for (size_t ps = 0; ps < averages.size(); ++ps)
    cluster.shards_[ps]->pullAverages(rank, incarnation, recorder(answers, ps));
  await(*answers, "moving averages from every ps");
  for (size_t ps = 0; ps < averages.size(); ++ps)
    averages[ps] = std::get<PushReply>(*answers->answers[ps]).parameters;
}

const float* LocalParameterClient::Impl::parameterData(uint32_t ps_task) const {
  DTF_CHECK(ps_task < parameters.size() && parameters[ps_task] != nullptr);
  return parameters[ps_task]->data();
}

float* LocalParameterClient::Impl::gradientData(uint32_t ps_task) {
  DTF_CHECK(ps_task < gradients.size());
  return gradients[ps_task]->as<float>();
}

StepState LocalParameterClient::Impl::exchange(uint64_t step, uint32_t batch, float loss) {
  {
    const MutexLock lock(cluster.mutex_);
    const size_t ps_tasks = cluster.shards_.size();
    auto answers = std::make_shared<Round<PushAnswer>>(ps_tasks);
    ++sequence;
    // A queued batch is kept by the ps beyond this call: it gets its own copy.
    const bool kept = queuesBatches(declaration.replication);
    for (size_t ps = 0; ps < ps_tasks; ++ps) {
      const std::shared_ptr<Buffer> buffer = kept ? copyOf(*gradients[ps]) : gradients[ps];
      const std::span<const float> values(buffer->as<float>(), buffer->bytes() / sizeof(float));
      cluster.shards_[ps]->push({.rank = rank,
                                 .incarnation = incarnation,
                                 .step = step,
                                 .batch = batch,
                                 .sequence = sequence,
                                 .loss = loss,
                                 .gradient = values,
                                 .owner = buffer},
                                recorder(answers, ps));
    }
    await(*answers, fmt::format("step {} on every ps", step));
    settlement->start();
    for (size_t ps = 0; ps < ps_tasks; ++ps) take(ps, *answers->answers[ps]);
  }
  return settle();
}

void LocalParameterClient::Impl::barrier(std::string_view name) {
  const MutexLock lock(cluster.mutex_);
  auto answers = std::make_shared<Round<WaitAnswer>>(1);
  cluster.shards_[0]->barrier(rank, incarnation, name, cluster.timeout_, recorder(answers, 0));
  await(*answers, fmt::format("the others at barrier '{}'", name));
}

void LocalParameterClient::Impl::finish() {
  const MutexLock lock(cluster.mutex_);
  for (const auto& shard : cluster.shards_) shard->finish(rank, incarnation);
}

LocalParameterClient::LocalParameterClient(LocalCluster& cluster, uint32_t rank)
    : impl_(std::make_unique<Impl>(cluster, rank)) {
  DTF_CHECK(rank < cluster.workers_);
}

LocalParameterClient::~LocalParameterClient() = default;

void LocalParameterClient::declare(const ModelDeclaration& declaration) {
  impl_->declare(declaration);
}
void LocalParameterClient::initialise(std::span<const std::span<const float>> shards) {
  impl_->initialise(shards);
}
void LocalParameterClient::waitInitialised() {
  impl_->waitInitialised();
}
StepState LocalParameterClient::pull() {
  return impl_->pull();
}
const float* LocalParameterClient::parameters(uint32_t ps_task) const {
  return impl_->parameterData(ps_task);
}
void LocalParameterClient::pullAverages() {
  impl_->pullAverages();
}
const float* LocalParameterClient::averages(uint32_t ps_task) const {
  return impl_->averages.at(ps_task)->data();
}
float* LocalParameterClient::gradients(uint32_t ps_task) {
  return impl_->gradientData(ps_task);
}
StepState LocalParameterClient::exchange(uint64_t step, uint32_t batch, float loss) {
  return impl_->exchange(step, batch, loss);
}
void LocalParameterClient::barrier(std::string_view name) {
  impl_->barrier(name);
}
void LocalParameterClient::finish() {
  impl_->finish();
}

}  // namespace dtf::ps
