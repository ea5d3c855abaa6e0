#pragma once

// The world of the psd in fuzz_rpc.cc: a disk with one valid checkpoint and the folder of an
// attempt, time that moves by the program's calls, and, for ps/1, a ps/0 that takes part. Costly
// parts are made once for all inputs.

#include <kj/async-io.h>

#include <memory>

#include "common/base/file_system.h"
#include "common/cluster/options.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/fuzz_loop.h"
#include "tests/fuzz/memory_stream.h"
#include "tests/support/simulated_disk.h"

namespace dtf::fuzz {

inline constexpr uint32_t kWorkers = 2;
inline constexpr uint64_t kElements = 32;  // of variable "v", which lies whole on the fuzzed ps
inline constexpr char kRunDir[] = "/run";
inline constexpr char kSaved[] = "step-5";            // a checkpoint of "v", for every optimizer
inline constexpr char kAttempt[] = "step-7.tmp-1.1";  // an empty folder, where a ps may write

// The job; the world chooses its durability.
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

// `near` reads within `limits`; `far`, the server's end, as before a hello. Large messages go into
// memory of `pool` (null: one pool for all such streams).
// Borrows: `reactor` (must outlive the streams).
StreamPair socketStreams(net::Reactor& reactor, const net::Limits& limits = {},
                         std::shared_ptr<net::BufferPool> pool = nullptr);

// The loop of a psd on manual time. Its connections to other tasks end here: a ps/0, or the keeper
// of its replica, serves each.
// Threads: one.
class PeerLoop final : public FuzzLoop {
 public:
  using FuzzLoop::FuzzLoop;
  ~PeerLoop() noexcept override;

  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override;

  // The capability by which ps/0 announces its decisions to the psd.
  kj::Maybe<schema::SyncFollower::Client>& follower() { return follower_; }
  // Ends its connections; to be called before the reactor goes.
  void close();

 private:
  std::unique_ptr<wire::ConnectionSet> served_;
  kj::Maybe<schema::SyncFollower::Client> follower_;
};

}  // namespace dtf::fuzz
