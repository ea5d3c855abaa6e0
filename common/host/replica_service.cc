#include "common/host/replica_service.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/host/gradient_reader.h"
#include "common/net/error_bridge.h"
#include "common/wire/arena_codec.h"
#include "common/wire/replica_codec.h"

namespace dtf::host {

namespace {

// The parameters, the slots, and the parameters of the step before.
constexpr size_t kSeedArenasMax = 2 + optimizer::kSlotsMax;

class ReplicaSession final : public schema::PsReplica::Server {
 public:
  ReplicaSession(shard::ShardReplica& replica, const shard::Shard& shard,
                 wire::ConnectionRef connection, uint32_t ps_task, TaskId host,
                 arena::GradientLayout layout, Incarnation primary, uint64_t chunk_bytes)
      : replica_(replica),
        shard_(shard),
        connection_(std::move(connection)),
        arenas_(connection_, 2),
        ps_task_(ps_task),
        host_(host),
        layout_(std::move(layout)),
        primary_(primary),
        chunk_bytes_(chunk_bytes) {}

  kj::Promise<void> arena(ArenaContext context) override {
    net::bridgeErrors([&] {
      const uint32_t index = context.getParams().getIndex();
      if (index >= kSeedArenasMax)
        throw Error(ErrorCode::kBadData, "a replica received more arenas than any optimizer has");
      if (index >= coming_.size()) coming_.resize(index + 1);
      coming_[index] = arenas_.read(context.getParams().getValues(), elements());
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> seed(SeedContext context) override {
    fetched_.reset();
    net::bridgeErrors([&] {
      replication::ReplicaSeed seed{
          wire::decodeReplicaState(context.getParams().getState()), {}, nullptr};
      for (arena::Gradient& arena : std::exchange(coming_, {})) {
        seed.arenas.push_back(arena.values);
        seed.owners.push_back(std::move(arena.owner));
      }
      replica_.seed(primary_, model(), seed);
      log::info("event=replica_seeded ps={} version={}", host_.name(), replica_.version());
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> update(UpdateContext context) override {
    fetched_.reset();  // the slots change now
    replication::ReplicaUpdate update = net::bridgeErrors([&] {
      replication::ReplicaUpdate decoded = wire::decodeReplicaUpdate(context.getParams());
      decoded.gradient =
          arenas_.read(context.getParams().getGradient(), context.getParams().getRows(), layout_);
      return decoded;
    });
    context.releaseParams();
    auto received = kj::newPromiseAndFulfiller<void>();
    auto fulfiller =
        std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(received.fulfiller));
    net::bridgeErrors(
        [&] { replica_.update(primary_, update, [fulfiller] { (*fulfiller)->fulfill(); }); });
    return kj::mv(received.promise);
  }

  kj::Promise<void> fetch(FetchContext context) override {
    auto fetched = kj::newPromiseAndFulfiller<replication::ReplicaSeed>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<replication::ReplicaSeed>>>(
        kj::mv(fetched.fulfiller));
    net::bridgeErrors([&] {
      replica_.fetch(primary_, [fulfiller](replication::ReplicaSeed seed) {
        (*fulfiller)->fulfill(kj::mv(seed));
      });
    });
    return fetched.promise.then([this, context](replication::ReplicaSeed seed) mutable {
      wire::encodeReplicaState(seed.state, context.getResults().initState());
      context.getResults().setArenas(static_cast<uint32_t>(seed.arenas.size()));
      fetched_ = std::move(seed);
    });
  }

  kj::Promise<void> fetched(FetchedContext context) override {
    net::bridgeErrors([&] {
      const uint32_t index = context.getParams().getIndex();
      if (!fetched_ || index >= fetched_->arenas.size())
        throw Error(ErrorCode::kBadData, "a request for an arena before fetch()");
      const std::span<const float> arena = fetched_->arenas[index];
      const uint32_t chunks = wire::arenaChunks(arena.size(), chunk_bytes_);
      auto results = context.getResults(capnp::MessageSize{8 + 2 * chunks, 0});
      wire::referenceArena(arena, fetched_->owner, results.initValues(chunks),
                           connection_->connection->stream(), chunk_bytes_);
    });
    return kj::READY_NOW;
  }

 private:
  const arena::ModelDeclaration& model() const { return shard_.declaration().value(); }
  uint64_t elements() const { return model().layout.shards.at(ps_task_).elements; }

  shard::ShardReplica& replica_;
  const shard::Shard& shard_;
  const wire::ConnectionRef connection_;
  GradientReader arenas_;
  const uint32_t ps_task_;
  const TaskId host_;
  const arena::GradientLayout layout_;
  const Incarnation primary_;
  const uint64_t chunk_bytes_;
  std::vector<arena::Gradient> coming_;  // arenas of the next seed
  std::optional<replication::ReplicaSeed> fetched_;
};

}  // namespace

schema::PsReplica::Client makeReplica(shard::ShardReplica& replica, const shard::Shard& shard,
                                      wire::ConnectionRef connection, uint32_t ps_task, TaskId host,
                                      arena::GradientLayout layout, Incarnation primary,
                                      uint64_t chunk_bytes) {
  return kj::heap<ReplicaSession>(replica, shard, std::move(connection), ps_task, host,
                                  std::move(layout), primary, chunk_bytes);
}

}  // namespace dtf::host
