#include "common/net/own_user.h"

#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <variant>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf::net {

namespace {

// Addresses and ports in the kernel's form; IPv4 in its own form, not mapped to IPv6.
struct End {
  uint8_t family = AF_UNSPEC;
  uint32_t address[4] = {};
  uint16_t port = 0;
};

struct Owner {
  uid_t user = 0;
  uint8_t state = 0;
};
using Found = std::variant<Owner, std::string>;  // or the reason why it is unknown

End endOf(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  DTF_CHECK(fd >= 0);
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  End end;
  if (get(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return end;
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    end.address[0] = v4.sin_addr.s_addr;
    end.port = v4.sin_port;
  } else if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    const bool is_mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    std::memcpy(end.address, v6.sin6_addr.s6_addr + (is_mapped ? 12 : 0), is_mapped ? 4 : 16);
    end.port = v6.sin6_port;
    if (is_mapped) storage.ss_family = AF_INET;
  } else {
    return end;
  }
  end.family = static_cast<uint8_t>(storage.ss_family);
  return end;
}

bool isLoopback(const End& end) {
  if (end.family == AF_INET) return ntohl(end.address[0]) >> 24 == IN_LOOPBACKNET;
  return end.family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(end.address));
}

std::string unknown(const std::string& what, int error) {
  return fmt::format("the kernel doesn't report the owners of sockets ({}: {})", what,
                     errnoText(error));
}

// Queries the kernel through `netlink`, which replies within the call. nullopt with errno: no
// reply, and a later reply might belong to this query.
std::optional<Found> ask(const Fd& netlink, const End& local, const End& remote) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 wanted;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.wanted.sdiag_family = local.family;
  request.wanted.sdiag_protocol = IPPROTO_TCP;
  request.wanted.idiag_states = ~0U;
  inet_diag_sockid& id = request.wanted.id;
  std::memcpy(id.idiag_src, local.address, sizeof(id.idiag_src));
  std::memcpy(id.idiag_dst, remote.address, sizeof(id.idiag_dst));
  id.idiag_sport = local.port;
  id.idiag_dport = remote.port;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(netlink.get(), &request, sizeof(request), 0) != sizeof(request)) return {};
  alignas(nlmsghdr) char bytes[4096];
  const ssize_t got = ::recv(netlink.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got >= 0 && got < static_cast<ssize_t>(sizeof(nlmsghdr))) errno = EBADMSG;
  if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
  const auto* answer = reinterpret_cast<const nlmsghdr*>(bytes);
  if (answer->nlmsg_type == NLMSG_ERROR && answer->nlmsg_len >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
    const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(answer))->error;
    if (error != ENOENT) return unknown("answer", error);
    return Owner{};  // there is no such socket
  }
  if (answer->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)) || got < answer->nlmsg_len)
    return unknown("answer", EBADMSG);
  const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(answer));
  return Owner{found->idiag_uid, found->idiag_state};
}

// Returns the owner of the socket with local end `local`, connected to `remote`; if `remote` has no
// port, of the socket listening at `local`. The thread keeps its descriptor: a task without free
// descriptors must still recognise its own user's connections.
Found ownerOf(const End& local, const End& remote) {
  DTF_CHECK(local.family != AF_UNSPEC && local.port != 0);
  static thread_local Fd netlink;
  if (netlink.get() < 0)
    netlink = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.get() < 0) return unknown("NETLINK_SOCK_DIAG", errno);
  if (const std::optional<Found> found = ask(netlink, local, remote)) return *found;
  const int error = errno;
  netlink = Fd();
  return unknown("request", error);
}

bool isEstablished(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

// `found` is an existing socket.
std::string refusalOf(const Owner& owner) {
  const uid_t own = ::geteuid();
  if (owner.user == own || owner.user == 0) return {};
  return fmt::format(
      "it is a process of user {} of this host; without keys, this process of user {} talks only "
      "to "
      "the same user's and root's",
      owner.user, own);
}

Stranger closedAlready() {
  return {"it has closed the connection already", true};
}

}  // namespace

// For a closed socket the kernel reports root, so the other socket must be open: both before the
// query, and after it, so that no other socket can have taken its place between the two addresses.
Stranger strangerThatConnects(int fd) {
  const End here = endOf(fd, ::getsockname), there = endOf(fd, ::getpeername);
  if (there.family == AF_UNSPEC) return closedAlready();
  if (!isLoopback(there)) return {};
  const Found found = ownerOf(there, here);
  if (const auto* problem = std::get_if<std::string>(&found)) return {*problem};
  const Owner& owner = std::get<Owner>(found);
  if (owner.state != TCP_ESTABLISHED || !isEstablished(fd)) return closedAlready();
  return {refusalOf(owner)};
}

// The listener of now may not be the process that accepted: a stranger may have held the port until
// a moment ago. Hence this order: connections queued at this user's socket can't be accepted by
// another user, and connections queued at a stranger's socket were reset when it closed.
Stranger strangerThatListens(int fd) {
  const End there = endOf(fd, ::getpeername);
  if (there.family == AF_UNSPEC) return closedAlready();
  if (!isLoopback(there)) return {};
  const Found found = ownerOf(there, {});
  if (const auto* problem = std::get_if<std::string>(&found)) return {*problem};
  const Owner& owner = std::get<Owner>(found);
  if (owner.state != TCP_LISTEN) return {"it doesn't listen any more"};
  if (std::string refusal = refusalOf(owner); !refusal.empty()) return {refusal};
  return strangerThatConnects(fd);  // root until somebody accepts
}

// Queries an existing socket: kernels without this interface for TCP give the same reply as for a
// missing socket.
std::string whyOwnersAreUnknown() {
  const Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listening.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) != 0 ||
      ::listen(listening.get(), 1) != 0)
    return unknown("a listening socket", errno);
  const Found found = ownerOf(endOf(listening.get(), ::getsockname), {});
  if (const auto* problem = std::get_if<std::string>(&found)) return *problem;
  const Owner& owner = std::get<Owner>(found);
  if (owner.state == TCP_LISTEN && owner.user == ::geteuid()) return {};
  return unknown("NETLINK_SOCK_DIAG", ENOENT);
}

}  // namespace dtf::net
