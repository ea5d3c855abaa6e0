#include "common/train/replica_pause.h"

#include <chrono>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/graph/graph.h"

namespace dtf::train {

namespace {

// A resume that comes before the pause has no effect, so it is repeated.
constexpr auto kResumeEvery = std::chrono::milliseconds(5);

}  // namespace

ReplicaPause::ReplicaPause(engine::Session& session) : session_(session) {
  for (const graph::Node& node : session.graph().nodes()) {
    if (node.op == graph::kPauseOp) pauses_.push_back(node.name);
    if (node.op == "SyncReplicasResume") resumes_.push_back(node.name);
  }
  ended_ = pauses_.empty();
  if (!pauses_.empty()) thread_ = Thread("pause", [this] { hold(); });
}

// Another client's resume ends all pauses: this one begins anew.
void ReplicaPause::hold() {
  for (bool goes_on = true; goes_on;) {
    try {
      session_.run({}, {}, pauses_);
    } catch (const Error& error) {
      log::warning("event=pause_ended reason=\"{}\"", error.message());
      goes_on = false;
    }
    MutexLock lock(mutex_);
    goes_on = goes_on && !ending_;
    ended_ = !goes_on;
  }
  changed_.notifyAll();
}

bool ReplicaPause::endsWithin(Duration patience) {
  MutexLock lock(mutex_);
  if (!ended_) changed_.waitUntil(mutex_, std::chrono::steady_clock::now() + patience);
  return ended_;
}

ReplicaPause::~ReplicaPause() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  for (Duration patience{0}; !endsWithin(patience); patience = kResumeEvery) {
    try {
      session_.run({}, {}, resumes_);
    } catch (const Error& error) {  // the pause fails, too
      log::warning("event=resume_failed reason=\"{}\"", error.message());
    }
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace dtf::train
