#include "common/runtime/stop_scope.h"

#include <utility>

#include "common/base/error.h"

namespace dtf::runtime {
namespace {

thread_local const std::atomic<bool>* innermost = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>& stop) : before_(std::exchange(innermost, &stop)) {}

StopScope::~StopScope() {
  innermost = before_;
}

const std::atomic<bool>* StopScope::current() {
  return innermost;
}

void throwIfStopped(const std::atomic<bool>* stop) {
  if (stop == nullptr || !stop->load(std::memory_order_relaxed)) return;
  throw Error(ErrorCode::kUnavailable, "The step was ended while it computed.");
}

}  // namespace dtf::runtime
