#include "common/train/replica_pause.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "common/base/log.h"
#include "common/graph/graph.h"

namespace dtf::train {

namespace {

// A resume that comes before the pause has no effect, so it is repeated, at first so soon.
constexpr Duration kResumeFirst = std::chrono::milliseconds(5);
constexpr Duration kResumeLast = std::chrono::seconds(1);

}  // namespace

bool ReplicaPause::isIn(const graph::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const graph::Node& node) { return node.op == graph::kPauseOp; });
}

ReplicaPause::ReplicaPause(engine::Session& session) : session_(session) {
  for (const graph::Node& node : session.graph().nodes()) {
    if (node.op == graph::kPauseOp) pauses_.push_back(node.name);
    if (node.op == "SyncReplicasResume") resumes_.push_back(node.name);
  }
  ended_ = pauses_.empty();
  if (!pauses_.empty()) thread_ = Thread("pause", [this] { hold(); });
}

// Returns why the pause has failed; empty if it has ended by a resume. No exception may leave the
// thread.
std::string ReplicaPause::tryHold() {
  try {
    session_.run({}, {}, pauses_);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of another type";
  }
  return {};
}

// Another client's resume ends all pauses: this one begins anew.
void ReplicaPause::hold() {
  for (bool goes_on = true; goes_on;) {
    const std::string failure = tryHold();
    if (!failure.empty()) log::warning("event=pause_ended reason=\"{}\"", failure);
    MutexLock lock(mutex_);
    goes_on = failure.empty() && !ending_;
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
  bool has_failed = false;
  Duration next = kResumeFirst;
  for (Duration patience{0}; !endsWithin(patience); next = std::min(next * 2, kResumeLast)) {
    patience = next;
    try {
      session_.run({}, {}, resumes_);
    } catch (const std::exception& error) {  // the pause fails, too, or ends at its deadline
      if (!has_failed) log::warning("event=resume_failed reason=\"{}\"", error.what());
      has_failed = true;
    }
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace dtf::train
