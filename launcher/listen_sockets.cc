#include "launcher/listen_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"
#include "common/cluster/address.h"
#include "common/net/port_holder.h"
#include "common/yaml/error_at.h"

namespace dtf::launcher {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::string numericHost(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN];
  if (::getnameinfo(address.get(), address.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) !=
      0)
    throw Error(ErrorCode::kInternal, "a resolved host has no numeric address");
  return host;
}

void setPort(SocketAddress& address, uint16_t port) {
  if (address.storage.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
}

// The first IPv4 address of the host, else the first of all: what the tasks try first, too. In
// `address`; the error of getaddrinfo(), or 0.
int lookUp(const std::string& host, SocketAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found)) return error;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  const addrinfo* chosen = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET) continue;
    chosen = each;
    break;
  }
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.size = chosen->ai_addrlen;
  return 0;
}

SocketAddress resolve(TaskId id, const cluster::TaskSpec& task, bool reachable) {
  SocketAddress address;
  const int error = lookUp(task.address.host, address);
  if (error != 0 && filesRanOut())
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot look up the host '{}' of {}: {}", task.address.host, id.name(),
                            shortageText(EMFILE)));
  if (error != 0)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, task.mark,
                        "cannot resolve the host '" + task.address.host + "' of " + id.name() +
                            ": " + ::gai_strerror(error));
  if (!reachable && !cluster::isLoopback(numericHost(address)))
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, task.mark,
        "the host '" + task.address.host + "' of " + id.name() +
            " is not a loopback address: " + cluster::refusalToListen(task.address.str()));
  return address;
}

[[noreturn]] void failBind(TaskId id, const cluster::TaskSpec& task, int error) {
  const std::string port = "port " + std::to_string(task.address.port) + " of " + id.name();
  if (error == EACCES)
    throw yaml::ErrorAt(ErrorCode::kPermission, task.mark,
                        port + " can't be bound by this user: " + errnoText(error));
  if (error == EADDRNOTAVAIL)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, task.mark,
                        "the host '" + task.address.host + "' of " + id.name() +
                            " is not this host: 'launch: {via: ssh}' starts tasks on other hosts");
  if (error != EADDRINUSE)
    throw yaml::ErrorAt(
        ErrorCode::kUnavailable, task.mark,
        "cannot listen on " + task.address.str() + " for " + id.name() + ": " + errnoText(error));
  const std::string holder = net::portHolder(task.address.port);
  throw yaml::ErrorAt(ErrorCode::kUnavailable, task.mark,
                      port + " is in use" + (holder.empty() ? "" : " by " + holder) +
                          "; stop it, or write `auto` for the port");
}

Fd listenOn(TaskId id, const cluster::TaskSpec& task, bool reachable) {
  SocketAddress address = resolve(id, task, reachable);
  setPort(address, task.address.port);
  Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) failBind(id, task, errno);
  // A port may be taken again while old connections linger in TIME_WAIT, if these had the option,
  // too. One that the kernel chooses gets it when it is listened on: before, the kernel may choose
  // one that another launch has bound and not yet listened on.
  const auto mayBeTakenAgain = [&socket] {
    const int yes = 1;
    DTF_CHECK(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
  };
  if (task.address.port != 0) mayBeTakenAgain();
  if (::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    failBind(id, task, errno);
  mayBeTakenAgain();
  return socket;
}

std::string numericAddress(const Fd& socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  char host[INET6_ADDRSTRLEN];
  char port[8];
  if (::getsockname(socket.get(), address.get(), &address.size) != 0 ||
      ::getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    throw Error(ErrorCode::kInternal, "a listening socket has no address");
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  return (is_v6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

}  // namespace

bool isThisHost(const std::string& host) {
  SocketAddress address;
  if (lookUp(host, address) != 0) return false;
  setPort(address, 0);
  const Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.valid() && ::bind(socket.get(), address.get(), address.size) == 0;
}

TaskSpecs specsOf(const cluster::ClusterSpec& cluster) {
  TaskSpecs specs;
  for (const TaskId id : allTasks(cluster)) specs[id] = cluster.tasks(id.job)[id.index];
  return specs;
}

ListenSockets ListenSockets::open(const TaskSpecs& tasks, bool reachable, bool auto_only) {
  ListenSockets sockets;
  // Fixed ports first, so that the kernel can't choose one of them for an `auto` task.
  for (const bool is_auto : {false, true}) {
    if (auto_only && !is_auto) continue;
    for (const auto& [id, task] : tasks) {
      if ((task.address.port == 0) != is_auto) continue;
      Fd socket = listenOn(id, task, reachable);
      if (is_auto) sockets.chosen_[id] = numericAddress(socket);
      DTF_CHECK_MSG(socket.valid() && !sockets.sockets_.contains(id), id.name());
      sockets.sockets_[id] = std::move(socket);
    }
  }
  DTF_CHECK(auto_only || sockets.sockets_.size() == tasks.size());
  return sockets;
}

Fd ListenSockets::copyFor(TaskId id) const {
  Fd copy(::fcntl(sockets_.at(id).get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid())
    throw Error(
        ErrorCode::kUnavailable,
        "cannot start " + id.name() + ": its socket can't be copied: " + shortageText(errno));
  return copy;
}

void ListenSockets::drop(TaskId id) {
  sockets_.erase(id);
}

}  // namespace dtf::launcher
