#pragma once

// The common main() of psd and workerd: from argv to an exit code.

#include <functional>
#include <optional>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/cluster/options.h"
#include "common/net/credentials.h"

namespace dtf::daemons {

// Parses the command line, sets up logging and keys, and runs `body`. Reports its exception as a
// log line, a notification for the launcher and the documented exit code. Handles `--help` and
// `--version` itself.
int runDaemon(int argc, char** argv, JobKind binary,
              const std::function<int(const cluster::TaskOptions&, const net::Credentials&)>& body);

// Returns the listening socket that the launcher made for this task (DTF_LISTEN_FD), if any.
// Errors: kUsage if DTF_LISTEN_FD isn't a listening socket.
std::optional<Fd> inheritedListener();

// Logs, notifies the launcher, and returns the exit code.
int reportFailure(const Error& error);

}  // namespace dtf::daemons
