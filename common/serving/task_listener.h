#pragma once

// The listening socket of a task.

#include <memory>
#include <optional>
#include <string>

#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/cluster/address.h"
#include "common/cluster/spec.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/serving/part_server.h"

namespace dtf::serving {

// Adopts `inherited`, or listens on the task's address; port 0 lets the kernel choose.
// Errors: kUnavailable, with the process that holds the port; kBadConfig for an address that other
// hosts can reach, unless there are keys or the cluster is `insecure`.
std::unique_ptr<net::Listener> listen(net::Reactor& reactor, const cluster::ClusterSpec& cluster,
                                      TaskId task, const net::Credentials& credentials,
                                      std::optional<Fd> inherited,
                                      net::Listener::OnConnection on_connection);

// Serves a connection that listen() has accepted. Loop-thread only.
void serveSocket(net::Reactor& reactor, PartServer& server, net::AcceptedSocket socket,
                 std::string peer);

// Checks the bound address of a socket without TLS ("10.0.0.5:2222"), before any client is
// accepted. `refusal` returns the reason against an address.
// Errors: kBadConfig for an address that other hosts can reach, unless the cluster is `insecure`.
void checkReach(const std::string& address, const cluster::ClusterSpec& cluster, TaskId task,
                std::string (*refusal)(std::string_view) = cluster::refusalToListen);

}  // namespace dtf::serving
