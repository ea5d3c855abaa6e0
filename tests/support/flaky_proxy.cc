#include "tests/support/flaky_proxy.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/support/loopback.h"

namespace dtf::testing {

namespace {

constexpr int kTurnMs = 5;
constexpr int kSlowBufferBytes = 1 << 17;

}  // namespace

FlakyProxy::FlakyProxy(uint16_t server_port)
    : server_port_(server_port), listener_(listenOnLoopback()), port_(portOf(listener_)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("cannot make a pipe");
  wake_read_ = Fd(ends[0]);
  wake_write_ = Fd(ends[1]);
  thread_ = std::thread([this] { run(); });
}

FlakyProxy::~FlakyProxy() {
  ends_ = true;
  wake();
  thread_.join();
}

void FlakyProxy::wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(wake_write_.get(), &byte, 1);
}

void FlakyProxy::cutAfter(Way way, size_t bytes) {
  const std::lock_guard lock(mu_);
  left_[static_cast<size_t>(way)] = bytes;
}

void FlakyProxy::cutEvery(std::chrono::milliseconds period) {
  const std::lock_guard lock(mu_);
  period_ = period;
  next_cut_ = std::chrono::steady_clock::now() + period;
}

void FlakyProxy::stopCutting() {
  const std::lock_guard lock(mu_);
  period_.reset();
}

void FlakyProxy::setChunkMax(size_t bytes) {
  const std::lock_guard lock(mu_);
  chunk_max_ = bytes;
}

void FlakyProxy::slowDown(std::chrono::milliseconds pause) {
  // Small buffers keep a client's bytes with the client: sockets inherit the listener's buffers.
  const int bytes = kSlowBufferBytes;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  const std::lock_guard lock(mu_);
  pause_ = pause;
}

void FlakyProxy::silence(Way way) {
  const std::lock_guard lock(mu_);
  for (Link& link : links_) link.silent[static_cast<size_t>(way)] = true;
}

void FlakyProxy::refuse(bool refuses) {
  const std::lock_guard lock(mu_);
  refuses_ = refuses;
  if (refuses) cutAll();
}

void FlakyProxy::cutAll() {
  cuts_ += links_.size();
  links_.clear();
}

void FlakyProxy::run() {
  for (std::chrono::milliseconds pause{0}; !ends_; std::this_thread::sleep_for(pause)) {
    std::vector<pollfd> waiting = {{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mu_);
      for (const Link& link : links_) {
        waiting.push_back({link.silent[0] ? -1 : link.client.get(), POLLIN, 0});
        waiting.push_back({link.silent[1] ? -1 : link.server.get(), POLLIN, 0});
      }
    }
    ::poll(waiting.data(), waiting.size(), kTurnMs);
    if (waiting[1].revents != 0) accept();
    const std::lock_guard lock(mu_);
    pause = pause_;
    size_t at = 2;
    for (auto link = links_.begin(); link != links_.end() && at < waiting.size(); at += 2) {
      const bool stays = (waiting[at].revents == 0 || forward(*link, Way::kToServer)) &&
                         (waiting[at + 1].revents == 0 || forward(*link, Way::kToClient));
      link = stays ? std::next(link) : links_.erase(link);
    }
    if (!period_ || std::chrono::steady_clock::now() < next_cut_) continue;
    next_cut_ += *period_;
    cutAll();
  }
}

void FlakyProxy::accept() {
  Link link;
  link.client = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  link.server = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(server_port_);
  if (::connect(link.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0)
    return;
  for (const Fd* end : {&link.client, &link.server}) {
    const int on = 1;
    ::setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const std::lock_guard lock(mu_);
  ++connections_;
  if (!refuses_) links_.push_back(std::move(link));
}

// Returns how many of these bytes pass before the cut.
size_t FlakyProxy::allowed(Way way, size_t bytes) {
  std::optional<size_t>& left = left_[static_cast<size_t>(way)];
  if (!left) return bytes;
  const size_t pass = std::min(bytes, *left);
  *left -= pass;
  return pass;
}

// Returns false if the connection has ended, or must end.
bool FlakyProxy::forward(Link& link, Way way) {
  const bool to_server = way == Way::kToServer;
  char buffer[65536];
  const ssize_t n = ::recv(to_server ? link.client.get() : link.server.get(), buffer,
                           std::min(chunk_max_, sizeof buffer), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return true;
  if (n <= 0) return false;
  const size_t pass = allowed(way, static_cast<size_t>(n));
  const bool sent = sendAll(to_server ? link.server.get() : link.client.get(), buffer, pass);
  std::optional<size_t>& left = left_[static_cast<size_t>(way)];
  if (!left || *left > 0) return sent;
  left.reset();
  ++cuts_;
  return false;
}

}  // namespace dtf::testing
