#pragma once

// The identity of this process, and the peers that it accepts.

#include <memory>

namespace dtf::net {

class TlsKeys;

// One of three:
//   keys       TLS; both sides present a certificate of the job's CA (tls_keys.h)
//   own user   plain; on this host's loopback only processes of this user and of root (own_user.h)
//   insecure   plain; any peer
// Value type; copies share the keys.
// Threads: thread-compatible.
class Credentials {
 public:
  // Own user, even if the kernel does not report owners of sockets: then every peer on loopback is
  // rejected.
  Credentials() = default;

  // Like the default. If the kernel does not report owners of sockets (a sandbox): insecure, with a
  // warning.
  static Credentials ownUser();
  static Credentials ofKeys(std::shared_ptr<TlsKeys> keys);  // not null
  static Credentials insecure();

  const std::shared_ptr<TlsKeys>& keys() const { return keys_; }  // null: plain connections
  bool isOwnUserOnly() const { return keys_ == nullptr && !is_insecure_; }

 private:
  std::shared_ptr<TlsKeys> keys_;
  bool is_insecure_ = false;
};

}  // namespace dtf::net
