#include "tests/e2e/cutting_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/loopback.h"

namespace dtf::testing {

namespace {

constexpr size_t kPreambleBytes = 16;  // common/net/preamble.h
constexpr size_t kKindAt = 8;
constexpr char kBulk = 2;

// Cap'n Proto's framing: segments - 1, the words of each, padding to 8 bytes; then the segments.
// Nullopt-like 0: `header` is not whole yet.
size_t tableBytes(const std::string& header) {
  uint32_t segments = 0;
  if (header.size() < sizeof segments) return 0;
  std::memcpy(&segments, header.data(), sizeof segments);
  const size_t bytes = (4 * (size_t{segments} + 2) + 7) / 8 * 8;
  return header.size() < bytes ? 0 : bytes;
}

size_t bodyBytes(const std::string& header) {
  uint32_t last = 0;
  std::memcpy(&last, header.data(), sizeof last);
  size_t words = 0;
  for (size_t i = 0; i <= last; ++i) {
    uint32_t segment = 0;
    std::memcpy(&segment, header.data() + 4 * (i + 1), sizeof segment);
    words += segment;
  }
  return 8 * words;
}

}  // namespace

struct CuttingProxy::Pipe {
  Pipe(int worker_socket, int ps_socket) : worker(worker_socket), ps(ps_socket) {}
  ~Pipe() {
    ::close(worker);
    ::close(ps);
  }
  const int worker;
  const int ps;
  std::string preamble;  // the worker's, as far as it has come
  std::string header;    // of the message that comes next
  size_t body_left = 0;
  bool ends = false;  // with this body
};

CuttingProxy::CuttingProxy(int ps_port, size_t whole, size_t push_bytes_min,
                           std::function<void()> on_cut)
    : ps_port_(ps_port),
      whole_(whole),
      push_bytes_min_(push_bytes_min),
      on_cut_(std::move(on_cut)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::pipe(wake_) != 0)
    throw std::runtime_error("cannot listen on loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

CuttingProxy::~CuttingProxy() {
  ::close(wake_[1]);
  thread_.join();
  pipes_.clear();
  ::close(wake_[0]);
  ::close(listener_);
}

void CuttingProxy::run() {
  while (!cut_) {
    std::vector<pollfd> waiting = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& [fd, pipe] : pipes_) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 || waiting[0].revents != 0) return;
    if (waiting[1].revents != 0) accept();
    for (size_t i = 2; i < waiting.size() && !cut_; ++i) {
      const auto found = pipes_.find(waiting[i].fd);
      if (waiting[i].revents == 0 || found == pipes_.end()) continue;
      const std::shared_ptr<Pipe> pipe = found->second;
      if (forward(*pipe, waiting[i].fd == pipe->worker)) continue;
      pipes_.erase(pipe->worker);
      pipes_.erase(pipe->ps);
    }
  }
  on_cut_();
  pipes_.clear();
}

void CuttingProxy::accept() {
  const int worker = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int ps = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto pipe = std::make_shared<Pipe>(worker, ps);
  const sockaddr_in address = loopback(ps_port_);
  // Refused, because the ps does not listen yet: the worker sees its connection close, and knocks
  // again.
  if (::connect(ps, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  pipes_[worker] = pipe;
  pipes_[ps] = pipe;
}

bool CuttingProxy::forward(Pipe& pipe, bool to_ps) {
  char buffer[65536];
  const ssize_t n = ::recv(to_ps ? pipe.worker : pipe.ps, buffer, sizeof buffer, 0);
  if (n <= 0) return false;
  const size_t size = static_cast<size_t>(n);
  if (!to_ps) return sendAll(pipe.worker, buffer, size);
  return sendAll(pipe.ps, buffer, allowed(pipe, buffer, size));
}

// How many of the worker's next bytes the ps may have. Sets cut_ when they are the last.
size_t CuttingProxy::allowed(Pipe& pipe, const char* bytes, size_t size) {
  size_t at = std::min(size, kPreambleBytes - pipe.preamble.size());
  pipe.preamble.append(bytes, at);
  if (pipe.preamble.size() < kPreambleBytes || pipe.preamble[kKindAt] != kBulk) return size;
  while (at < size) {
    const size_t of_body = std::min(size - at, pipe.body_left);
    at += of_body;
    pipe.body_left -= of_body;
    if (pipe.ends && pipe.body_left == 0) {
      cut_ = true;
      return at;
    }
    if (at == size) break;
    pipe.header += bytes[at++];
    if (tableBytes(pipe.header) == 0) continue;
    pipe.body_left = bodyBytes(pipe.header);
    pipe.header.clear();
    if (pipe.body_left < push_bytes_min_ || ++pushes_ <= whole_) continue;
    pipe.body_left /= 2;
    pipe.ends = true;
  }
  return size;
}

}  // namespace dtf::testing
