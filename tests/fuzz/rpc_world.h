#pragma once

// What surrounds the psd of fuzz_rpc.cc: a disk with one valid checkpoint and the folder of an
// attempt, time that the program moves, and, for ps/1, a ps/0 that takes part. What costs much to
// make is made once for all inputs.

#include <kj/async-io.h>

#include <memory>

#include "common/base/file_system.h"
#include "common/net/reactor.h"
#include "common/wire/ps.capnp.h"
#include "daemons/connection_set.h"
#include "tests/fuzz/manual_time.h"
#include "tests/support/simulated_disk.h"

namespace dtf::fuzz {

inline constexpr uint32_t kWorkers = 2;
inline constexpr uint64_t kElements = 32;  // of variable "v", which lies whole on the fuzzed ps
inline constexpr char kRunDir[] = "/run";
inline constexpr char kSaved[] = "step-5";            // a checkpoint of "v", for every optimizer
inline constexpr char kAttempt[] = "step-7.tmp-1.1";  // an empty folder, where a ps may write

// The disk of prepareDisk(), made again only when an input has written to it.
class PreparedDisk {
 public:
  testing::SimulatedDisk& fresh();

 private:
  std::unique_ptr<testing::SimulatedDisk> disk_;
  size_t operations_ = 0;
};

// Errors: none; a disk that does not fail is expected.
void prepareDisk(FileSystem& disk);

// Both ends of a connection.
struct StreamPair {
  kj::Own<net::MessageStream> near;
  kj::Own<net::MessageStream> far;  // the server's
};
StreamPair pipeStreams();
// `near` reads within `limits`; `far`, the server's, as before a hello.
// Borrows: `reactor` (must outlive the streams).
StreamPair socketStreams(net::Reactor& reactor, const net::Limits& limits = {});

// The loop of a psd on manual time, whose connections to others end here: each is served by a ps/0.
// Borrows: `reactor` (must outlive this).
// Threads: one.
class PeerLoop final : public net::Loop {
 public:
  explicit PeerLoop(net::Reactor& reactor) : inner_(reactor) {}
  ~PeerLoop() noexcept override;

  const Clock& clock() const override { return time_.clock(); }
  kj::Timer& timer() override { return time_.timer(); }
  void post(std::function<void()> fn) override { inner_.post(std::move(fn)); }
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override;

  ManualTime& time() { return time_; }
  // What the psd gave ps/0 to announce decisions to.
  kj::Maybe<schema::SyncFollower::Client>& follower() { return follower_; }
  // Ends its connections; to be called before the reactor goes.
  void close();

 private:
  net::ReactorLoop inner_;
  ManualTime time_;
  std::unique_ptr<daemons::ConnectionSet> served_;
  kj::Maybe<schema::SyncFollower::Client> follower_;
};

}  // namespace dtf::fuzz
