#include "common/train/pooled_updates.h"

#include <algorithm>
#include <cstdint>

#include "common/base/check.h"
#include "common/runtime/processor.h"

namespace dtf::train {

namespace {

// Large enough to be worth another thread; small enough that a part's gradient, parameters and
// slots stay in a core's cache between read and write.
constexpr uint64_t kPartElementsMin = 8 << 10;
constexpr uint64_t kPartElementsMax = 64 << 10;
constexpr uint64_t kLineElements = 16;

uint64_t partElements(uint64_t elements, int threads) {
  const uint64_t parts = static_cast<uint64_t>(threads) * runtime::Processor::kPartsEach;
  const uint64_t part = std::clamp(elements / parts + 1, kPartElementsMin, kPartElementsMax);
  return (part + kLineElements - 1) / kLineElements * kLineElements;
}

}  // namespace

void PooledUpdates::start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) {
  DTF_CHECK(job != nullptr && done != nullptr);
  const uint64_t elements = job->elements();
  const uint64_t part = partElements(elements, pool_.threads());
  if (std::this_thread::get_id() != owner_ || pool_.threads() == 1 || elements <= part) {
    job->runAll();
    return done();
  }
  const int parts = static_cast<int>((elements + part - 1) / part);
  const auto of_parts = [&](auto pass) {
    pool_.run(parts, [&](int i, int) {
      const uint64_t begin = static_cast<uint64_t>(i) * part;
      pass(begin, std::min(elements, begin + part));
    });
  };
  if (job->needsMeasuring())
    of_parts([&job](uint64_t begin, uint64_t end) { job->measure(begin, end); });
  of_parts([&job](uint64_t begin, uint64_t end) { job->run(begin, end); });
  done();
}

}  // namespace dtf::train
