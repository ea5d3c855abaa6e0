#pragma once

// The server side's connections of one loop: each is served until its peer is gone.

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "common/net/rpc_connection.h"

namespace dtf::daemons {

// A connection as its sessions see it: `*ref` is nullptr once the connection is gone. A call may be
// answered a turn of the loop after that, so whoever touches the connection later than in the
// method's own body looks here first.
using ConnectionRef = std::shared_ptr<net::RpcConnection*>;

// Owns: the connections.  Borrows: `port` (must outlive this).
// Threads: loop-thread only, made and destroyed there.  Blocks: never.
class ConnectionSet {
 public:
  using MakeBootstrap = std::function<capnp::Capability::Client(const ConnectionRef&)>;
  using OnClosed = std::function<void(const void* key)>;

  // `on_closed` is called with the key of each connection that ended by itself, before the
  // connection is destroyed.
  ConnectionSet(net::AsioEventPort& port, OnClosed on_closed);
  ~ConnectionSet();

  // Serves `socket`, whose preamble was good. `peer` is its address until a hello says more.
  void serve(net::Socket socket, std::shared_ptr<net::BufferPool> pool, std::string peer,
             const MakeBootstrap& make_bootstrap);

  size_t size() const { return connections_.size(); }

 private:
  struct Served;

  net::AsioEventPort& port_;
  OnClosed on_closed_;
  std::list<std::unique_ptr<Served>> connections_;
};

}  // namespace dtf::daemons
