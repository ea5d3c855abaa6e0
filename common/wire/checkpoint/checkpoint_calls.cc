#include "common/wire/checkpoint/checkpoint_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/net/error_bridge.h"
#include "common/replication/epoch.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/ps/every_ps.h"

namespace dtf::wire {

namespace {

// The time for which a ps looks for a file of the chief, since a network file system may show it
// late.
constexpr double kSeeSeconds = 5;

// 0: no values.
void requireEpoch(uint64_t epoch, TaskId host) {
  if (epoch == 0 || replication::validEpoch(epoch)) return;
  net::throwAsKj(
      Error(ErrorCode::kBadData,
            fmt::format("{} reports values of the invalid epoch {:#x}", host.name(), epoch)));
}

}  // namespace

CheckpointCalls::CheckpointCalls(ControlCalls& calls, double disk_seconds)
    : calls_(calls), disk_seconds_(disk_seconds), ps_(calls.psTasks()) {
  DTF_CHECK(disk_seconds > 0);
  DTF_CHECK(!ps_.empty());
}

schema::PsCheckpoint::Client& CheckpointCalls::session(uint32_t ps_task) {
  DTF_CHECK(ps_.at(ps_task) != nullptr);  // open() has resolved
  return *ps_[ps_task];
}

template <class T>
kj::Promise<std::vector<T>> CheckpointCalls::fromEvery(
    const std::string& doing, double seconds, const std::function<kj::Promise<T>(uint32_t)>& call) {
  return fromEveryPs<T>(calls_, doing, seconds, call);
}

kj::Promise<std::vector<checkpoint::PsState>> CheckpointCalls::open() {
  // A connection that broke is made again first.
  const double seconds = kQuestionSeconds + calls_.link(0).timeouts().rejoin_seconds;
  return fromEvery<checkpoint::PsState>("report whether it holds values", seconds,
                                        [this](uint32_t i) { return supervise(i); });
}

// Repeats the request if the connection breaks before the reply; hear() waits for the next
// connection, or fails.
kj::Promise<checkpoint::PsState> CheckpointCalls::supervise(uint32_t i) {
  return calls_.link(i).hear().then([this, i] {
    return calls_.link(i)
        .control()
        .superviseRequest()
        .send()
        .then([this, i](auto&& response) {
          ps_[i] = std::make_unique<schema::PsCheckpoint::Client>(response.getCheckpoint());
          checkpoint::PsState held = decodeHeld(response.getHeld());
          const TaskId host = calls_.host(i);
          requireEpoch(held.epoch, host);
          requireEpoch(held.origin_cut.epoch, host);
          for (const checkpoint::CutName& name : held.snapshots) requireEpoch(name.epoch, host);
          requireEpoch(held.replica_epoch, host);
          return held;
        })
        .catch_([this, i](kj::Exception&& exception) -> kj::Promise<checkpoint::PsState> {
          if (!isBroken(exception)) return kj::mv(exception);
          return supervise(i);
        });
  });
}

kj::Promise<std::vector<CutPosition>> CheckpointCalls::positions(bool hold) {
  return fromEvery<CutPosition>("report its progress", kQuestionSeconds, [&](uint32_t i) {
    auto request = session(i).positionRequest();
    request.setHold(hold);
    return request.send().then(
        [](auto&& response) { return decodePosition(response.getPosition()); });
  });
}

kj::Promise<void> CheckpointCalls::releaseHold() {
  return whenDone(fromEvery<Nothing>("go on after a checkpoint", kQuestionSeconds, [&](uint32_t i) {
    return sent(session(i).releaseHoldRequest());
  }));
}

template <class T>
kj::Promise<T> CheckpointCalls::guardCut(kj::Promise<T> promise) {
  return cuts_called_off_.guard(cuts_interrupted_->guard(kj::mv(promise)));
}

// A connection keeps the order of requests: a reply to the request after the cuts shows that they
// have arrived.
kj::Promise<void> CheckpointCalls::startCut(const CutPosition& position, uint64_t epoch) {
  cuts_.clear();
  cuts_interrupted_ = std::make_unique<Abort>();
  forgetInterruption();
  for (uint32_t i = 0; i < ps_.size(); ++i) {
    auto request = session(i).cutRequest();
    encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
    request.setEpoch(epoch);
    cuts_.push_back(request.send().then([](auto&& response) {
      return response.getCaptured() ? std::optional<uint64_t>(response.getVersion()) : std::nullopt;
    }));
  }
  return guardCut(whenDone(positions(false)));
}

kj::Promise<std::optional<uint64_t>> CheckpointCalls::awaitCut() {
  using Version = std::optional<uint64_t>;
  DTF_CHECK(cuts_.size() == ps_.size());  // startCut() came first, and each cut is awaited once
  auto cuts = std::exchange(cuts_, {});
  // The ps give up after timeouts.step_seconds, with a better error.
  return guardCut(fromEvery<Version>("reach the step of the checkpoint",
                                     disk_seconds_ + kQuestionSeconds,
                                     [&](uint32_t i) { return kj::mv(cuts[i]); }))
      .then([](const std::vector<Version>& versions) {
        const bool all = std::all_of(versions.begin(), versions.end(),
                                     [](const Version& version) { return version.has_value(); });
        return all ? versions.at(0) : std::nullopt;
      });
}

void CheckpointCalls::interruptCuts() {
  interruption_ = Error(ErrorCode::kUnavailable, "the checkpoint was given up: a ps was lost");
  if (cuts_interrupted_ != nullptr) cuts_interrupted_->fail(*interruption_);
  if (on_interrupted_) on_interrupted_(*interruption_);
}

void CheckpointCalls::callOffCuts() {
  cuts_called_off_.fail(
      Error(ErrorCode::kUnavailable, "the checkpoint was called off: the job ends"));
}

kj::Promise<std::vector<checkpoint::SavedShard>> CheckpointCalls::save(
    const std::string& folder, const CutPosition& position) {
  return fromEvery<checkpoint::SavedShard>(
      "write its shard of the checkpoint", disk_seconds_, [&](uint32_t i) {
        auto request = session(i).saveRequest();
        request.setFolder(folder);
        encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
        return request.send().then([](auto&& response) {
          return net::bridgeErrors([&] { return decodeSaved(response.getSaved()); });
        });
      });
}

kj::Promise<std::vector<checkpoint::KeptSnapshot>> CheckpointCalls::snapshot(
    const checkpoint::CutName& name, const CutPosition& position,
    const std::optional<checkpoint::CutName>& keep) {
  return fromEvery<checkpoint::KeptSnapshot>("keep a snapshot", disk_seconds_, [&](uint32_t i) {
    auto request = session(i).snapshotRequest();
    encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
    encodeCut(name, request.initCut());
    request.setKeeps(keep.has_value());
    if (keep) encodeCut(*keep, request.initKeep());
    return request.send().then([](auto&& response) {
      return checkpoint::KeptSnapshot{response.getBytes(), response.getStallSeconds()};
    });
  });
}

kj::Promise<void> CheckpointCalls::forgetSnapshots() {
  return whenDone(
      fromEvery<Nothing>("remove the snapshots of a job before this one", disk_seconds_,
                         [this](uint32_t i) { return sent(session(i).forgetSnapshotsRequest()); }));
}

kj::Promise<void> CheckpointCalls::refill(const std::vector<uint32_t>& ps, uint64_t epoch) {
  return whenDone(fromEvery<Nothing>("fetch its replica", disk_seconds_,
                                     [&](uint32_t i) -> kj::Promise<Nothing> {
                                       if (std::find(ps.begin(), ps.end(), i) == ps.end())
                                         return Nothing{};
                                       auto request = session(i).refillRequest();
                                       request.setEpoch(epoch);
                                       return sent(request);
                                     }));
}

kj::Promise<void> CheckpointCalls::awaitReplicas(uint64_t epoch) {
  return whenDone(fromEvery<Nothing>("complete its replica", disk_seconds_, [&](uint32_t i) {
    auto request = session(i).awaitReplicaRequest();
    request.setEpoch(epoch);
    return sent(request);
  }));
}

kj::Promise<std::vector<bool>> CheckpointCalls::see(const std::string& file) {
  // std::vector<bool> has no elements of its own.
  return fromEvery<uint8_t>("look into its folder of checkpoints", kQuestionSeconds + kSeeSeconds,
                            [&](uint32_t i) {
                              auto request = session(i).seeRequest();
                              request.setFile(file);
                              request.setSeconds(kSeeSeconds);
                              return request.send().then([](auto&& response) {
                                return static_cast<uint8_t>(response.getSeen());
                              });
                            })
      .then([](const std::vector<uint8_t>& seen) {
        return std::vector<bool>(seen.begin(), seen.end());
      });
}

kj::Promise<void> CheckpointCalls::restore(const checkpoint::GoingBack& target) {
  const std::string what = target.folder.empty() ? "its snapshot" : "its part of the checkpoint";
  return fromEvery<Nothing>("read " + what, disk_seconds_,
                            [&](uint32_t i) {
                              if (target.folder.empty()) {
                                auto request = session(i).restoreSnapshotRequest();
                                encodeCut({target.cut_epoch, target.cut_step}, request.initCut());
                                return sent(request);
                              }
                              auto request = session(i).restoreRequest();
                              request.setFolder(target.folder);
                              return sent(request);
                            })
      .then([this, target](auto&&) { return commitRestore(target); });
}

kj::Promise<void> CheckpointCalls::commitRestore(const checkpoint::GoingBack& target) {
  const std::string what = target.folder.empty() ? "its snapshot" : "its part of the checkpoint";
  DTF_FAILPOINT("recovery.before_commit");
  return whenDone(fromEvery<Nothing>("take " + what, kQuestionSeconds, [&](uint32_t i) {
    auto request = session(i).commitRestoreRequest();
    request.setEpoch(target.epoch);
    request.setCutEpoch(target.cut_epoch);
    request.setCutStep(target.cut_step);
    return sent(request);
  }));
}

}  // namespace dtf::wire
