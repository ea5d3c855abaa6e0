#include "launcher/network/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

// "127.0.0.1"; empty: of another family.
std::string textOf(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr ||
      ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

bool isLinkLocal(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  constexpr uint32_t kLinkLocal = 0xA9FE0000;  // 169.254.0.0/16
  const uint32_t host = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  return (host & 0xFFFF0000) == kLinkLocal;
}

template <class Fn>
void forEach(Fn fn) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    throw Error(
        ErrorCode::kUnavailable,
        std::string("this host's network interfaces are not known: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next)
    if (const std::string address = textOf(each->ifa_addr); !address.empty()) fn(*each, address);
}

}  // namespace

std::vector<InterfaceAddress> interfaceAddresses() {
  std::vector<InterfaceAddress> addresses;
  forEach([&](const ifaddrs& each, const std::string& address) {
    const bool is_up = (each.ifa_flags & IFF_UP) != 0 && (each.ifa_flags & IFF_RUNNING) != 0;
    if (is_up && (each.ifa_flags & IFF_LOOPBACK) == 0 && !isLinkLocal(each.ifa_addr))
      addresses.push_back({each.ifa_name, address});
  });
  return addresses;
}

std::string interfaceOf(const std::string& address) {
  std::string interface;
  forEach([&](const ifaddrs& each, const std::string& its) {
    if (its == address) interface = each.ifa_name;
  });
  // All of 127.0.0.0/8 is there, one of them named.
  return interface.empty() && address.starts_with("127.") ? "lo" : interface;
}

}  // namespace dtf::launcher
