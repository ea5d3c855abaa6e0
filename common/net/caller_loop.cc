#include "common/net/caller_loop.h"

#include "common/base/check.h"
#include "common/net/connector.h"
#include "common/net/descriptor_watch.h"

namespace dtf::net {

CallerLoop::CallerLoop(Duration busy_poll, Credentials credentials)
    : polls_(busy_poll > Duration{0}),
      credentials_(std::move(credentials)),
      core_(std::make_unique<Core>()) {
  core_->port.setBusyPoll(busy_poll);
}

// Handlers of closed sockets and timers are still queued; kj objects may be destroyed in them.
CallerLoop::~CallerLoop() {
  constexpr int kRoundsMax = 1000;
  kj::WaitScope scope(core_->loop);
  core_->port.attach(core_->loop, scope);
  for (int round = 0; round < kRoundsMax && core_->ioc.poll() > 0; ++round) {
  }
}

void CallerLoop::post(std::function<void()> fn) {
  DTF_CHECK(fn != nullptr);
  asio::post(core_->ioc, [this, fn = std::move(fn)] {
    AsioEventPort::Io io(core_->port);
    fn();
  });
}

bool CallerLoop::addPolled(Polled& polled) {
  if (polls_) core_->port.addPolled(polled);
  return polls_;
}

std::unique_ptr<DescriptorWatch> CallerLoop::watch(int fd, std::function<void()> ready) {
  return watchDescriptor(core_->port, fd, std::move(ready));
}

kj::Promise<kj::Own<MessageStream>> CallerLoop::connect(std::string host, uint16_t port,
                                                        ConnectOptions options,
                                                        const Limits& limits,
                                                        std::shared_ptr<BufferPool> pool) {
  options.credentials = credentials_;
  return connectStream(core_->port, std::move(host), port, std::move(options), limits,
                       std::move(pool));
}

}  // namespace dtf::net
