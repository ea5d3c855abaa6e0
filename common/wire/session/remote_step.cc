#include "common/wire/session/remote_step.h"

#include <fmt/format.h>
#include <kj/vector.h>

#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/text.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/session/task_link.h"

namespace dtf::wire {

namespace {

// A step under way. Lives as long as the promise. The joined calls never fail: the promise rejects
// with the cause when all of them have ended.
class RemoteStep {
 public:
  RemoteStep(kj::Timer& timer, RemoteStepId id, const std::vector<RemotePart>& parts,
             RemoteStepLimits limits, StepAborts& aborts)
      : timer_(timer),
        id_(id),
        parts_(parts),
        limits_(limits),
        aborts_(aborts),
        ended_(parts.size(), false) {
    result_.fetches.resize(parts.size());
    if (id.is_traced) result_.traces.resize(parts.size());
    const bool is_new =
        aborts_.emplace(id_.step, [this](const Error& cause) { fail(cause); }).second;
    DTF_CHECK(is_new);
  }
  ~RemoteStep() { aborts_.erase(id_.step); }
  RemoteStep(const RemoteStep&) = delete;
  RemoteStep& operator=(const RemoteStep&) = delete;

  kj::Promise<engine::StepResult> run(const engine::StepFeeds& feeds) {
    kj::Vector<kj::Promise<void>> calls;
    DTF_FAILPOINT("session.before_send");
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i > 0) DTF_FAILPOINT("session.between_tasks");
      calls.add(runPart(i, feeds[i]));
    }
    DTF_FAILPOINT("session.after_send");
    deadline_ = timer_.afterDelay(net::toKj(limits_.step_max))
                    .then([this] { fail(Error(ErrorCode::kDeadline, lateText())); })
                    .eagerlyEvaluate(nullptr);
    return kj::joinPromises(calls.releaseAsArray())
        .then([this] { return kj::joinPromises(aborting_.releaseAsArray()); })
        .then([this] {
          if (cause_) net::throwAsKj(*cause_);
          DTF_FAILPOINT("session.after_step");
          return std::move(result_);
        });
  }

 private:
  kj::Promise<void> runPart(size_t i, const std::vector<const Tensor*>& feeds) {
    return kj::evalNow([&] {
             return net::bridgeErrors([&] {
               return parts_[i].link->runPart(id_.plan, id_.step,
                                              limits_.step_max + limits_.abort_max, feeds,
                                              parts_[i].fetches, id_.is_traced);
             });
           })
        .then(
            [this, i](PartResult&& result) {
              DTF_FAILPOINT("session.after_reply");
              ended_[i] = true;
              result_.fetches[i] = std::move(result.fetches);
              result_.kernels += result.kernels;
              if (id_.is_traced) result_.traces[i] = std::move(result.trace);
            },
            [this, i](kj::Exception&& exception) {
              ended_[i] = true;
              const Error error = net::toError(exception);
              if (tellsMore(error)) cause_ = error;
              fail(error);
            })
        // joinPromises() evaluates none of them before the last one is ready.
        .eagerlyEvaluate(nullptr);
  }

  // Keeps the first failure as the cause, and aborts the other parts; later failures follow from
  // it.
  void fail(Error cause) {
    if (cause_) return;
    cause_ = std::move(cause);
    for (size_t i = 0; i < parts_.size(); ++i)
      aborting_.add(
          parts_[i].link->abort(id_.step, *cause_, limits_.abort_max).eagerlyEvaluate(nullptr));
  }

  // Returns whether `error` explains a missed deadline better: it names the wait that an aborted
  // part was in.
  bool tellsMore(const Error& error) const {
    return cause_ && cause_->code() == ErrorCode::kDeadline &&
           error.code() == ErrorCode::kDeadline && error.has(ErrorTrait::kNamesWaits) &&
           !cause_->has(ErrorTrait::kNamesWaits);
  }

  std::string lateText() const {
    std::vector<std::string> late;
    for (size_t i = 0; i < parts_.size(); ++i)
      if (!ended_[i]) late.push_back(parts_[i].link->peer());
    return fmt::format("step {} has not ended within {:g} s on {}", id_.step,
                       toSeconds(limits_.step_max), join(late, ", "));
  }

  kj::Timer& timer_;
  const RemoteStepId id_;
  const std::vector<RemotePart>& parts_;
  const RemoteStepLimits limits_;
  StepAborts& aborts_;
  std::vector<bool> ended_;
  engine::StepResult result_;
  std::optional<Error> cause_;
  kj::Vector<kj::Promise<void>> aborting_;
  kj::Promise<void> deadline_ = nullptr;
};

}  // namespace

kj::Promise<engine::StepResult> runRemoteStep(kj::Timer& timer, RemoteStepId id,
                                              const std::vector<RemotePart>& parts,
                                              const engine::StepFeeds& feeds,
                                              RemoteStepLimits limits, StepAborts& aborts) {
  DTF_CHECK(feeds.size() == parts.size());
  auto step = kj::heap<RemoteStep>(timer, id, parts, limits, aborts);
  auto promise = step->run(feeds);
  return promise.attach(kj::mv(step));
}

}  // namespace dtf::wire
