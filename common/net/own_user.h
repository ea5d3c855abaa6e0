#pragma once

// Without keys: which of this host's users may talk to a task. TCP on loopback is open to them all,
// but the kernel knows of each socket whose it is (sock_diag(7)), so that nobody has to prove it.

#include <string>
#include <string_view>

namespace dtf::net {

// Said of a socket whose owner has gone: of nobody who was turned away.
inline constexpr std::string_view kClosedAlready = "it has closed the connection already";

// Why the process at the other end of `fd`, a TCP connection, may not be talked to: it runs as
// another user than this one, and not as root. Empty: it may, or it isn't on this host's loopback, of which
// the kernel knows nothing.
// `fd` accepted: whose the other socket is, which must not have closed yet.
std::string strangerThatConnects(int fd);
// `fd` connected: whose the socket is that listens there, and the one that it was connected to, if
// somebody has accepted that already.
std::string strangerThatListens(int fd);

// Empty: this process may ask the kernel. Else why not: both of the above say so then.
std::string whyOwnersAreUnknown();

// For connections that this process makes without keys, once, before it connects anywhere: only to
// what this user, or root, runs. Default: to whoever is there. Where the kernel doesn't tell that
// stays so, with a warning.
void keepToOwnUser(bool keep);
bool keepsToOwnUser();

}  // namespace dtf::net
