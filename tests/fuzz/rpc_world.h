#pragma once

// What surrounds the psd of fuzz_rpc.cc: a disk with one valid checkpoint and the folder of an
// attempt, time that the program moves, and, for ps/1, a ps/0 that takes part. What costs much to
// make is made once for all inputs.

#include <kj/async-io.h>

#include <memory>

#include "common/base/file_system.h"
#include "common/cluster/options.h"
#include "common/wire/ps.capnp.h"
#include "daemons/connection_set.h"
#include "tests/fuzz/fuzz_loop.h"
#include "tests/fuzz/memory_stream.h"
#include "tests/support/simulated_disk.h"

namespace dtf::fuzz {

inline constexpr uint32_t kWorkers = 2;
inline constexpr uint64_t kElements = 32;  // of variable "v", which lies whole on the fuzzed ps
inline constexpr char kRunDir[] = "/run";
inline constexpr char kSaved[] = "step-5";            // a checkpoint of "v", for every optimizer
inline constexpr char kAttempt[] = "step-7.tmp-1.1";  // an empty folder, where a ps may write

// Of the job, whose world says with what it keeps its values.
inline constexpr char kJob[] = "fuzz";
cluster::Durability durabilityIn(uint8_t world);
cluster::DurabilitySpec durabilityOf(cluster::Durability kind);
cluster::TaskOptions taskOptions(uint32_t ps_task, cluster::Durability durability);

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

// `near` reads within `limits`; `far`, the server's, as before a hello, large messages into memory
// of `pool` (null: one of all such streams).
// Borrows: `reactor` (must outlive the streams).
StreamPair socketStreams(net::Reactor& reactor, const net::Limits& limits = {},
                         std::shared_ptr<net::BufferPool> pool = nullptr);

// The loop of a psd on manual time, whose connections to others end here: each is served by a ps/0,
// or by the keeper of its replica.
// Threads: one.
class PeerLoop final : public FuzzLoop {
 public:
  using FuzzLoop::FuzzLoop;
  ~PeerLoop() noexcept override;

  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override;

  // What the psd gave ps/0 to announce decisions to.
  kj::Maybe<schema::SyncFollower::Client>& follower() { return follower_; }
  // Ends its connections; to be called before the reactor goes.
  void close();

 private:
  std::unique_ptr<daemons::ConnectionSet> served_;
  kj::Maybe<schema::SyncFollower::Client> follower_;
};

}  // namespace dtf::fuzz
