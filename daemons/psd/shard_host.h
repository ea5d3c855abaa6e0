#pragma once

// Where a psd's shard lives: on the data loop, a thread of its own, so that parameters and control
// messages never wait for each other. The control loop asks it questions and gets promises.

#include <kj/async.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "common/net/reactor.h"
#include "common/ps/shard.h"
#include "daemons/psd/compute_runner.h"

namespace dtf::psd {

// Owns: the data loop's thread, the shard and its compute threads, a thread for the disk.  Borrows:
// `control` (must outlive this). Threads: made, used and destroyed on the control loop's thread,
// except shard(): data loop only. Blocks: the destructor, until the data loop has ended.
class ShardHost {
 public:
  template <class T>
  using Reply = std::function<void(std::variant<T, Error>)>;

  // `make_peers` runs on the data loop; its result may be null.
  ShardHost(net::Reactor& control, const ps::ShardOptions& options,
            const std::function<std::unique_ptr<ps::SyncPeers>()>& make_peers);
  ~ShardHost();
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  // Runs `request(shard, reply)` on the data loop; the promise is what `reply` is called with,
  // there and then or later, or what `request` throws.
  template <class T>
  kj::Promise<T> ask(std::function<void(ps::Shard&, Reply<T>)> request);

  // The same for a request that answers at once.
  template <class T>
  kj::Promise<T> askNow(std::function<T(ps::Shard&)> request) {
    return ask<T>([request = std::move(request)](ps::Shard& shard, Reply<T> reply) {
      reply(request(shard));
    });
  }

  // Runs `work` on the disk thread: what blocks there holds up nobody else.
  template <class T>
  kj::Promise<T> onDisk(std::function<T()> work);

  // Answers everything that still waits with `error`: this ps is about to end.
  void failAll(const Error& error);

  net::IoThread& data() { return data_; }
  ps::Shard& shard() { return *shard_; }

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
  void postToControl(std::function<void()> fn);
  kj::Promise<void> tick();

  net::Reactor& control_;
  SystemClock clock_;
  std::map<uint64_t, std::unique_ptr<Pending>> pending_;  // control loop
  uint64_t next_id_ = 0;
  // Data loop:
  std::unique_ptr<ComputeRunner> runner_;
  std::unique_ptr<ps::SyncPeers> peers_;
  std::unique_ptr<ps::Shard> shard_;
  kj::Promise<void> ticking_ = nullptr;
  net::IoThread data_;  // its loop ends before what it uses
  net::IoThread disk_{"psd-disk"};
};

template <class T>
struct ShardHost::PendingOf final : Pending {
  explicit PendingOf(kj::Own<kj::PromiseFulfiller<T>> f) : fulfiller(kj::mv(f)) {}
  void fail(const Error& error) override { fulfiller->reject(net::toKj(error)); }
  kj::Own<kj::PromiseFulfiller<T>> fulfiller;
};

// What a request on another thread answers with: a function that fulfils promise `id` on the
// control loop.
template <class T>
ShardHost::Reply<T> ShardHost::replyTo(uint64_t id) {
  return [this, id](std::variant<T, Error> answer) {
    postToControl([this, id, answer = std::make_shared<std::variant<T, Error>>(std::move(answer))] {
      resolve(id, [&](Pending& pending) {
        if (const Error* error = std::get_if<Error>(answer.get())) return pending.fail(*error);
        static_cast<PendingOf<T>&>(pending).fulfiller->fulfill(std::move(std::get<T>(*answer)));
      });
    });
  };
}

template <class T>
kj::Promise<T> ShardHost::ask(std::function<void(ps::Shard&, Reply<T>)> request) {
  auto pair = kj::newPromiseAndFulfiller<T>();
  const uint64_t id = add(std::make_unique<PendingOf<T>>(kj::mv(pair.fulfiller)));
  data_.post([this, request = std::move(request), reply = replyTo<T>(id)] {
    try {
      request(*shard_, reply);
    } catch (const Error& error) {
      reply(error);
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
    } catch (const Error& error) {
      reply(error);
    } catch (const std::exception& error) {
      reply(Error(ErrorCode::kInternal, error.what()));
    }
  });
  return kj::mv(pair.promise);
}

}  // namespace dtf::psd
