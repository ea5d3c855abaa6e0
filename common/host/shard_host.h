#pragma once

// Where a psd's shard lives: on the data loop, in psd a thread of its own, so that parameters and
// control messages never wait for each other. The control loop asks it questions and gets promises.

#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "common/base/awake_clock.h"
#include "common/host/encoded_parameters.h"
#include "common/net/error_bridge.h"
#include "common/net/loop.h"
#include "common/shard/shard.h"
#include "common/shard/shard_replica.h"

namespace dtf::host {

// Owns: the shard and what runs its updates.
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

  // Makes the shard; `peers` may be null. Before the first question, and before stop().
  // `replica_link`: null where no replicas are kept.
  void start(const shard::ShardOptions& options, std::unique_ptr<optimizer::UpdateRunner> runner,
             std::unique_ptr<replication::SyncPeers> peers,
             std::unique_ptr<replication::ReplicaLink> replica_link);
  // The last call: questions under way are not answered any more.
  void stop();

  // Runs `request(shard, reply)` on the data loop; the promise is what `reply` is called with,
  // there and then or later, or what `request` throws.
  template <class T>
  kj::Promise<T> ask(std::function<void(shard::Shard&, Reply<T>)> request);

  // The same for a request that answers at once.
  template <class T>
  kj::Promise<T> askNow(std::function<T(shard::Shard&)> request) {
    return ask<T>([request = std::move(request)](shard::Shard& shard, Reply<T> reply) {
      reply(request(shard));
    });
  }

  // Runs `work` on the disk loop: what blocks there holds up nobody else.
  template <class T>
  kj::Promise<T> onDisk(std::function<T()> work);

  // Answers everything that still waits with `error`, and whatever is asked from now on: this ps is
  // about to end, and who asks shall know why.
  void failAll(const Error& error);

  net::Loop& control() { return control_; }
  net::Loop& data() { return data_; }
  shard::Shard& shard() { return *shard_; }
  // What is kept of another ps's shard; null where no replicas are. Data loop only.
  shard::ShardReplica* replica() { return replica_.get(); }
  EncodedParameters& encodedParameters() { return encoded_parameters_; }  // of the shard; likewise
  // The report of this ps to the chief, but for its snapshots. Data loop only.
  checkpoint::PsState state() const;
  // Data loop only: done when the shard's model is declared. The last one that asks is told.
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
  std::optional<AwakeClock> clock_;  // the shard's: a pause costs nobody its lease
  std::unique_ptr<optimizer::UpdateRunner> runner_;
  std::unique_ptr<replication::SyncPeers> peers_;
  std::unique_ptr<replication::ReplicaLink> replica_link_;
  std::unique_ptr<shard::Shard> shard_;
  EncodedParameters encoded_parameters_;
  replication::OutwardCalls replica_calls_;
  std::unique_ptr<shard::ShardReplica> replica_;
  kj::Own<kj::PromiseFulfiller<void>> declared_;  // of who waits for it
  kj::Promise<void> ticking_ = nullptr;
};

template <class T>
struct ShardHost::PendingOf final : Pending {
  explicit PendingOf(kj::Own<kj::PromiseFulfiller<T>> f) : fulfiller(kj::mv(f)) {}
  void fail(const Error& error) override { fulfiller->reject(net::toKj(error)); }
  kj::Own<kj::PromiseFulfiller<T>> fulfiller;
};

// What a request on another loop answers with: a function that fulfils promise `id` on the control
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
