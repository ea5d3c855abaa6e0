#include "common/engine/local_step.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/runtime/stop_scope.h"

namespace dtf::engine {
namespace {

// Returns whether there is a single part that waits for nothing but its own pieces, which are in
// order.
bool isAlone(std::span<const StepPart> parts) {
  if (parts.size() != 1 || !parts[0].program->receives().empty()) return false;
  return std::ranges::none_of(parts[0].program->pieces(),
                              [](const PartProgram::Piece& piece) { return piece.may_wait; });
}

// Ends the computation of this thread, from another one.
class Stop {
 public:
  void operator()(const Error& cause) {
    MutexLock lock(mutex_);
    if (!cause_) cause_ = cause;
    is_set_ = true;
  }
  const std::atomic<bool>& flag() const { return is_set_; }
  std::optional<Error> cause() const {
    MutexLock lock(mutex_);
    return cause_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> cause_ DTF_GUARDED_BY(mutex_);
  std::atomic<bool> is_set_ = false;
};

uint64_t runPieces(StepPart& part) {
  uint64_t kernels = 0;
  for (size_t i = 0; i < part.program->pieces().size(); ++i) {
    const trace::PieceScope traced(part.trace.get(), i);
    const auto sends = part.program->run(i, part.inputs);
    DTF_CHECK(sends.empty());  // there is no receiver
    kernels += part.program->pieces()[i].kernels;
  }
  return kernels;
}

uint64_t runAlone(StepId step, StepPart& part, StepWatch& watch, Duration at_most) {
  Stop stop;
  const StepWatch::Watched watched(watch, step.number, at_most, stop);
  uint64_t kernels = 0;
  try {
    part.queue->runHere([&] {
      const runtime::StopScope scope(stop.flag());
      kernels = runPieces(part);
    });
  } catch (const Error&) {
    if (const std::optional<Error> cause = stop.cause()) throw Error(*cause);
    throw;
  }
  return kernels;
}

// Waits for one step.
class Waiter {
 public:
  void end(StepEnd end) {
    MutexLock lock(mutex_);
    end_ = std::move(end);
    ended_.notifyAll();  // under the lock: the waiter may be gone once it is released
  }
  StepEnd await() {
    MutexLock lock(mutex_);
    while (!end_) ended_.wait(mutex_);
    return *std::move(end_);
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  std::optional<StepEnd> end_ DTF_GUARDED_BY(mutex_);
};

}  // namespace

uint64_t runParts(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous, StepWatch& watch,
                  Duration at_most) {
  if (isAlone(parts)) return runAlone(step, parts[0], watch, at_most);
  Waiter waiter;
  const AbortStep abort = startParts(step, parts, {.rendezvous = &rendezvous},
                                     [&waiter](StepEnd end) { waiter.end(std::move(end)); });
  const StepWatch::Watched watched(watch, step.number, at_most, abort);
  const StepEnd end = waiter.await();
  rendezvous.end(step.number);  // frees the step's tensors in any case
  if (const Error* const cause = std::get_if<Error>(&end)) throw Error(*cause);
  return std::get<uint64_t>(end);
}

}  // namespace dtf::engine
