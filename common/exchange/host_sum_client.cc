#include "common/exchange/host_sum_client.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/trace.h"
#include "common/optimizer/gradient_math.h"
#include "common/shard/declaration.h"

namespace dtf::exchange {

namespace {

// Returns a digest of all that the tasks of one job share: the job's, then the declaration.
uint64_t identityOf(uint64_t of_job, const arena::ModelDeclaration& declaration) {
  std::string text = hexOf(of_job) + hexOf(declaration.layout.fingerprint());
  for (const arena::Setting& setting : shard::settingsOf(declaration))
    text += setting.name + "=" + setting.value + "\n";
  return checksumOf(text);
}

}  // namespace

HostSumClient::HostSumClient(ExchangeClient& inner, HostSumOptions options)
    : inner_(inner), options_(std::move(options)) {
  DTF_CHECK(options_.ranks.size() >= 2);
}

// The plan of a job with sums by host has neither streams nor rows (transfer_plan.h).
Traits HostSumClient::traits() const {
  Traits traits = inner_.traits();
  traits.streams = traits.overlaps = traits.brings_rows = traits.on_device = false;
  traits.has_whole = true;
  return traits;
}

void HostSumClient::declare(const arena::ModelDeclaration& declaration,
                            std::shared_ptr<optimizer::DeviceArrays> device) {
  DTF_CHECK(device == nullptr && sum_ == nullptr);
  inner_.declare(declaration);
  for (const arena::ShardLayout& shard : declaration.layout.shards)
    elements_.push_back(shard.elements);
  shares_.emplace(declaration, declaration.replication.total_num_replicas);
  HostSumOptions options = options_;
  options.identity = identityOf(options_.identity, declaration);
  sum_ = std::make_unique<HostSum>(std::move(options), elements_);
}

// Passes an error of the leader to its members, which would wait for its return otherwise.
template <class Action>
replication::StepState HostSumClient::reportingFailure(Action&& action) {
  DTF_CHECK(sum_->leads());
  try {
    return action();
  } catch (const Error& error) {
    sum_->fail(error);
    throw;
  }
}

replication::StepState HostSumClient::pull(Values what) {
  DTF_CHECK(sum_ != nullptr && !begun_);
  if (what == Values::kWhole) return state_;  // traits().has_whole
  if (what != Values::kParameters) {
    inner_.pull(what);
    return state_;
  }
  state_ = sum_->leads() ? reportingFailure([this] { return pullAndPublish(); }) : inner_.pull();
  shows_sum_ = false;
  return state_;
}

replication::StepState HostSumClient::pullAndPublish() {
  const replication::StepState state = inner_.pull();
  publish(state, std::nullopt);
  return state;
}

const float* HostSumClient::view(Values what, uint32_t ps_task) const {
  if (what == Values::kAverages) return inner_.view(what, ps_task);
  return shows_sum_ ? sum_->parameters(ps_task) : inner_.view(Values::kParameters, ps_task);
}

float* HostSumClient::gradients(uint32_t ps_task) {
  return sum_->leads() ? inner_.gradients(ps_task) : sum_->gradient(ps_task);
}

void HostSumClient::setRows(RowsOf what, uint32_t ps_task, const arena::RowSet& rows) {
  DTF_CHECK(rows.ids.empty());  // the plan refuses sparse variables
  inner_.setRows(what, ps_task, rows);
}

void HostSumClient::reportTimes(const replication::PhaseTimes& times) {
  if (sum_->leads()) inner_.reportTimes(times);
}

void HostSumClient::begin(uint64_t step, uint32_t batch, float loss, Gradient gradient) {
  DTF_CHECK(!begun_ && gradient == Gradient::kWhole && batch == 0);
  begun_ = Begun{{state_.epoch, step}, batch, loss};
}

replication::StepState HostSumClient::finish(const Error* failure) {
  DTF_CHECK(begun_.has_value() && failure == nullptr);
  const Begun begun = *std::exchange(begun_, std::nullopt);
  if (sum_->leads()) return state_ = reportingFailure([&] { return lead(begun); });
  sum_->handOver(begun.step, begun.loss);
  state_ = sum_->awaitReply(begun.step);
  shows_sum_ = true;
  return state_;
}

// A member with later parameters has pulled them from ps that went back, or that an earlier leader
// had brought a step further: this gradient has no effect any more.
replication::StepState HostSumClient::lead(const Begun& begun) {
  const SystemClock clock;
  const TimePoint begin = clock.now();
  const std::optional<std::vector<float>> losses = sum_->collect(begun.step);
  const Duration waited = clock.now() - begin;
  replication::StepState state;
  if (losses) {
    const std::vector<uint32_t> weights = weightsOf(begun.step.step);
    addCollected(weights);
    double loss = double{begun.loss} * weights[0], all = weights[0];
    for (size_t i = 0; i < losses->size(); ++i) {
      loss += double{(*losses)[i]} * weights[i + 1];
      all += weights[i + 1];
    }
    state = pushPull(inner_, begun.step.step, begun.batch, static_cast<float>(loss / all));
  } else {
    state = inner_.pull();
    const bool went_back = state.epoch != begun.step.epoch;
    state.outcome = went_back ? replication::Outcome::kWentBack : replication::Outcome::kStale;
  }
  publish(state, begun.step);
  state.waited += waited;
  return state;
}

// Returns the weight of each worker of the host in a step. In a short step of an epoch a host may
// have no examples: its ps leaves its mean out, whatever that is.
std::vector<uint32_t> HostSumClient::weightsOf(uint64_t step) const {
  std::vector<uint32_t> weights;
  for (const uint32_t rank : options_.ranks) weights.push_back(shares_->examples(step, rank, 0));
  const bool is_empty = std::ranges::all_of(weights, [](uint32_t weight) { return weight == 0; });
  if (is_empty) std::ranges::fill(weights, 1U);
  return weights;
}

// Makes this worker's gradient the mean of the host's.
void HostSumClient::addCollected(std::span<const uint32_t> weights) {
  const trace::Span span("mean of the host");
  const bool equal = std::ranges::adjacent_find(weights, std::not_equal_to{}) == weights.end();
  uint64_t all = 0;
  for (const uint32_t weight : weights) all += weight;
  const auto share = [&](size_t place) {
    return equal ? 1 / static_cast<float>(weights.size())
                 : static_cast<float>(weights[place]) / static_cast<float>(all);
  };
  for (uint32_t shard = 0; shard < elements_.size(); ++shard) {
    float* const mean = inner_.gradients(shard);
    if (!equal) optimizer::scale(mean, share(0), elements_[shard]);
    for (size_t member = 0; member + 1 < weights.size(); ++member) {
      const float* const values = sum_->collected(member, shard);
      if (equal)
        optimizer::addInto(mean, values, elements_[shard]);
      else
        optimizer::addScaled(mean, values, share(member + 1), elements_[shard]);
    }
    if (equal) optimizer::scale(mean, share(0), elements_[shard]);
  }
}

void HostSumClient::publish(const replication::StepState& state,
                            const std::optional<SumStep>& answers) {
  std::vector<const float*> parameters;
  for (uint32_t shard = 0; shard < elements_.size(); ++shard)
    parameters.push_back(inner_.view(Values::kParameters, shard));
  sum_->publish(state, answers, parameters);
}

}  // namespace dtf::exchange
