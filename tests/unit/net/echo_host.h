#pragma once

// Both ends of an Echo connection over AsioMessageStream, for the tests of common/net and
// `dtf-bench rpc`.

#include <memory>
#include <string>
#include <utility>

#include "common/net/event_port.h"
#include "common/net/listener.h"
#include "common/net/socket_options.h"
#include "tests/unit/net/echo_server.h"

namespace dtf::net::testing {

// Accepts connections and serves Echo on them until the peers go.
class EchoHost {
 public:
  explicit EchoHost(AsioEventPort& port, size_t store_bytes = 1 << 20, const Limits& limits = {})
      : port_(port), limits_(limits) {
    store_.size = store_bytes;
    store_.bytes = makePattern(*pool_, store_bytes);
  }
  // See AsioMessageStream.
  void sendUnchecked() { checks_ = false; }
  void serve(AcceptedSocket accepted, std::string peer = "test") {
    auto stream = kj::heap<AsioMessageStream>(
        port_, adoptTransport(port_.ioc(), std::move(accepted)), limits_, pool_);
    if (!checks_) stream->sendUnchecked();
    auto connection = kj::heap<RpcConnection>(kj::mv(stream), makeEcho(store_),
                                              RpcOptions{.peer = std::move(peer)});
    ++open_;
    auto gone = connection->onDisconnect();
    sessions_.add(gone.attach(kj::mv(connection)).then([this] { --open_; }));
    port_.schedule();
  }
  Listener::OnConnection onConnection() {
    return [this](AcceptedSocket accepted, ConnectionKind, std::string peer) {
      serve(std::move(accepted), std::move(peer));
    };
  }
  EchoStore& store() { return store_; }
  BufferPool& pool() { return *pool_; }
  int openCount() const { return open_; }

 private:
  struct Ignore final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&&) override {}
  };
  AsioEventPort& port_;
  const Limits limits_;
  const std::shared_ptr<BufferPool> pool_ = BufferPool::create();
  EchoStore store_;
  bool checks_ = true;
  int open_ = 0;
  Ignore ignore_;
  kj::TaskSet sessions_{ignore_};
};

// A client connection over a connected socket.
struct EchoConnection {
  EchoConnection(AsioEventPort& port, Transport transport,
                 std::shared_ptr<BufferPool> pool = BufferPool::create(), bool checks = true)
      : connection(
            kj::heap<RpcConnection>(streamOn(port, std::move(transport), std::move(pool), checks),
                                    RpcOptions{.peer = "server"})),
        echo(connection->bootstrap().castAs<Echo>()) {}
  static kj::Own<MessageStream> streamOn(AsioEventPort& port, Transport transport,
                                         std::shared_ptr<BufferPool> pool, bool checks) {
    auto stream =
        kj::heap<AsioMessageStream>(port, std::move(transport), Limits{}, std::move(pool));
    if (!checks) stream->sendUnchecked();
    return stream;
  }
  MessageStream& stream() { return connection->stream(); }
  kj::Own<RpcConnection> connection;
  Echo::Client echo;
};

}  // namespace dtf::net::testing
