#pragma once

// Without keys: which of this host's users may talk to a task. TCP on loopback is open to them all,
// but the kernel knows of each socket whose it is (sock_diag(7)), so that nobody has to prove it.

#include <string>

namespace dtf::net {

// Why a connection must not be used. Value type.
struct Stranger {
  std::string why;          // for people; empty: it may be used
  bool has_closed = false;  // its other end has closed: nobody was turned away
};

// Why the process at the other end of `fd`, a TCP connection, may not be talked to: it runs as
// another user than this one, and not as root. Empty: it may, or it isn't on this host's loopback,
// of which the kernel knows nothing.
// `fd` accepted: whose the other socket is, which must not have closed yet.
Stranger strangerThatConnects(int fd);
// `fd` connected: whose the socket is that listens there, and the one that it was connected to, if
// somebody has accepted that already.
Stranger strangerThatListens(int fd);

// Empty: this process may ask the kernel. Else why not: both of the above say so then.
std::string whyOwnersAreUnknown();

}  // namespace dtf::net
