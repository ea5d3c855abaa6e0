#include "common/replication/cut.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::replication {

std::string cutText(const CutPosition& position) {
  if (position.size() == 1) return fmt::format("step {}", position[0]);
  return fmt::format("{} pushes", std::accumulate(position.begin(), position.end(), uint64_t{0}));
}

CutTaker::CutTaker(optimizer::ParameterStore& store, Updater& updater, OutwardCalls& calls,
                   const Clock& clock)
    : store_(store), updater_(updater), calls_(calls), clock_(clock) {}

void CutTaker::arm(CutPosition target, Duration timeout, CutCallback callback) {
  DTF_CHECK(callback != nullptr);
  if (armed()) answer(Error(ErrorCode::kUnavailable, "this checkpoint gave way to a newer one"));
  target_ = std::move(target);
  callback_ = std::move(callback);
  deadline_ = deadlineAfter(clock_.now(), timeout);
}

void CutTaker::take() {
  DTF_CHECK(armed() && !updater_.busy());
  takings_.push_back({target_, std::exchange(callback_, nullptr)});
  if (takings_.size() == 1) copyNext();
}

// No update runs before the last copy is done, so each capture has the shard as it was at its
// take().
void CutTaker::copyNext() {
  const TimePoint begin = clock_.now();
  auto capture = std::make_shared<Capture>();
  capture->position = takings_.front().position;
  capture->version = store_.version();
  capture->clock = store_.clockState();
  try {
    capture->parameters = store_.readable();
    updater_.copySlots([this, capture, begin](std::vector<Buffer> slots) {
      capture->slots = std::move(slots);
      capture->stall = clock_.now() - begin;
      finish(capture);
    });
  } catch (const Error& error) {  // the device failed: nothing is captured
    endTaking(error);
  }
}

void CutTaker::finish(std::shared_ptr<Capture> capture) {
  DTF_CHECK(capture->version == store_.version());
  latest_ = std::move(capture);
  endTaking(CutResult{CutOutcome::kCaptured, latest_->version});
}

void CutTaker::endTaking(CutAnswer what) {
  calls_.add([callback = std::move(takings_.front().callback), what = std::move(what)] {
    callback(what);
  });
  takings_.pop_front();
  if (!takings_.empty()) copyNext();
}

void CutTaker::answer(CutAnswer what) {
  if (!armed()) return;
  calls_.add([callback = std::move(callback_), what = std::move(what)] { callback(what); });
  callback_ = nullptr;
}

}  // namespace dtf::replication
