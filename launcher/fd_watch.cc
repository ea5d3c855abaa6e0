#include "launcher/fd_watch.h"

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/net/asio.h"

namespace dtf::launcher {

struct FdWatch::State {
  explicit State(boost::asio::io_context& io) : descriptor(io) {}
  boost::asio::posix::stream_descriptor descriptor;
  std::function<void()> on_readable;
};

FdWatch::FdWatch(boost::asio::io_context& io, Fd fd, std::function<void()> on_readable)
    : state_(std::make_shared<State>(io)) {
  DTF_CHECK(fd.valid() && on_readable);
  boost::system::error_code error;
  state_->descriptor.assign(fd.get(), error);
  if (error) throw Error(ErrorCode::kInternal, "cannot watch a descriptor: " + error.message());
  fd.release();
  state_->descriptor.non_blocking(true, error);
  state_->on_readable = std::move(on_readable);
  arm(state_);
}

FdWatch::~FdWatch() {
  close();
}

int FdWatch::fd() const {
  return state_ && state_->descriptor.is_open() ? state_->descriptor.native_handle() : -1;
}

void FdWatch::close() {
  if (!state_) return;
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

void FdWatch::arm(const std::shared_ptr<State>& state) {
  state->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                               [state](const boost::system::error_code& error) {
                                 if (error || !state->descriptor.is_open()) return;
                                 state->on_readable();
                                 if (state->descriptor.is_open()) arm(state);
                               });
}

}  // namespace dtf::launcher
