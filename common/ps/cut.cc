#include "common/ps/cut.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::ps {

std::string cutText(const CutPosition& position) {
  if (position.size() == 1) return fmt::format("step {}", position[0]);
  return fmt::format("{} pushes", std::accumulate(position.begin(), position.end(), uint64_t{0}));
}

CutTaker::CutTaker(ParameterStore& store, OutwardCalls& calls, const Clock& clock)
    : store_(store), calls_(calls), clock_(clock) {}

void CutTaker::arm(CutPosition target, Duration timeout, CutCallback callback) {
  DTF_CHECK(callback != nullptr);
  if (armed()) answer(Error(ErrorCode::kUnavailable, "this checkpoint gave way to a newer one"));
  target_ = std::move(target);
  callback_ = std::move(callback);
  deadline_ = deadlineAfter(clock_.now(), timeout);
}

void CutTaker::take() {
  DTF_CHECK(armed());
  const TimePoint begin = clock_.now();
  auto capture = std::make_shared<Capture>();
  capture->position = target_;
  capture->version = store_.version();
  capture->parameters = store_.current();
  capture->clock = store_.clockState();
  for (uint32_t i = 0; i < store_.slotCount(); ++i) {
    const std::span<const float> slot = store_.slot(i);
    Buffer copy(slot.size_bytes());
    if (!slot.empty()) std::memcpy(copy.data(), slot.data(), slot.size_bytes());
    capture->slots.push_back(std::move(copy));
  }
  capture->stall = clock_.now() - begin;
  latest_ = std::move(capture);
  answer(CutResult{CutOutcome::kCaptured, latest_->version});
}

void CutTaker::answer(CutAnswer what) {
  if (!armed()) return;
  calls_.add([callback = std::move(callback_), what = std::move(what)] { callback(what); });
  callback_ = nullptr;
}

}  // namespace dtf::ps
