#include "common/serving/task_listener.h"

#include <utility>

#include "common/base/check.h"
#include "common/net/message_stream.h"
#include "common/net/socket_options.h"
#include "common/yaml/error_at.h"

namespace dtf::serving {

std::unique_ptr<net::Listener> listen(net::Reactor& reactor, const cluster::ClusterSpec& cluster,
                                      TaskId task, const net::Credentials& credentials,
                                      std::optional<Fd> inherited,
                                      net::Listener::OnConnection on_connection) {
  DTF_CHECK(task.index < cluster.tasks(task.job).size());
  const net::ListenerOptions limits{.credentials = credentials};
  if (inherited)
    return std::make_unique<net::Listener>(reactor.port, std::move(*inherited),
                                           std::move(on_connection), limits);
  const cluster::Address& address = cluster.task(task).address;
  auto listener = std::make_unique<net::Listener>(reactor.port, address.host, address.port,
                                                  std::move(on_connection), limits);
  if (credentials.keys() == nullptr)
    // no client is accepted before: that takes the loop
    checkReach(listener->address(), cluster, task);
  return listener;
}

void serveSocket(net::Reactor& reactor, PartServer& server, net::AcceptedSocket socket,
                 std::string peer) {
  const net::AsioEventPort::Io io(reactor.port);
  server.serve(kj::heap<net::AsioMessageStream>(reactor.port,
                                                net::adoptTransport(reactor.ioc, std::move(socket)),
                                                net::kLimitsBeforeHello, server.pool()),
               std::move(peer));
}

// A host name is checked once it is resolved.
void checkReach(const std::string& address, const cluster::ClusterSpec& cluster, TaskId task,
                std::string (*refusal)(std::string_view)) {
  cluster::Address bound;
  const std::string wrong = cluster::parseAddress(address, bound);
  DTF_CHECK_MSG(wrong.empty(), address);
  if (!cluster.insecure && !cluster::isLoopback(bound.host))
    throw yaml::ErrorAt(ErrorCode::kBadConfig, cluster.task(task).mark, refusal(address));
}

}  // namespace dtf::serving
