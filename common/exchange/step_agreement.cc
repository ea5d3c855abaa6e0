#include "common/exchange/step_agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"

namespace dtf::exchange {

namespace {

// Returns pulls from the ps that are not on the greatest epoch.
std::vector<Agreement::Pull> pullsForEpoch(std::span<const replication::StepState> states) {
  uint64_t greatest = states[0].epoch;
  for (const replication::StepState& state : states) greatest = std::max(greatest, state.epoch);
  // If two lines have one number, neither is the later: the chief sends all ps to a third.
  const auto is_rival = [greatest](const replication::StepState& state) {
    return state.epoch != greatest &&
           replication::epochNumber(state.epoch) == replication::epochNumber(greatest);
  };
  const bool rivals = std::any_of(states.begin(), states.end(), is_rival);
  const uint64_t wanted = rivals ? replication::nextEpoch(greatest, 0) : greatest;
  std::vector<Agreement::Pull> pulls;
  for (uint32_t ps = 0; ps < states.size(); ++ps)
    if (states[ps].epoch != wanted) pulls.push_back({ps, {}, wanted});
  return pulls;
}

// Returns pulls from the ps that don't have the worker's clock.
std::vector<Agreement::Pull> pullsForProgress(std::span<const replication::StepState> states) {
  const uint64_t progress = states[0].done ? replication::kProgressEnd : states[0].progress;
  if (progress == 0) return {{0, {}, states[0].epoch}};  // ps/0 assigns it at a pull
  std::vector<Agreement::Pull> pulls;
  for (uint32_t ps = 1; ps < states.size(); ++ps)
    if (states[ps].progress != progress)
      pulls.push_back({ps, {.progress = progress}, states[ps].epoch});
  return pulls;
}

}  // namespace

Agreement agree(const cluster::ReplicationSpec& replication,
                std::span<const replication::StepState> states,
                std::span<const std::optional<uint64_t>> asked) {
  DTF_CHECK(!states.empty() && states.size() == asked.size());
  Agreement agreement;
  agreement.state = states[0];
  agreement.again = pullsForEpoch(states);
  if (!agreement.again.empty()) return agreement;
  if (replication::staleness(replication)) agreement.again = pullsForProgress(states);
  if (!replication::sharesSteps(replication)) return agreement;

  uint64_t lowest = states[0].next_step;
  uint64_t highest = states[0].next_step;
  for (const replication::StepState& state : states) {
    lowest = std::min(lowest, state.next_step);
    highest = std::max(highest, state.next_step);
    // A batch that some ps lacks is pushed to all again; to the others it is a repeated push.
    agreement.state.next_batch = std::min(agreement.state.next_batch, state.next_batch);
  }
  if (lowest == highest) return agreement;

  // First pull the earlier step from the ps ahead. Where it is gone, the other ps have caught up:
  // pull from these.
  bool lowest_is_gone = false;
  for (size_t ps = 0; ps < states.size(); ++ps) {
    lowest_is_gone |= states[ps].next_step > lowest && asked[ps] == lowest;
  }
  for (uint32_t ps = 0; ps < states.size(); ++ps) {
    if (lowest_is_gone && states[ps].next_step < highest) {
      agreement.again.push_back({ps, {}, states[ps].epoch});
    } else if (!lowest_is_gone && states[ps].next_step > lowest) {
      agreement.again.push_back({ps, {.step = lowest}, states[ps].epoch});
    }
  }
  return agreement;
}

Settlement::Settlement(const cluster::ReplicationSpec& replication, uint32_t ps_tasks,
                       std::string who)
    : replication_(replication), who_(std::move(who)), states_(ps_tasks), asked_(ps_tasks) {
  DTF_CHECK(ps_tasks > 0);
}

void Settlement::start(bool is_push) {
  is_push_ = is_push;
  went_back_ = false;
  std::fill(asked_.begin(), asked_.end(), std::nullopt);
  outcome_.reset();
  settled_.reset();
  rounds_ = 0;
}

void Settlement::answered(uint32_t ps_task, const replication::StepState& state) {
  DTF_CHECK(ps_task < states_.size() && !settled_);
  states_[ps_task] = state;
  went_back_ |= state.outcome == replication::Outcome::kWentBack;
}

std::vector<Agreement::Pull> Settlement::again() {
  DTF_CHECK(!settled_);
  if (!outcome_) outcome_ = states_[0].outcome;
  const Agreement agreement = agree(replication_, states_, asked_);
  if (agreement.again.empty()) {
    settled_ = agreement.state;
    if (outcome_ == replication::Outcome::kStale) settled_->outcome = replication::Outcome::kStale;
    if (went_back_ || (is_push_ && settled_->epoch != epoch_))
      settled_->outcome = replication::Outcome::kWentBack;
    epoch_ = settled_->epoch;
    return {};
  }
  if (++rounds_ > kAgreementRoundsMax)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} asked {} times and did not get parameters of the same {} from "
                            "every ps",
                            who_, kAgreementRoundsMax,
                            replication::staleness(replication_) ? "progress" : "step"));
  for (const Agreement::Pull& pull : agreement.again) asked_[pull.ps_task] = pull.wanted.step;
  return agreement.again;
}

const replication::StepState& Settlement::state() const {
  DTF_CHECK(settled_.has_value());
  return *settled_;
}

}  // namespace dtf::exchange
