#pragma once

// Measures the throughput from this host to another, and the time of a round trip, over the same
// stack as tasks use, from the listener to the pooled buffer (probe.capnp).

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/cluster/address.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/rpc_connection.h"

namespace dtf::wire {

// Limits of one measurement.
inline constexpr Duration kProbeConnectWithin = std::chrono::seconds(2);
inline constexpr Duration kProbeWithin = std::chrono::seconds(8);  // as a whole
inline constexpr Duration kProbeStreams = std::chrono::milliseconds(400);
inline constexpr uint64_t kProbeBytesMax = uint64_t{1} << 30;

// The times of one measurement, after the connection is made. Value type.
struct ProbeEffort {
  Duration within = kProbeWithin;
  Duration round_trips = std::chrono::milliseconds(200);
  Duration streams = kProbeStreams;
  Duration warm_up = std::chrono::milliseconds(100);  // of `streams`: the slow start, not counted
  // Bytes of the first pieces, small enough for a slow link. A piece with a reply sooner than
  // `quick` makes the next one larger.
  uint64_t piece_bytes = uint64_t{64} << 10;
  Duration quick = std::chrono::milliseconds(10);
};
inline constexpr ProbeEffort kBriefProbe{.within = std::chrono::seconds(2),
                                         .round_trips = std::chrono::milliseconds(30),
                                         .streams = std::chrono::milliseconds(450),
                                         .warm_up = std::chrono::milliseconds(100),
                                         .piece_bytes = uint64_t{16} << 10,
                                         .quick = std::chrono::milliseconds(30)};

// The receiving end. It accepts the same peers as a task. They can make it hold at most
// kConnectionsMax connections, each for kProbeWithin and kProbeBytesMax.
// Owns: a listener and its connections.
// Borrows: `io` (must outlive this).
// Threads: made and destroyed on any thread but the loop's; the rest runs on the loop.
// Blocks: constructor, as net::Listener; destructor, for a turn of the loop.
// Errors: constructor: as net::Listener.
class ProbeServer {
 public:
  static constexpr size_t kConnectionsMax = 8;

  // Listens at a port of the kernel's choice.
  ProbeServer(net::IoThread& io, std::string identity, const std::string& address,
              const net::Credentials& credentials);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  // "10.0.0.2:41234"
  const std::string& listening() const { return listening_; }

 private:
  struct Served;
  void serve(net::AcceptedSocket socket, std::string peer);
  void end(std::list<std::unique_ptr<Served>>::iterator position);

  net::IoThread& io_;
  const std::string identity_;
  std::string listening_;
  std::unique_ptr<net::Listener> listener_;
  std::list<std::unique_ptr<Served>> served_;
  std::shared_ptr<net::BufferPool> pool_;
  // Null once this is gone: posted functions check it.
  const std::shared_ptr<ProbeServer*> self_;
};

struct ProbeTarget {
  cluster::Address address;
  std::string identity;  // of the other end
  std::string task{};    // in the certificate of the other end, if there are keys
};

struct LinkFigures {
  double bytes_per_second = 0;  // to the other end
  double round_trip_us = 0;     // the median
};

// Loop-thread only; `loop` must outlive the promise.
// Errors: as a promise: kUnavailable and kPermission as connectToPeer(), and if another program
// answers there; kDeadline after `effort.within`.
kj::Promise<LinkFigures> measureLink(net::Loop& loop, ProbeTarget target, ProbeEffort effort = {});

// A measurement with callbacks; the destructor aborts it, and then calls neither.
// Owns: the measurement.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only, callbacks included.
class LinkMeasurement {
 public:
  LinkMeasurement(net::Loop& loop, ProbeTarget target, const ProbeEffort& effort,
                  std::function<void(const LinkFigures&)> done,
                  std::function<void(const Error&)> failed);

 private:
  kj::Promise<void> under_way_;
};

}  // namespace dtf::wire
