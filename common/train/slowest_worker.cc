#include "common/train/slowest_worker.h"

#include <algorithm>
#include <numeric>

namespace dtf::train {

void SlowestWorker::note(const std::optional<replication::Straggler>& named) {
  if (!named || named->rank >= workers_.size()) return;
  Worker& worker = workers_[named->rank];
  ++worker.steps;
  worker.excess[static_cast<size_t>(named->phase)] += named->excess;
}

std::optional<Slowest> SlowestWorker::most() const {
  std::optional<Slowest> most;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const auto& excess = workers_[rank].excess;
    const double seconds = toSeconds(std::accumulate(excess.begin(), excess.end(), Duration{0}));
    if (workers_[rank].steps == 0 || (most && most->seconds >= seconds)) continue;
    const auto phase = std::ranges::max_element(excess) - excess.begin();
    most = Slowest{rank, static_cast<replication::Phase>(phase), workers_[rank].steps, seconds};
  }
  return most;
}

}  // namespace dtf::train
