#include "tests/e2e/loopback_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "tests/support/loopback.h"

namespace dtf::testing {

struct LoopbackProxy::Pipe {
  Pipe(int worker_socket, int ps_socket, std::shared_ptr<ProxiedConnection> connection)
      : worker(worker_socket), ps(ps_socket), content(std::move(connection)) {}
  ~Pipe() {
    ::close(worker);
    ::close(ps);
  }
  const int worker;
  const int ps;
  const std::shared_ptr<ProxiedConnection> content;
};

LoopbackProxy::LoopbackProxy(std::vector<int> ps_ports, Callbacks callbacks)
    : ps_ports_(std::move(ps_ports)), callbacks_(std::move(callbacks)) {
  for (size_t i = 0; i < ps_ports_.size(); ++i) {
    Fd listener = listenOnLoopback();
    ports_.push_back(portOf(listener));
    listeners_.push_back(listener.release());
  }
  if (::pipe(wake_) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { run(); });
}

LoopbackProxy::~LoopbackProxy() {
  ::close(wake_[1]);
  thread_.join();
  pipes_.clear();
  ::close(wake_[0]);
  for (const int listener : listeners_) ::close(listener);
}

void LoopbackProxy::run() {
  while (!callbacks_.is_over()) {
    std::vector<pollfd> waiting = {{wake_[0], POLLIN, 0}};
    for (const int listener : listeners_) waiting.push_back({listener, POLLIN, 0});
    for (const auto& [fd, pipe] : pipes_) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 || waiting[0].revents != 0) return;
    for (size_t i = 1; i < waiting.size() && !callbacks_.is_over(); ++i) {
      if (waiting[i].revents == 0) continue;
      if (i <= listeners_.size()) {
        accept(i - 1);
        continue;
      }
      const auto found = pipes_.find(waiting[i].fd);
      if (found == pipes_.end()) continue;
      const std::shared_ptr<Pipe> pipe = found->second;
      if (forward(*pipe, waiting[i].fd == pipe->worker ? Toward::kPs : Toward::kWorker)) continue;
      pipes_.erase(pipe->worker);
      pipes_.erase(pipe->ps);
    }
  }
  callbacks_.on_over();
  pipes_.clear();
}

// Where the ps does not listen yet the worker sees its connection close, and tries again.
void LoopbackProxy::accept(size_t ps) {
  const int worker = ::accept4(listeners_[ps], nullptr, nullptr, SOCK_CLOEXEC);
  const int to_ps = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto pipe = std::make_shared<Pipe>(worker, to_ps, callbacks_.connect());
  const sockaddr_in address = loopback(ps_ports_[ps]);
  if (::connect(to_ps, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  pipes_[worker] = pipe;
  pipes_[to_ps] = pipe;
}

bool LoopbackProxy::forward(Pipe& pipe, Toward direction) {
  const bool to_ps = direction == Toward::kPs;
  char buffer[65536];
  const ssize_t got = ::recv(to_ps ? pipe.worker : pipe.ps, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  const size_t passed = pipe.content->pass(direction, buffer, static_cast<size_t>(got));
  return sendAll(to_ps ? pipe.ps : pipe.worker, buffer, passed);
}

}  // namespace dtf::testing
