#include "common/shard/straggler_watch.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/log.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"

namespace dtf::shard {

namespace {

constexpr Duration kLogEvery = std::chrono::seconds(10);

}  // namespace

void StragglerWatch::note(const replication::Contribution& push,
                          const arena::ModelDeclaration& model) {
  if (push.times.own() <= Duration{0} || !replication::awaitsAll(model.replication)) return;
  if (!finder_) {
    std::vector<uint32_t> batches;
    for (uint32_t rank = 0; rank < workers_; ++rank)
      batches.push_back(replication::batchesPerStep(model.replication, rank));
    finder_.emplace(batches);
  }
  finder_->note(push.rank, push.step, push.times);
  const std::optional<replication::Straggler>& found = finder_->straggler();
  if (found ? logged_ != found->rank : logged_.has_value()) log(push.step);
}

const std::optional<replication::Straggler>& StragglerWatch::straggler() const {
  static const std::optional<replication::Straggler> none;
  return finder_ ? finder_->straggler() : none;
}

void StragglerWatch::log(uint64_t step) {
  const TimePoint now = clock_.now();
  if (logged_at_ && now - *logged_at_ < kLogEvery) return;
  logged_at_ = now;
  const auto milliseconds = [](Duration time) { return 1e3 * toSeconds(time); };
  const std::optional<replication::Straggler>& found = finder_->straggler();
  if (found)
    log::warning("event=straggler worker={} phase={} step={} own_ms={:.3f} excess_ms={:.3f}",
                 replication::workerName(found->rank), replication::phaseName(found->phase), step,
                 milliseconds(finder_->own(found->rank)), milliseconds(found->excess));
  else
    log::info("event=straggler_gone worker={} step={}", replication::workerName(logged_.value()),
              step);
  logged_ = found ? std::optional(found->rank) : std::nullopt;
}

}  // namespace dtf::shard
