#include "launcher/ssh/frame_link.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/net/asio.h"

namespace dtf::launcher {

namespace {

using boost::asio::posix::stream_descriptor;

constexpr size_t kReadBytes = 65536;
constexpr size_t kLittleBytes = size_t{256} << 10;
constexpr int kDrainReadsMax = 64;  // four times the largest pipe an ordinary user can make

void assign(stream_descriptor& descriptor, Fd fd) {
  boost::system::error_code error;
  descriptor.assign(fd.get(), error);
  if (error) throw Error(ErrorCode::kInternal, "cannot watch a descriptor: " + error.message());
  fd.release();
  descriptor.non_blocking(true, error);
}

}  // namespace

struct FrameLink::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, bool awaits_greeting, std::function<Duration()> patience,
        Handlers handlers)
      : in(io),
        out(io),
        patience(std::move(patience)),
        handlers(std::move(handlers)),
        reader(awaits_greeting, [this](FrameKind kind, std::string_view payload) {
          if (open) this->handlers.on_frame(kind, payload);
        }) {}

  void read();
  void onReadable();
  void flush();
  void awaitWritable();
  bool writeSome();
  void awaitRoom();
  void end(const std::string& why);
  void close();

  stream_descriptor in, out;
  const std::function<Duration()> patience;
  const Handlers handlers;
  FrameReader reader;
  std::string queue;
  bool open = true;
  bool closing = false;  // out, once the queue is empty
  bool flushing = false;
};

void FrameLink::State::read() {
  in.async_wait(stream_descriptor::wait_read,
                [self = shared_from_this()](const boost::system::error_code& error) {
                  if (error || !self->open) return;
                  self->onReadable();
                  if (self->open) self->read();
                });
}

void FrameLink::State::onReadable() {
  static thread_local std::array<char, kReadBytes> buffer;
  const ssize_t n = ::read(in.native_handle(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return end("");
  try {
    reader.feed(std::string_view(buffer.data(), static_cast<size_t>(n)));
  } catch (const Error& error) {
    end(error.message());
  }
}

// False: the link has ended.
bool FrameLink::State::writeSome() {
  while (!queue.empty()) {
    const ssize_t n = ::write(out.native_handle(), queue.data(), queue.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n < 0) {
      end("");
      return false;
    }
    queue.erase(0, static_cast<size_t>(n));
  }
  boost::system::error_code ignored;
  if (closing) out.close(ignored);
  return true;
}

void FrameLink::State::flush() {
  if (writeSome() && !queue.empty()) awaitWritable();
}

void FrameLink::State::awaitWritable() {
  if (flushing) return;
  flushing = true;
  out.async_wait(stream_descriptor::wait_write,
                 [self = shared_from_this()](const boost::system::error_code& error) {
                   self->flushing = false;
                   if (error || !self->open) return;
                   self->flush();
                   const bool has_room = self->open && self->queue.size() <= kLittleBytes;
                   if (has_room && self->handlers.on_room) self->handlers.on_room();
                 });
}

// What the peer does not take for so long, it won't take.
void FrameLink::State::awaitRoom() {
  using std::chrono::milliseconds;
  while (open && queue.size() > kQueueBytesMax) {
    pollfd room{out.native_handle(), POLLOUT, 0};
    const Duration left = std::max(patience(), Duration{0});
    const int ready =
        ::poll(&room, 1, static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return end("the peer does not read");
    writeSome();
  }
}

void FrameLink::State::end(const std::string& why) {
  if (!open) return;
  close();
  handlers.on_end(why);
}

void FrameLink::State::close() {
  open = false;
  queue.clear();
  boost::system::error_code ignored;
  in.close(ignored);
  out.close(ignored);
}

FrameLink::FrameLink(boost::asio::io_context& io, Fd in, Fd out, bool awaits_greeting,
                     std::function<Duration()> patience, Handlers handlers) {
  DTF_CHECK(handlers.on_frame && handlers.on_end && patience);
  state_ = std::make_shared<State>(io, awaits_greeting, std::move(patience), std::move(handlers));
  assign(state_->in, std::move(in));
  assign(state_->out, std::move(out));
  state_->read();
}

FrameLink::~FrameLink() {
  close();
}

void FrameLink::awaitLine() {
  state_->reader.awaitLine();
}

void FrameLink::askForRoom() {
  if (state_->open) state_->awaitWritable();
}

size_t FrameLink::queuedBytes() const {
  return state_->queue.size();
}

void FrameLink::send(std::string_view bytes) {
  if (!state_->open || state_->closing) return;
  const std::shared_ptr<State> self = state_;  // on_end may destroy this
  self->queue += bytes;
  self->flush();
  self->awaitRoom();
}

void FrameLink::drain() {
  const std::shared_ptr<State> self = state_;
  for (int i = 0; i < kDrainReadsMax && self->open; ++i) {
    pollfd waiting{self->in.native_handle(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) <= 0) return;
    self->onReadable();
  }
}

void FrameLink::close() {
  if (state_->open) state_->close();
}

void FrameLink::closeOut() {
  if (!state_->open) return;
  state_->closing = true;
  state_->flush();
}

}  // namespace dtf::launcher
