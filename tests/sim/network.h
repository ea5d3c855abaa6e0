#pragma once

// The simulated network: in-memory byte streams between processes. Each direction of a connection
// keeps its order and takes its own time; different connections overtake each other. Bytes may
// arrive in pieces, a connection may be cut in the middle of a message, or go silent.

#include <kj/async-io.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/net/preamble.h"
#include "tests/sim/scheduler.h"

namespace dtf::sim {

struct NetworkOptions {
  Duration latency_min = std::chrono::microseconds(50);
  Duration latency_max = std::chrono::milliseconds(2);
  double slow_share = 0;  // of the chunks: these take up to `slow_max`
  Duration slow_max = std::chrono::milliseconds(200);
  double split_share = 0;      // of the writes: sent in two parts, with time between
  double tiny_read_share = 0;  // of the reads: give no more than must be
};

// Owns: none of the streams it makes; it tracks the open connections.
// Borrows: `scheduler`, `random` (must outlive this and the streams).
// Threads: one.
class Network {
 public:
  using Stream = kj::Own<kj::AsyncIoStream>;
  using OnConnection =
      std::function<void(Stream stream, net::ConnectionKind kind, const std::string& peer)>;

  Network(Scheduler& scheduler, Random& random, const NetworkOptions& options)
      : scheduler_(scheduler), random_(random), options_(options) {}

  // `address` is "ps0:1".
  void listen(const std::string& address, ProcessRef process, OnConnection on_connection);
  void close(const std::string& address) { listeners_.erase(address); }

  // Null after a while when nothing listens there.
  kj::Promise<kj::Maybe<Stream>> connect(const ProcessRef& from, kj::Timer& timer,
                                         std::string address, net::ConnectionKind kind);

  // `process` is gone: its sent bytes arrive up to some byte, then its connections are reset.
  void killed(const ProcessRef& process);

  // Number of open connections, which are indexed in the order of their making.
  size_t connections();
  // Both ends of connection `index` see a reset, each in its own time. The bytes under way are lost
  // from some byte on.
  void cut(size_t index);
  // Nothing passes on connection `index` for `silence`; then the sent bytes arrive.
  void silence(size_t index, Duration silence);
  // Cuts all connections of `process`.
  void cutAll(const ProcessRef& process);
  std::string describe(size_t index) const;
  // Calls `event` once the message `number` of all, from 1, has arrived, and its process has done
  // what follows from it at once.
  void onMessage(uint64_t number, std::function<void()> event);
  // The newest connection that process `from` has made to `to`.
  std::optional<size_t> find(const std::string& from, const std::string& to,
                             net::ConnectionKind kind) const;

  struct Pipe;        // one direction
  struct Connection;  // both
  Duration latency();

 private:
  friend class SimStream;
  TimePoint arrivalOf(Pipe& pipe);
  static bool hasEnd(const Pipe& pipe);
  void send(Pipe& pipe, std::vector<kj::byte> bytes);
  void sendEnd(Pipe& pipe, bool reset);
  void loseTail(Pipe& pipe);
  void arrived(Pipe& pipe);

  struct Listener {
    ProcessRef process;
    OnConnection on_connection;
  };
  Scheduler& scheduler_;
  Random& random_;
  const NetworkOptions options_;
  std::map<std::string, Listener> listeners_;
  std::vector<std::weak_ptr<Connection>> connections_;
  uint64_t connections_made_ = 0;
  uint64_t arrived_ = 0;                                       // messages, or pieces of them
  std::multimap<uint64_t, std::function<void()>> on_message_;  // by number
};

}  // namespace dtf::sim
