#include "common/host/shard_host.h"

#include "common/base/check.h"
#include "common/net/timer.h"

namespace dtf::host {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);

}  // namespace

void ShardHost::start(const shard::ShardOptions& options,
                      std::unique_ptr<optimizer::UpdateRunner> runner,
                      std::unique_ptr<replication::SyncPeers> peers,
                      std::unique_ptr<replication::ReplicaLink> replica_link) {
  DTF_CHECK(shard_ == nullptr && runner != nullptr);
  runner_ = std::move(runner);
  peers_ = std::move(peers);
  replica_link_ = std::move(replica_link);
  clock_.emplace(data_.clock(), kTick);
  shard_ =
      std::make_unique<shard::Shard>(options, *clock_, *runner_, peers_.get(), replica_link_.get());
  if (replica_link_) {
    const uint32_t kept = (options.ps_task + options.ps_tasks - 1) % options.ps_tasks;
    DTF_CHECK(replication::backupOf(kept, options.ps_tasks) == options.ps_task &&
              kept != options.ps_task);
    replica_ = std::make_unique<shard::ShardReplica>(kept, options.hosts.of(kept), options.workers,
                                                     *runner_, replica_calls_);
  }
  ticking_ = tick().eagerlyEvaluate(nullptr);
}

void ShardHost::stop() {
  DTF_CHECK(shard_ != nullptr);  // started, and stopped once
  ticking_ = nullptr;
  runner_ = nullptr;  // joins the compute threads: nothing of the shard runs any more
  declared_ = nullptr;
  shard_ = nullptr;
  replica_ = nullptr;
  replica_link_ = nullptr;
  peers_ = nullptr;
}

kj::Promise<void> ShardHost::tick() {
  return data_.timer().afterDelay(net::toKj(kTick)).then([this] {
    shard_->tick();  // reads the clock, which an AwakeClock requires
    return tick();
  });
}

checkpoint::PsState ShardHost::state() const {
  checkpoint::PsState state{shard_->held()};
  if (replica_) state.replica_epoch = replica_->epoch();
  return state;
}

kj::Promise<void> ShardHost::whenDeclared() {
  DTF_CHECK(shard_ != nullptr);
  if (shard_->declaration().has_value()) return kj::READY_NOW;
  auto declared = kj::newPromiseAndFulfiller<void>();
  declared_ = kj::mv(declared.fulfiller);
  return kj::mv(declared.promise);
}

void ShardHost::noteDeclared() {
  if (auto declared = kj::mv(declared_); declared.get() != nullptr) declared->fulfill();
}

uint64_t ShardHost::add(std::unique_ptr<Pending> pending) {
  DTF_CHECK(pending != nullptr);
  const uint64_t id = next_id_++;
  pending_.emplace(id, std::move(pending));
  return id;
}

void ShardHost::resolve(uint64_t id, const std::function<void(Pending&)>& how) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // failAll() came first
  const std::unique_ptr<Pending> pending = std::move(found->second);
  pending_.erase(found);
  how(*pending);
}

void ShardHost::failAll(const Error& error) {
  failed_ = error;
  for (auto& [id, pending] : std::exchange(pending_, {})) pending->fail(error);
  data_.post([this, error] {
    if (shard_) shard_->failAll(error);
  });
}

}  // namespace dtf::host
