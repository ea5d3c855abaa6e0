#include "common/replication/straggler_finder.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace dtf::replication {

namespace {

constexpr float kShareMin = 0.1823f;  // log(1.2)
constexpr float kNoisesMin = 5;
constexpr float kNoisesMinOfBlocks = 2.5f;
constexpr float kWorthMin = 1000;     // microseconds a step
constexpr float kMoreMin = 0.0953f;   // log(1.1), of another worker than the named one
constexpr uint64_t kFirstSteps = 1;   // skipped: memory is touched for the first time
constexpr uint64_t kNoiseSteps = 32;  // in the noise
constexpr double kDeviationMax = 3;   // in noises, or
constexpr double kDeviationFree = 0.1;

float microseconds(Duration time) {
  return std::chrono::duration<float, std::micro>(time).count();
}

Duration duration(float microseconds) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<float, std::micro>(microseconds));
}

template <size_t N>
float median(std::array<float, N> values, size_t count) {
  DTF_CHECK(count > 0 && count <= N);
  const auto middle = values.begin() + static_cast<ptrdiff_t>((count - 1) / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<ptrdiff_t>(count));
  return *middle;
}

}  // namespace

void StragglerFinder::Lags::put(size_t slot, float lag) {
  each[slot] = lag;
  Window sorted = each;
  std::ranges::sort(sorted);
  low = sorted[kSteps - 6];
  high = sorted[5];
}

StragglerFinder::StragglerFinder(const std::vector<uint32_t>& batches)
    : workers_(batches.size()), sorted_(batches.size()) {
  for (size_t rank = 0; rank < batches.size(); ++rank) {
    DTF_CHECK(batches[rank] > 0);
    workers_[rank].batches = static_cast<float>(batches[rank]);
  }
}

bool StragglerFinder::note(uint32_t rank, uint64_t step, const PhaseTimes& times) {
  DTF_CHECK(rank < workers_.size());
  if (times.own() <= Duration{0} || workers_.size() < 2) return false;
  if (round_ == 0 || step != step_) {
    ++round_;
    step_ = step;
    reports_ = 0;
  }
  Worker& worker = workers_[rank];
  if (worker.reported == round_) return false;
  worker.reported = round_;
  worker.times = times;
  if (++reports_ < workers_.size()) return false;
  const std::optional<Straggler> before = straggler_;
  observe();
  return before.has_value() != straggler_.has_value() ||
         (before && before->rank != straggler_->rank);
}

// Returns the lower median over the other workers of `of(worker)`.
template <class Of>
float StragglerFinder::ofOthers(uint32_t rank, const Of& of) const {
  size_t count = 0;
  for (uint32_t other = 0; other < workers_.size(); ++other)
    if (other != rank) sorted_[count++] = of(workers_[other]);
  const auto middle = sorted_.begin() + static_cast<ptrdiff_t>((count - 1) / 2);
  std::nth_element(sorted_.begin(), middle, sorted_.begin() + static_cast<ptrdiff_t>(count));
  return *middle;
}

void StragglerFinder::observe() {
  if (++steps_ <= kFirstSteps) return;
  const uint64_t number = steps_ - kFirstSteps - 1;
  const size_t slot = number % kSteps;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    Worker& worker = workers_[rank];
    const float own = microseconds(worker.times.own()) / worker.batches;
    sorted_[rank] = own;
    if (number >= kSteps / 2) noteDeviation(worker, own);
    worker.own[slot] = own;
    for (size_t i = 0; i < kOwnPhases.size(); ++i)
      worker.phases[i][slot] = microseconds(worker.times[kOwnPhases[i]]) / worker.batches;
  }
  std::ranges::sort(sorted_);
  const size_t middle = (workers_.size() - 2) / 2;  // of one less than all
  const bool ends_block = slot == kSteps - 1;
  for (Worker& worker : workers_) {
    const float own = worker.own[slot];
    const float others = own > sorted_[middle] ? sorted_[middle] : sorted_[middle + 1];
    worker.steps.put(slot, std::log(own / others));
    if (ends_block) worker.blocks.put(number / kSteps % kSteps, worker.steps.low);
  }
  if (number + 1 >= kSteps) judge();
}

// `own` is not in the worker's window yet.
void StragglerFinder::noteDeviation(const Worker& worker, float own) {
  const uint64_t number = steps_ - kFirstSteps - 1;
  const size_t known = std::min<uint64_t>(number, kSteps);
  double deviation = 1.25 * std::abs(std::log(own / median(worker.own, known)));
  const uint64_t counted = workers_.size() * kNoiseSteps;
  deviation = std::min(deviation, std::max(kDeviationMax * noise_, kDeviationFree));
  noise_ += (deviation - noise_) / static_cast<double>(std::min(++deviations_, counted));
}

// ---- the rule

float StragglerFinder::limit(Scale scale) const {
  const float noises = scale == Scale::kSteps ? kNoisesMin : kNoisesMinOfBlocks;
  return std::max(kShareMin, noises * static_cast<float>(noise_));
}

std::optional<StragglerFinder::Scale> StragglerFinder::isSlow(uint32_t rank) const {
  const Worker& worker = workers_[rank];
  const bool in_steps = worker.steps.low >= limit(Scale::kSteps);
  const bool in_blocks =
      worker.blocks.low >= limit(Scale::kBlocks) && isSlowStill(rank, Scale::kBlocks);
  if ((!in_steps && !in_blocks) || !isAwaited(rank)) return std::nullopt;
  if (microseconds(describe(rank).excess) < kWorthMin) return std::nullopt;
  return in_steps ? Scale::kSteps : Scale::kBlocks;
}

bool StragglerFinder::isSlowStill(uint32_t rank, Scale scale) const {
  return workers_[rank].steps.high >= limit(scale) / 2;
}

// Whether the rank's own time of a whole step is longer than the others': one that is slow at each
// batch may have fewer of them. With equal numbers the comparison by batch decides alone.
bool StragglerFinder::isAwaited(uint32_t rank) const {
  const auto has_as_many = [this, rank](const Worker& of) {
    return of.batches == workers_[rank].batches;
  };
  if (std::ranges::all_of(workers_, has_as_many)) return true;
  const auto of_step = [](const Worker& of) { return median(of.own, kSteps) * of.batches; };
  return of_step(workers_[rank]) > ofOthers(rank, of_step);
}

void StragglerFinder::judge() {
  const bool is_named_still =
      straggler_ && isSlowStill(straggler_->rank, scale_) && isAwaited(straggler_->rank);
  if (straggler_ && !is_named_still) {
    workers_[straggler_->rank].blocks = {};  // of the time before
    straggler_.reset();
  }
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const std::optional<Scale> scale = isSlow(rank);
    if (!scale) continue;
    const bool is_other = straggler_ && straggler_->rank != rank;
    if (is_other && workers_[rank].steps.low < workers_[straggler_->rank].steps.low + kMoreMin)
      continue;
    straggler_ = Straggler{.rank = rank};
    scale_ = *scale;
  }
  if (straggler_) straggler_ = describe(straggler_->rank);
}

Duration StragglerFinder::own(uint32_t rank) const {
  const Worker& worker = workers_.at(rank);
  return duration(median(worker.own, kSteps) * worker.batches);
}

Straggler StragglerFinder::describe(uint32_t rank) const {
  const Worker& worker = workers_[rank];
  const auto own = [](const Worker& of) { return median(of.own, kSteps); };
  Straggler straggler{.rank = rank};
  straggler.excess = duration((own(worker) - ofOthers(rank, own)) * worker.batches);
  float most = -1;
  for (size_t i = 0; i < kOwnPhases.size(); ++i) {
    const auto phase = [i](const Worker& of) { return median(of.phases[i], kSteps); };
    const float excess = phase(worker) - ofOthers(rank, phase);
    if (excess <= most) continue;
    most = excess;
    straggler.phase = kOwnPhases[i];
  }
  return straggler;
}

}  // namespace dtf::replication
