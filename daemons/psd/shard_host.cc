#include "daemons/psd/shard_host.h"

#include "common/net/event_port.h"

namespace dtf::psd {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);

}  // namespace

ShardHost::ShardHost(net::Reactor& control, const ps::ShardOptions& options,
                     const std::function<std::unique_ptr<ps::SyncPeers>()>& make_peers)
    : control_(control), data_("psd-data", net::kDataBusyPoll) {
  data_.call([&] {
    runner_ = std::make_unique<ComputeRunner>(data_);
    peers_ = make_peers();
    shard_ = std::make_unique<ps::Shard>(options, clock_, *runner_, peers_.get());
    ticking_ = tick().eagerlyEvaluate(nullptr);
  });
  data_.onStop([this] {
    ticking_ = nullptr;
    runner_ = nullptr;  // joins the compute threads: nothing of the shard runs any more
    shard_ = nullptr;
    peers_ = nullptr;
  });
}

ShardHost::~ShardHost() = default;

kj::Promise<void> ShardHost::tick() {
  return data_.timer().afterDelay(net::toKj(kTick)).then([this] {
    shard_->tick();
    return tick();
  });
}

uint64_t ShardHost::add(std::unique_ptr<Pending> pending) {
  const uint64_t id = next_id_++;
  pending_.emplace(id, std::move(pending));
  return id;
}

void ShardHost::resolve(uint64_t id, const std::function<void(Pending&)>& how) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // failAll() was faster
  const std::unique_ptr<Pending> pending = std::move(found->second);
  pending_.erase(found);
  how(*pending);
}

void ShardHost::postToControl(std::function<void()> fn) {
  net::asio::post(control_.ioc, [this, fn = std::move(fn)] {
    net::AsioEventPort::Io io(control_.port);
    fn();
  });
}

void ShardHost::failAll(const Error& error) {
  for (auto& [id, pending] : std::exchange(pending_, {})) pending->fail(error);
}

}  // namespace dtf::psd
