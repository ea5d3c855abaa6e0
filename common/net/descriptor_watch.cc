#include "common/net/descriptor_watch.h"

#include <utility>

#include "common/base/check.h"
#include "common/net/asio.h"

namespace dtf::net {

namespace {

class AsioWatch final : public DescriptorWatch {
 public:
  AsioWatch(AsioEventPort& port, int fd, std::function<void()> ready)
      : state_(std::make_shared<State>(port, fd, std::move(ready))) {
    state_->waitOnce();
  }
  ~AsioWatch() noexcept(false) override {
    state_->ready = nullptr;
    state_->descriptor.release();  // cancels the wait; the descriptor stays open
  }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(AsioEventPort& on, int fd, std::function<void()> then)
        : port(on), descriptor(on.ioc(), fd), ready(std::move(then)) {}

    void waitOnce() {
      descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                            [self = shared_from_this()](const error_code& error) {
                              if (error || self->ready == nullptr) return;
                              AsioEventPort::Io io(self->port);
                              const auto call = self->ready;  // which may destroy the watch
                              call();
                              if (self->ready != nullptr) self->waitOnce();
                            });
    }

    AsioEventPort& port;
    asio::posix::stream_descriptor descriptor;
    std::function<void()> ready;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<DescriptorWatch> watchDescriptor(AsioEventPort& port, int fd,
                                                 std::function<void()> ready) {
  DTF_CHECK(fd >= 0 && ready != nullptr);
  return std::make_unique<AsioWatch>(port, fd, std::move(ready));
}

}  // namespace dtf::net
