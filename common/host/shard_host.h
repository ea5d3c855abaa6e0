#pragma once

// A task's shard on the data loop. That loop has a thread of its own, so that parameters and
// control messages never wait for each other. The control loop sends it requests and gets promises.

#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "common/base/awake_clock.h"
#include "common/host/changed_parameters.h"
#include "common/host/encoded_parameters.h"
#include "common/net/error_bridge.h"
#include "common/net/loop.h"
#include "common/shard/shard.h"
#include "common/shard/shard_replica.h"

namespace dtf::host {

// The shard of a task, with the replica that it keeps of another one.
// Owns: the shard, the replica and the runner of their updates.
// Borrows: the loops (must outlive this).
// Threads: made, used and destroyed on the control loop's thread, except start(), stop() and
// shard(): data loop only.
// Blocks: stop(), until the updates that run have ended.
class ShardHost {
 public:
  template <class T>
  using Reply = std::function<void(std::variant<T, Error>)>;

  ShardHost(net::Loop& control, net::Loop& data, net::Loop& disk)
      : control_(control), data_(data), disk_(disk) {}

  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  // Makes the shard. Comes before the first request, and before stop(). `peers`: may be null.
  // `replica_link`: null if the job keeps no replicas.
  void start(const shard::ShardOptions& options, std::unique_ptr<optimizer::UpdateRunner> runner,
             std::unique_ptr<replication::SyncPeers> peers,
             std::unique_ptr<replication::ReplicaLink> replica_link);
  // The last call. Pending requests get no answer.
  void stop();

  // Runs `request(shard, reply)` on the data loop. The promise resolves to the argument of
  // `reply`, which `request` calls at once or later, or to the exception that `request` throws.
  template <class T>
  kj::Promise<T> ask(std::function<void(shard::Shard&, Reply<T>)> request);

  // The same for a request that answers at once.
  template <class T>
  kj::Promise<T> askNow(std::function<T(shard::Shard&)> request) {
    return ask<T>([request = std::move(request)](shard::Shard& shard, Reply<T> reply) {
      reply(request(shard));
    });
  }

  // Runs `work` on the disk loop, where it may block.
  template <class T>
  kj::Promise<T> onDisk(std::function<T()> work);

  // Rejects all pending requests, and every later ask(), with `error`: the reason why this ps ends.
  void failAll(const Error& error);

  net::Loop& control() { return control_; }
  net::Loop& data() { return data_; }
  shard::Shard& shard() { return *shard_; }
  // Returns the replica of another ps's shard; null if the job keeps none. Data loop only.
  shard::ShardReplica* replica() { return replica_.get(); }
  // Return the encoded parameters of the shard. Data loop only.
  EncodedParameters& encodedParameters() { return encoded_parameters_; }
  ChangedParameters& changedParameters() { return changed_parameters_; }
  // Returns the report of this ps to the chief, without its snapshots. Data loop only.
  checkpoint::PsState state() const;
  // Resolves when the shard's model is declared. A second call rejects the promise of the first.
  // Data loop only.
  kj::Promise<void> whenDeclared();
  void noteDeclared();

 private:
  struct Pending {
    virtual ~Pending() noexcept(false) = default;
    virtual void fail(const Error& error) = 0;
  };
  template <class T>
  struct PendingOf;

  uint64_t add(std::unique_ptr<Pending> pending);
  template <class T>
  Reply<T> replyTo(uint64_t id);
  void resolve(uint64_t id, const std::function<void(Pending&)>& how);
  kj::Promise<void> tick();

  net::Loop& control_;
  net::Loop& data_;
  net::Loop& disk_;
  std::map<uint64_t, std::unique_ptr<Pending>> pending_;  // control loop
  uint64_t next_id_ = 0;
  std::optional<Error> failed_;  // by failAll()
  // Data loop:
  std::optional<AwakeClock> clock_;  // of the shard: leases survive a pause of this process
  std::unique_ptr<optimizer::UpdateRunner> runner_;
  std::unique_ptr<replication::SyncPeers> peers_;
  std::unique_ptr<replication::ReplicaLink> replica_link_;
  std::unique_ptr<shard::Shard> shard_;
  EncodedParameters encoded_parameters_;
  ChangedParameters changed_parameters_;
  replication::OutwardCalls replica_calls_;
  std::unique_ptr<shard::ShardReplica> replica_;
  kj::Own<kj::PromiseFulfiller<void>> declared_;  // of the last whenDeclared()
  kj::Promise<void> ticking_ = nullptr;
};

template <class T>
struct ShardHost::PendingOf final : Pending {
  explicit PendingOf(kj::Own<kj::PromiseFulfiller<T>> f) : fulfiller(kj::mv(f)) {}
  void fail(const Error& error) override { fulfiller->reject(net::toKj(error)); }
  kj::Own<kj::PromiseFulfiller<T>> fulfiller;
};

// Returns the reply function of a request on another loop. It resolves promise `id` on the control
// loop.
template <class T>
ShardHost::Reply<T> ShardHost::replyTo(uint64_t id) {
  return [this, id](std::variant<T, Error> answer) {
    control_.post([this, id, answer = std::make_shared<std::variant<T, Error>>(std::move(answer))] {
      resolve(id, [&](Pending& pending) {
        if (const Error* error = std::get_if<Error>(answer.get())) return pending.fail(*error);
        static_cast<PendingOf<T>&>(pending).fulfiller->fulfill(std::move(std::get<T>(*answer)));
      });
    });
  };
}

template <class T>
kj::Promise<T> ShardHost::ask(std::function<void(shard::Shard&, Reply<T>)> request) {
  if (failed_) return net::toKj(*failed_);
  auto pair = kj::newPromiseAndFulfiller<T>();
  const uint64_t id = add(std::make_unique<PendingOf<T>>(kj::mv(pair.fulfiller)));
  data_.post([this, request = std::move(request), reply = replyTo<T>(id)] {
    try {
      request(*shard_, reply);
    } catch (...) {
      reply(net::currentError());
    }
  });
  return kj::mv(pair.promise);
}

template <class T>
kj::Promise<T> ShardHost::onDisk(std::function<T()> work) {
  auto pair = kj::newPromiseAndFulfiller<T>();
  const uint64_t id = add(std::make_unique<PendingOf<T>>(kj::mv(pair.fulfiller)));
  disk_.post([work = std::move(work), reply = replyTo<T>(id)] {
    try {
      reply(work());
    } catch (...) {
      reply(net::currentError());
    }
  });
  return kj::mv(pair.promise);
}

}  // namespace dtf::host
