#include "daemons/connection_set.h"

#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"

namespace dtf::daemons {

struct ConnectionSet::Served {
  ConnectionRef ref = std::make_shared<net::RpcConnection*>(nullptr);
  std::unique_ptr<net::RpcConnection> connection;
  kj::Promise<void> watched = nullptr;

  ~Served() {
    *ref = nullptr;
    watched = nullptr;
  }
};

ConnectionSet::ConnectionSet(net::AsioEventPort& port, OnClosed on_closed)
    : port_(port), on_closed_(std::move(on_closed)) {}

ConnectionSet::~ConnectionSet() = default;

void ConnectionSet::serve(net::Socket socket, std::shared_ptr<net::BufferPool> pool,
                          std::string peer, const MakeBootstrap& make_bootstrap) {
  connections_.push_back(std::make_unique<Served>());
  const auto position = std::prev(connections_.end());
  Served& served = **position;
  served.connection = std::make_unique<net::RpcConnection>(
      kj::heap<net::AsioMessageStream>(port_, std::move(socket), net::kLimitsBeforeHello,
                                       std::move(pool)),
      [&](net::RpcConnection& connection) {
        *served.ref = &connection;
        return make_bootstrap(served.ref);
      },
      net::RpcOptions{.peer = std::move(peer)});
  // The connection is destroyed from an Asio handler, never from its own promise.
  const auto close = [this, position] {
    const std::string& name = (*position)->connection->peer();
    log::debug("event=connection_closed peer=\"{}\"", name);
    on_closed_((*position)->connection.get());
    net::asio::post(port_.ioc(), [this, position] {
      net::AsioEventPort::Io io(port_);
      connections_.erase(position);
    });
  };
  served.watched = served.connection->onDisconnect()
                       .then([close] { close(); }, [close](kj::Exception&&) { close(); })
                       .eagerlyEvaluate(nullptr);
  port_.schedule();
}

}  // namespace dtf::daemons
