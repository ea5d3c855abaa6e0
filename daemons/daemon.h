#pragma once

// The common main() of psd and workerd: from argv to an exit code.

#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/cluster/address.h"
#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"

namespace dtf::daemons {

// Parses the command line, sets up logging and keys, and runs `body`. Reports its exception as a
// log line, a notification for the launcher and the documented exit code. Handles `--help` and
// `--version` itself.
int runDaemon(int argc, char** argv, JobKind binary,
              const std::function<int(const cluster::TaskOptions&, const net::Credentials&)>& body);

// Returns the listening socket that the launcher made for this task (DTF_LISTEN_FD), if any.
// Errors: kUsage if DTF_LISTEN_FD isn't a listening socket.
std::optional<Fd> inheritedListener();

// Adopts `inherited`, or listens on the task's address.
// Errors: kUnavailable, with the process that holds the port; kBadConfig for an address that other
// hosts can reach, unless there are keys or the cluster is `insecure`.
std::unique_ptr<net::Listener> listen(net::Reactor& reactor, const cluster::TaskOptions& options,
                                      const net::Credentials& credentials,
                                      std::optional<Fd> inherited,
                                      net::Listener::OnConnection on_connection);

// Checks the bound address of a socket without TLS ("10.0.0.5:2222"), before any client is
// accepted. `refusal` returns the reason against an address.
// Errors: kBadConfig for an address that other hosts can reach, unless the cluster is `insecure`.
void checkReach(const std::string& address, const cluster::TaskOptions& options,
                std::string (*refusal)(std::string_view) = cluster::refusalToListen);

// Calls `on_signal` for SIGTERM and SIGINT, on the reactor. Ignores a SIGTERM within two seconds of
// another: a scheduler sends it to every process of a job, dtf-launch included, which passes it on.
// Owns: the signal set.
// Borrows: `reactor`.
class SignalExit {
 public:
  SignalExit(net::Reactor& reactor, std::function<void(int number)> on_signal);

 private:
  void arm();
  bool isSameRequest(int number);
  const SystemClock clock_;
  std::optional<TimePoint> terminated_;  // the last SIGTERM passed to on_signal_
  net::asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

// Logs, notifies the launcher, and returns the exit code.
int reportFailure(const Error& error);

}  // namespace dtf::daemons
