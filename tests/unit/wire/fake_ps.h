#pragma once

// A ps with the replies that a test sets: the peer of the worker's side of the protocol, without a
// shard.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/shared_memory.h"
#include "common/net/error_bridge.h"
#include "common/net/memory_channel.h"
#include "common/net/preamble.h"
#include "common/net/rpc_connection.h"
#include "common/replication/epoch.h"
#include "common/wire/arena_codec.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::wire::fake {

// The calls that a ps received, and its replies. By default it replies as a real ps. Threads: the
// loop that serves it.
struct FakePs {
  std::vector<std::string> calls;  // in their order, without heartbeats
  int heartbeats = 0;              // answered or not
  bool answers_heartbeats = true;
  std::optional<Error> failed_heartbeats;
  bool stop_wanted = false;
  uint64_t incarnation = 7;
  bool answers_hellos = true;
  std::vector<std::string> codecs;  // of its answers to bulk hellos; none: as version 0.1.0
  std::vector<uint32_t> hellos;     // by Hello.connection
  std::vector<uint64_t> epochs;     // of pulls
  std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>>
      end_awaited;  // by the last caller of awaitEnd()
  std::string awaited;
  std::string status;
  bool awaits_return = false;
  std::optional<Error> refused_hello;
  std::optional<Error> refused_bulk_hello;
  int bulk_hellos_too_early = 0;     // number of bulk hellos to reject as too early
  std::optional<Error> refusal;      // for every call but hellos and heartbeats
  std::optional<std::string> hangs;  // a call of this name is never answered
  bool holds_values = false;
  bool captures = true;  // the reply to cut()
  std::string failure;   // the reason that a worker gave to fail()
  bool leaves = false;   // in fail(): the worker ends, but not the job
  std::deque<replication::StepState>
      states;  // replies to the next exchanges; then each applies one step
  std::vector<float> parameters;
  std::vector<float> gradient;  // the last one that arrived
  uint64_t step = 0;
  uint64_t epoch = 0;
  std::string shard_bytes;                    // the file of its shard
  bool damages = false;                       // sends a wrong checksum of it
  std::vector<float> brought;                 // all values, concatenated
  bool sees = true;                           // the chief's files
  std::vector<checkpoint::FoundShard> found;  // shards that stay
  bool weighs_epochs = true;                  // false: as release 0.1.0
  bool claims_parts = false;                  // of its shard, more than it has names
  std::optional<Error> refuses_memory;        // its error for shareMemory()
  // The arena that replies name instead of `parameters`; null: none. Workers that share memory get
  // it.
  std::shared_ptr<SharedMemory> arena;
  bool gives_arena = true;
  std::vector<uint64_t> gone;           // reported in the next reply
  std::vector<uint64_t> in_use;         // the arenas in use, from the calls
  std::vector<uint64_t> gradient_keys;  // of arenas that arrived

  std::function<void(const std::string&)> on_call;

  // Records a call, and replies to it: a successful call runs `fill`.
  kj::Promise<void> called(
      const std::string& name, const std::function<void()>& fill = [] {}) {
    calls.push_back(name);
    if (on_call) on_call(name);
    if (hangs == name) return kj::NEVER_DONE;
    if (refusal) net::throwAsKj(Error(*refusal));
    fill();
    return kj::READY_NOW;
  }

  void answerSaved(schema::PsCheckpoint::Saved::Builder saved, capnp::Text::Reader file) const {
    saved.setFile(file);
    saved.setBytes(shard_bytes.size());
    constexpr uint64_t kNamelessBytes = 32;
    if (claims_parts)
      capnp::toAny(saved).getPointerSection()[1].initAs<capnp::List<capnp::Void>>(
          static_cast<uint32_t>(kAnswerLimits.bytes_max / kNamelessBytes));
  }

  void answer(replication::StepState state, schema::StepState::Builder to,
              const std::function<capnp::List<capnp::Data>::Builder(uint32_t)>& chunks) {
    encodeStepState(state, to);
    if (state.outcome == replication::Outcome::kQueued) return;
    auto list = chunks(1);
    list.set(0, kj::arrayPtr(reinterpret_cast<const kj::byte*>(parameters.data()),
                             parameters.size() * sizeof(float)));
  }
};

class FakeStaying final : public schema::PsStaying::Server {
 public:
  explicit FakeStaying(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> save(SaveContext context) override {
    return ps_.called("save staying", [&] {
      ps_.answerSaved(context.getResults().initSaved(), context.getParams().getName());
    });
  }
  kj::Promise<void> find(FindContext context) override {
    return ps_.called("find", [&] {
      encodeFound(ps_.found,
                  context.getResults().initFound(static_cast<uint32_t>(ps_.found.size())));
    });
  }
  kj::Promise<void> fetch(FetchContext context) override {
    const auto asked = context.getParams();
    return ps_.called("fetch " + std::string(asked.getFile().cStr()), [&] {
      const std::string bytes = ps_.shard_bytes.substr(asked.getOffset(), asked.getBytes());
      context.getResults().setData(
          kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
      context.getResults().setChecksum(checksumOf(bytes) + (ps_.damages ? 1 : 0));
    });
  }
  kj::Promise<void> drop(DropContext context) override {
    return ps_.called("drop " + std::string(context.getParams().getName().cStr()));
  }
  FakePs& ps_;
};

class FakeCheckpoint final : public schema::PsCheckpoint::Server {
 public:
  explicit FakeCheckpoint(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> position(PositionContext context) override {
    return ps_.called("position", [&] { context.getResults().initPosition(1).set(0, ps_.step); });
  }
  kj::Promise<void> cut(CutContext context) override {
    return ps_.called("cut", [&] {
      context.getResults().setCaptured(ps_.captures);
      context.getResults().setVersion(ps_.step);
    });
  }
  kj::Promise<void> releaseHold(ReleaseHoldContext) override { return ps_.called("releaseHold"); }
  kj::Promise<void> save(SaveContext context) override {
    return ps_.called("save", [&] {
      ps_.answerSaved(context.getResults().initSaved(), context.getParams().getFolder());
    });
  }
  kj::Promise<void> restore(RestoreContext) override { return ps_.called("restore"); }
  kj::Promise<void> commitRestore(CommitRestoreContext) override {
    return ps_.called("commitRestore");
  }
  kj::Promise<void> see(SeeContext context) override {
    return ps_.called("see", [&] { context.getResults().setSeen(ps_.sees); });
  }
  kj::Promise<void> staying(StayingContext context) override {
    context.getResults().setStaying(kj::heap<FakeStaying>(ps_));
    return kj::READY_NOW;
  }
  kj::Promise<void> stage(StageContext context) override {
    return ps_.called("stage", [&] { ps_.answerSaved(context.getResults().initSaved(), ""); });
  }
  kj::Promise<void> fetch(FetchContext context) override {
    const auto asked = context.getParams();
    return ps_.called("fetch " + std::to_string(asked.getOffset()), [&] {
      const std::string bytes = ps_.shard_bytes.substr(asked.getOffset(), asked.getBytes());
      context.getResults().setData(
          kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
      context.getResults().setChecksum(checksumOf(bytes) + (ps_.damages ? 1 : 0));
    });
  }
  kj::Promise<void> release(ReleaseContext context) override {
    return ps_.called(context.getParams().getSaved() ? "release saved" : "release");
  }
  kj::Promise<void> expect(ExpectContext context) override {
    return ps_.called("expect " + std::to_string(context.getParams().getGlobalStep()));
  }
  kj::Promise<void> bring(BringContext context) override {
    const auto values = context.getParams().getValues();
    const auto* floats = reinterpret_cast<const float*>(values.begin());
    ps_.brought.insert(ps_.brought.end(), floats, floats + values.size() / sizeof(float));
    return ps_.called("bring " + std::to_string(context.getParams().getOffset()));
  }
  FakePs& ps_;
};

class FakeControl final : public schema::PsControl::Server {
 public:
  explicit FakeControl(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> declare(DeclareContext context) override {
    return ps_.called("declare", [&] { context.getResults().setWeighsEpochs(ps_.weighs_epochs); });
  }
  kj::Promise<void> awaitEnd(AwaitEndContext context) override {
    context.allowCancellation();
    auto pair = kj::newPromiseAndFulfiller<void>();
    ps_.end_awaited = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }
  kj::Promise<void> waitInitialised(WaitInitialisedContext) override {
    return ps_.called("waitInitialised");
  }
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    ++ps_.heartbeats;
    if (!ps_.answers_heartbeats) return kj::NEVER_DONE;
    if (ps_.failed_heartbeats) net::throwAsKj(Error(*ps_.failed_heartbeats));
    context.getResults().setStopWanted(ps_.stop_wanted);
    context.getResults().setAwaited(ps_.awaited);
    context.getResults().setAwaitsReturn(ps_.awaits_return);
    return kj::READY_NOW;
  }
  kj::Promise<void> barrier(BarrierContext context) override {
    const auto asked = context.getParams();
    return ps_.called((asked.getPassedBefore() ? "passed before: barrier " : "barrier ") +
                      std::string(asked.getName().cStr()));
  }
  kj::Promise<void> finish(FinishContext) override { return ps_.called("finish"); }
  kj::Promise<void> supervise(SuperviseContext context) override {
    return ps_.called("supervise", [&] {
      context.getResults().initHeld().setEpoch(ps_.holds_values ? replication::kFirstEpoch : 0);
      context.getResults().getHeld().setUpdates(ps_.step);
      context.getResults().setCheckpoint(kj::heap<FakeCheckpoint>(ps_));
    });
  }
  kj::Promise<void> requestStop(RequestStopContext) override { return ps_.called("requestStop"); }
  kj::Promise<void> fail(FailContext context) override {
    ps_.failure = context.getParams().getReason().cStr();
    ps_.leaves = context.getParams().getLeaves();
    return ps_.called("fail");
  }
  FakePs& ps_;
};

class FakeData final : public schema::PsData::Server {
 public:
  explicit FakeData(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> initialise(InitialiseContext) override { return ps_.called("initialise"); }
  kj::Promise<void> pull(PullContext context) override {
    ps_.epochs.push_back(context.getParams().getEpoch());
    ps_.in_use.push_back(context.getParams().getInUse());
    return ps_.called("pull", [&] {
      if (ps_.arena) return nameArena({.epoch = ps_.epoch}, context);
      fill({.global_step = ps_.step, .next_step = ps_.step, .epoch = ps_.epoch}, context);
    });
  }
  kj::Promise<void> exchange(ExchangeContext context) override {
    return ps_.called("exchange", [&] {
      ps_.in_use.push_back(context.getParams().getInUse());
      if (const uint64_t key = context.getParams().getGradientKey(); key != 0) {
        const MappedMemory& memory = *gradients_.at(key);
        const auto* values = reinterpret_cast<const float*>(memory.data());
        ps_.gradient.assign(values, values + memory.bytes() / sizeof(float));
      } else {
        const auto gradient = context.getParams().getGradient()[0];
        const auto* values = reinterpret_cast<const float*>(gradient.begin());
        ps_.gradient.assign(values, values + gradient.size() / sizeof(float));
      }
      replication::StepState state{
          .global_step = ps_.step + 1, .next_step = ps_.step + 1, .epoch = ps_.epoch};
      if (ps_.states.empty()) {
        ++ps_.step;
      } else {
        state = ps_.states.front();
        ps_.states.pop_front();
      }
      if (ps_.arena) return nameArena(state, context);
      fill(state, context);
    });
  }
  kj::Promise<void> openDoor(OpenDoorContext context) override {
    return ps_.called("openDoor", [&] {
      if (ps_.refuses_memory) net::throwAsKj(Error(*ps_.refuses_memory));
      const net::MemoryDoor& door = door_.emplace();
      context.getResults().setAddress(door.address());
      context.getResults().setSecret0(door.secret()[0]);
      context.getResults().setSecret1(door.secret()[1]);
    });
  }
  kj::Promise<void> shareMemory(ShareMemoryContext context) override {
    return ps_.called("shareMemory", [&] {
      channel_ = door_.value().take();
      ps_.gradient_keys.clear();
      for (const uint64_t key : context.getParams().getGradientKeys()) {
        ps_.gradient_keys.push_back(key);
        gradients_[key] = channel_.value().receive(1 << 20).value().memory;
      }
    });
  }
  kj::Promise<void> averages(AveragesContext context) override {
    return ps_.called("averages", [&] { fill({.global_step = ps_.step}, context); });
  }

  template <class Context>
  void nameArena(const replication::StepState& state, Context& context) {
    auto results = context.getResults();
    encodeStepState(state, results.initState());
    if (std::exchange(ps_.gives_arena, false)) channel_.value().give(*ps_.arena);
    results.setKey(ps_.arena->key());
    auto gone = results.initGone(static_cast<uint32_t>(ps_.gone.size()));
    for (uint32_t i = 0; i < gone.size(); ++i) gone.set(i, ps_.gone[i]);
    ps_.gone.clear();
  }
  template <class Context>
  void fill(const replication::StepState& state, Context& context) {
    auto results = context.getResults();
    ps_.answer(state, results.initState(),
               [&](uint32_t chunks) { return results.initParameters(chunks); });
  }
  FakePs& ps_;
  std::optional<net::MemoryDoor> door_;
  std::optional<net::MemoryChannel> channel_;
  std::map<uint64_t, std::shared_ptr<const MappedMemory>> gradients_;
};

class FakeGate final : public schema::PsGate::Server {
 public:
  explicit FakeGate(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> hello(HelloContext context) override {
    ps_.hellos.push_back(context.getParams().getHello().getConnection());
    if (!ps_.answers_hellos) return kj::NEVER_DONE;
    if (ps_.refused_hello) net::throwAsKj(Error(*ps_.refused_hello));
    context.getResults().setControl(kj::heap<FakeControl>(ps_));
    context.getResults().setIncarnation(ps_.incarnation);
    return kj::READY_NOW;
  }
  kj::Promise<void> status(StatusContext context) override {
    context.getResults().setJson(ps_.status);
    return kj::READY_NOW;
  }
  FakePs& ps_;
};

class FakeDataGate final : public schema::PsDataGate::Server {
 public:
  explicit FakeDataGate(FakePs& ps) : ps_(ps) {}

 private:
  kj::Promise<void> hello(HelloContext context) override {
    if (ps_.refused_bulk_hello) net::throwAsKj(Error(*ps_.refused_bulk_hello));
    if (ps_.bulk_hellos_too_early > 0) {
      --ps_.bulk_hellos_too_early;
      context.getResults().setNotYet("worker/0 has not declared the model to ps/0");
      return kj::READY_NOW;
    }
    context.getResults().setData(kj::heap<FakeData>(ps_));
    auto codecs = context.getResults().initCodecs(static_cast<uint32_t>(ps_.codecs.size()));
    for (uint32_t i = 0; i < codecs.size(); ++i) codecs.set(i, ps_.codecs[i].c_str());
    return kj::READY_NOW;
  }
  FakePs& ps_;
};

// Serves `ps` on `stream` for as long as the connection lives. `ps` must outlive it.
inline kj::Own<net::RpcConnection> serveFakePs(FakePs& ps, kj::Own<net::MessageStream> stream,
                                               net::ConnectionKind kind) {
  return kj::heap<net::RpcConnection>(
      kj::mv(stream),
      [&ps, kind](net::RpcConnection&) -> capnp::Capability::Client {
        if (kind == net::ConnectionKind::kBulk)
          return schema::PsDataGate::Client(kj::heap<FakeDataGate>(ps));
        return schema::PsGate::Client(kj::heap<FakeGate>(ps));
      },
      net::RpcOptions{.peer = "worker"});
}

}  // namespace dtf::wire::fake
