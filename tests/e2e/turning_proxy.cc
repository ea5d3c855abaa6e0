#include "tests/e2e/turning_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "tests/support/loopback.h"

namespace dtf::testing {

namespace {

constexpr size_t kPreambleBytes = 16;  // common/net/preamble.h
constexpr size_t kGapBytesMin = 64;

}  // namespace

struct TurningProxy::Pipe {
  Pipe(int worker_socket, int ps_socket) : worker(worker_socket), ps(ps_socket) {}
  ~Pipe() {
    ::close(worker);
    ::close(ps);
  }
  const int worker;
  const int ps;
  size_t preamble_left = kPreambleBytes;
};

TurningProxy::TurningProxy(std::vector<int> ps_ports, size_t turns, size_t gap_bytes_max,
                           unsigned seed)
    : ps_ports_(std::move(ps_ports)),
      turns_(turns),
      gap_bytes_max_(gap_bytes_max),
      random_(seed),
      gap_(nextGap()) {
  for (size_t i = 0; i < ps_ports_.size(); ++i) {
    Fd listener = listenOnLoopback();
    ports_.push_back(portOf(listener));
    listeners_.push_back(listener.release());
  }
  if (::pipe(wake_) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { run(); });
}

TurningProxy::~TurningProxy() {
  ::close(wake_[1]);
  thread_.join();
  pipes_.clear();
  ::close(wake_[0]);
  for (const int listener : listeners_) ::close(listener);
}

void TurningProxy::run() {
  for (;;) {
    std::vector<pollfd> waiting = {{wake_[0], POLLIN, 0}};
    for (const int listener : listeners_) waiting.push_back({listener, POLLIN, 0});
    for (const auto& [fd, pipe] : pipes_) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 || waiting[0].revents != 0) return;
    for (size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      if (i <= listeners_.size()) {
        accept(i - 1);
        continue;
      }
      const auto found = pipes_.find(waiting[i].fd);
      if (found == pipes_.end()) continue;
      const std::shared_ptr<Pipe> pipe = found->second;
      if (forward(pipe, waiting[i].fd == pipe->worker ? kToPs : kToWorker)) continue;
      pipes_.erase(pipe->worker);
      pipes_.erase(pipe->ps);
    }
  }
}

// Where the ps does not listen yet the worker sees its connection close, and knocks again.
void TurningProxy::accept(size_t ps) {
  const int worker = ::accept4(listeners_[ps], nullptr, nullptr, SOCK_CLOEXEC);
  const int to_ps = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto pipe = std::make_shared<Pipe>(worker, to_ps);
  const sockaddr_in address = loopback(ps_ports_[ps]);
  if (::connect(to_ps, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  pipes_[worker] = pipe;
  pipes_[to_ps] = pipe;
}

bool TurningProxy::forward(const std::shared_ptr<Pipe>& pipe, Direction direction) {
  char buffer[65536];
  const ssize_t got =
      ::recv(direction == kToPs ? pipe->worker : pipe->ps, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  const size_t size = static_cast<size_t>(got);
  size_t preamble = 0;
  if (direction == kToPs) {
    preamble = std::min(size, pipe->preamble_left);
    pipe->preamble_left -= preamble;
  }
  if (turned() < turns_ && turned_pipe_.expired() && direction == next_direction_) {
    if (gap_ < size - preamble) {
      buffer[preamble + gap_] = static_cast<char>(
          buffer[preamble + gap_] ^ 1 << std::uniform_int_distribution(0, 7)(random_));
      ++turned_[direction];
      turned_pipe_ = pipe;
      gap_ = nextGap();
      next_direction_ = direction == kToPs ? kToWorker : kToPs;
    } else {
      gap_ -= size - preamble;
    }
  }
  return sendAll(direction == kToPs ? pipe->ps : pipe->worker, buffer, size);
}

size_t TurningProxy::nextGap() {
  const double most = std::log(static_cast<double>(gap_bytes_max_) / kGapBytesMin);
  return static_cast<size_t>(kGapBytesMin *
                             std::exp(std::uniform_real_distribution(0.0, most)(random_)));
}

}  // namespace dtf::testing
