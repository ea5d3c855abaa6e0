#pragma once

// Access without keys, by user of this host. TCP on loopback is open to all users, but the kernel
// knows the owner of each socket (sock_diag(7)), so no proof is needed.

#include <string>

namespace dtf::net {

// The reason why a connection must not be used. Value type.
struct Stranger {
  std::string why;          // for people; empty if it may be used
  bool has_closed = false;  // its other end has closed: nothing was rejected
};

// Returns a reason if the process at the other end of `fd`, a TCP connection, runs as another user
// than this one and not as root. Empty if it may be used, or if the connection isn't on this host's
// loopback: the kernel doesn't know remote owners.
// For an accepted `fd`: checks the owner of the peer's socket, which must not have closed.
Stranger strangerThatConnects(int fd);
// For a connected `fd`: checks the owner of the listening socket, and of the accepted one if there
// is one already.
Stranger strangerThatListens(int fd);

// Returns empty if this process may query the kernel; else the reason, which both functions above
// then return.
std::string whyOwnersAreUnknown();

}  // namespace dtf::net
