#include "common/wire/rpc_checkpoint_client.h"

#include <kj/vector.h>

#include <algorithm>
#include <functional>

#include "common/base/error.h"
#include "common/net/error_bridge.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

// Questions to a ps that is up and has nothing to read or write for them.
constexpr double kQuestionSeconds = 15;

// Calls `call(i)` for every ps at once and waits for all answers, each for `seconds` at most.
template <class T>
std::vector<T> fromEvery(RpcParameterClient& client, const std::string& doing, double seconds,
                         const std::function<kj::Promise<T>(uint32_t)>& call) {
  std::vector<T> results(client.psTasks());
  client.controlThread().call([&] {
    kj::Vector<kj::Promise<void>> promises;
    for (uint32_t i = 0; i < results.size(); ++i) {
      auto stored = call(i).then([&results, i](T result) { results[i] = std::move(result); });
      promises.add(
          awaitNamed(client.controlThread().timer(),
                     {TaskId{JobKind::kPs, i}.name() + " to " + doing, secondsToDuration(seconds)},
                     kj::mv(stored)));
    }
    return client.guardControl(kj::joinPromises(promises.releaseAsArray()));
  });
  return results;
}

struct Nothing {};

template <class Request>
kj::Promise<Nothing> sent(Request&& request) {
  return request.send().then([](auto&&) { return Nothing{}; });
}

}  // namespace

struct RpcCheckpointClient::Side {
  std::vector<std::unique_ptr<schema::PsCheckpoint::Client>> ps;
  std::vector<kj::Promise<bool>> cuts;  // under way
};

RpcCheckpointClient::RpcCheckpointClient(RpcParameterClient& client, double disk_seconds)
    : client_(client), disk_seconds_(disk_seconds), side_(std::make_unique<Side>()) {
  struct Supervised {
    kj::Maybe<schema::PsCheckpoint::Client> checkpoint;
    bool initialised = false;
  };
  std::vector<Supervised> answers(client.psTasks());
  fromEvery<Nothing>(client, "say whether it holds values", kQuestionSeconds, [&](uint32_t i) {
    return client.controlLink(i).control().superviseRequest().send().then(
        [&answers, i](auto&& response) {
          answers[i].checkpoint = response.getCheckpoint();
          answers[i].initialised = response.getInitialised();
          return Nothing{};
        });
  });
  client.controlThread().call([&] {
    for (Supervised& answer : answers) {
      side_->ps.push_back(
          std::make_unique<schema::PsCheckpoint::Client>(KJ_ASSERT_NONNULL(answer.checkpoint)));
      answer.checkpoint = nullptr;  // a capability dies on its loop
      initialised_ = initialised_ && answer.initialised;
    }
  });
}

RpcCheckpointClient::~RpcCheckpointClient() {
  client_.controlThread().call([this] { side_ = nullptr; });
}

bool RpcCheckpointClient::initialised() {
  return initialised_;
}

std::vector<checkpoint::Position> RpcCheckpointClient::positions(bool hold) {
  return fromEvery<checkpoint::Position>(
      client_, "say how far it is", kQuestionSeconds, [&](uint32_t i) {
        auto request = side_->ps[i]->positionRequest();
        request.setHold(hold);
        return request.send().then(
            [](auto&& response) { return decodePosition(response.getPosition()); });
      });
}

void RpcCheckpointClient::releaseHold() {
  fromEvery<Nothing>(client_, "go on after a checkpoint", kQuestionSeconds,
                     [&](uint32_t i) { return sent(side_->ps[i]->releaseHoldRequest()); });
}

// The question after the cuts is answered after they have arrived: a connection keeps its order.
void RpcCheckpointClient::startCut(const checkpoint::Position& position) {
  client_.controlThread().call([&] {
    side_->cuts.clear();
    for (auto& ps : side_->ps) {
      auto request = ps->cutRequest();
      encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
      side_->cuts.push_back(
          request.send().then([](auto&& response) { return response.getCaptured(); }));
    }
  });
  positions(false);
}

bool RpcCheckpointClient::awaitCut() {
  // The ps themselves give up after timeouts.step_seconds, and say what they waited for.
  const std::vector<char> captured = fromEvery<char>(
      client_, "reach the checkpoint's place", disk_seconds_ + kQuestionSeconds, [&](uint32_t i) {
        return kj::mv(side_->cuts[i]).then([](bool is_captured) -> char { return is_captured; });
      });
  return std::all_of(captured.begin(), captured.end(), [](char c) { return c != 0; });
}

std::vector<checkpoint::SavedShard> RpcCheckpointClient::save(const std::string& folder) {
  return fromEvery<checkpoint::SavedShard>(
      client_, "write its shard of the checkpoint", disk_seconds_, [&](uint32_t i) {
        auto request = side_->ps[i]->saveRequest();
        request.setFolder(folder);
        return request.send().then(
            [](auto&& response) { return decodeSaved(response.getSaved()); });
      });
}

void RpcCheckpointClient::restore(const std::string& folder) {
  fromEvery<Nothing>(client_, "read its part of the checkpoint", disk_seconds_, [&](uint32_t i) {
    auto request = side_->ps[i]->restoreRequest();
    request.setFolder(folder);
    return sent(request);
  });
  fromEvery<Nothing>(client_, "take its part of the checkpoint", kQuestionSeconds,
                     [&](uint32_t i) { return sent(side_->ps[i]->commitRestoreRequest()); });
}

}  // namespace dtf::wire
