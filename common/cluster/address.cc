#include "common/cluster/address.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "common/base/check.h"

namespace dtf::cluster {

namespace {

constexpr size_t kHostBytesMax = 253;  // of a DNS name, RFC 1035 section 2.3.4

bool isHostName(std::string_view host) {
  return !host.starts_with('-') && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

// Whether `host` has only characters of a numeric IPv6 address, with an optional zone
// ("fe80::1%eth0").
bool isIpv6Text(std::string_view host) {
  const std::string_view digits = host.substr(0, host.find('%'));
  const std::string_view zone = host.substr(std::min(digits.size() + 1, host.size()));
  return isHostName(zone) && digits.find(':') != std::string_view::npos &&
         std::all_of(digits.begin(), digits.end(),
                     [](unsigned char c) { return std::isxdigit(c) || c == ':' || c == '.'; });
}

}  // namespace

std::string parsePort(std::string_view text, uint16_t& port) {
  if (text == "auto") {
    port = 0;
    return "";
  }
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits = !text.empty() && end == text.data() + text.size();
  if (!digits || error != std::errc() || value < 1 || value > kPortMax)
    return "a port is from 1 to 65535, or auto";
  port = static_cast<uint16_t>(value);
  return "";
}

std::string Address::str() const {
  const std::string port_text = port == 0 ? "auto" : std::to_string(port);
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + port_text;
}

std::string parseAddress(std::string_view text, Address& address) {
  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos)
    return "an address is host:port, without '" + std::string(text.substr(0, scheme)) + "://'";
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return "an address is host:port";
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!isIpv6Text(host)) return "only an IPv6 address goes between brackets";
  } else if (host.find(':') != std::string_view::npos) {
    return "an IPv6 address goes between brackets: \"[::1]:2222\"";
  } else if (host.empty()) {
    return "an address is host:port";
  } else if (!isHostName(host)) {
    return "a host name has letters, digits, '.', '-' and '_', and does not start with '-'";
  }
  if (host.size() > kHostBytesMax) return "a host name has at most 253 characters";
  uint16_t port = 0;
  if (std::string wrong = parsePort(text.substr(colon + 1), port); !wrong.empty()) return wrong;
  address = Address{std::string(host), port};
  return "";
}

std::string bindKey(const Address& address) {
  DTF_CHECK(!address.host.empty());
  if (address.port == 0) return "";
  return hostKey(address.host) + ":" + std::to_string(address.port);
}

std::string hostKey(std::string_view name) {
  DTF_CHECK(!name.empty());
  std::string host(name);
  for (char& c : host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (host == "127.0.0.1" || host == "::1") host = "localhost";
  return host;
}

bool isLoopback(std::string_view host) {
  DTF_CHECK(!host.empty());
  constexpr std::string_view kMappedIpv4 = "::ffff:";
  if (host.starts_with(kMappedIpv4)) host.remove_prefix(kMappedIpv4.size());
  return host == "::1" || host.starts_with("127.");
}

std::string refusalToListen(std::string_view address) {
  return "listening at " + std::string(address) +
         " would let everyone who can connect read and change the model: connections are neither "
         "encrypted nor authenticated. Use localhost, or keys (dtf-launch keys init DIR, then "
         "'keys: "
         "DIR' in the cluster file), or allow it: --insecure, or 'insecure: true' there";
}

std::string refusalToShow(std::string_view address) {
  return "listening at " + std::string(address) +
         " for /metrics would let everyone who can connect read the job's figures: without keys "
         "these pages are plain HTTP. Leave the port for them out, or use keys (dtf-launch keys "
         "init DIR, then 'keys: DIR' in the cluster file), which make them HTTPS, or allow it: "
         "--insecure, or 'insecure: true' there";
}

}  // namespace dtf::cluster
