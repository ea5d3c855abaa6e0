#pragma once

// What psd and workerd share: the way from argv to an exit code.

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

// Parses the command line, sets up logging and keys, runs `body`, and turns what it throws into a
// log line, a notification for the launcher and the exit code of the contract. `--help` and
// `--version` end here.
int runDaemon(int argc, char** argv, JobKind binary,
              const std::function<int(const cluster::TaskOptions&, const net::Credentials&)>& body);

// The listening socket that the launcher made for this task (DTF_LISTEN_FD), if it made one.
std::optional<Fd> inheritedListener();

// Adopts `inherited`, or listens on the task's address.
// Errors: kUnavailable naming who holds the port; kBadConfig for an address that other hosts can
// reach, unless there are keys or the cluster is `insecure`.
std::unique_ptr<net::Listener> listen(net::Reactor& reactor, const cluster::TaskOptions& options,
                                      const net::Credentials& credentials,
                                      std::optional<Fd> inherited,
                                      net::Listener::OnConnection on_connection);

// Of what a task listens at without TLS: "10.0.0.5:2222", once it is bound and before anybody is
// let in. `refusal` says in words why not.
// Errors: kBadConfig for an address that other hosts can reach, unless the cluster is `insecure`.
void checkReach(const std::string& address, const cluster::TaskOptions& options,
                std::string (*refusal)(std::string_view) = cluster::refusalToListen);

// Calls `on_signal` for SIGTERM and SIGINT, on the reactor. A SIGTERM within two seconds of another
// is the same request, and not told: a scheduler sends it to every process of a job, dtf-launch
// included, which passes it on.
// Owns: the signal set.
// Borrows: `reactor`.
class SignalExit {
 public:
  SignalExit(net::Reactor& reactor, std::function<void(int number)> on_signal);

 private:
  void arm();
  bool isSameRequest(int number);
  const SystemClock clock_;
  std::optional<TimePoint> terminated_;  // the last SIGTERM that was told
  net::asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

// Logs, notifies the launcher, and returns the exit code.
int reportFailure(const Error& error);

}  // namespace dtf::daemons
