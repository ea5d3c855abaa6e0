#pragma once

// The plan of what moves between a worker and the host of one shard: the codec and the channel of
// each direction, and when an exchange begins. planTransfer() is the only place that decides which
// of a job's settings exclude each other there, and it gives the reason in words. README.md has the
// table that follows from it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/parameter_layout.h"
#include "common/cluster/spec.h"

namespace dtf::exchange {

// Any arena: with both in shared memory, an exchange needs no message (wire/exchange_board.h).
inline constexpr uint64_t kShareFromBytes = 1;

// Smaller gradients are on their way for less time than it is worth to hand them to another thread:
// 3 ms at 10 Gbit/s.
inline constexpr uint64_t kStreamFromBytes = uint64_t{4} << 20;

// The settings of a job, for one of its workers.
struct JobTransfers {
  bool shares_steps = false;  // sync training
  bool overlap = false;       // as the file asks for it
  arena::CodecSpec codec{};
  uint32_t batches_per_step = 1;  // of this worker, from the same parameters
  bool has_tables = false;        // sparse variables, on any shard
  bool one_process = false;       // a job without ps: the worker holds the parameters
  uint32_t towers = 1;            // devices of this worker
  bool clips_by_norm = false;     // optimizer.clip_by_global_norm
  // The number of workers in the mean gradient that this one exchanges: with sums by host perhaps
  // several; 0: another worker exchanges its gradient.
  uint32_t workers_summed = 1;
  bool sums_hosts = false;  // replication.topology, for any worker of the job
};
// Fills what `replication`, with its numbers complete, has of worker `rank`.
JobTransfers transfersOf(const cluster::ReplicationSpec& replication, uint32_t rank);

// One shard.
struct ShardTransfers {
  uint64_t elements = 0;
  uint64_t encoded_bytes = 0;  // of a gradient of all its elements, by the job's codec
  bool has_tables = false;     // slices of sparse variables
};
ShardTransfers shardOf(const arena::ParameterLayout& layout, uint32_t ps_task,
                       const arena::CodecSpec& codec);

// What this task can do.
struct TransferAbilities {
  // Smallest shard that is exchanged through shared memory; nullopt: its cluster file says
  // 'shared_memory: false'.
  std::optional<uint64_t> share_from_bytes = kShareFromBytes;
  // Smallest gradient, encoded, that is sent while it is written; nullopt: its cluster file says
  // 'stream_gradients: false'.
  std::optional<uint64_t> stream_from_bytes = kStreamFromBytes;
  // As in its cluster file. A task with kRdma has opened UCX, or has not started.
  cluster::Transport transport = cluster::Transport::kTcp;
};

// The other side of the connection: its words in the hello, and what the connection has shown. The
// defaults are of a peer on another host.
struct TransferPeer {
  // Its codecs, by name; nullopt: it names none, as in version 0.1.0, and is taken to have the
  // job's.
  std::optional<std::vector<std::string>> codecs{};
  // nullopt: not met yet, taken to have this task's.
  std::optional<cluster::Transport> transport{};
  bool on_this_host = false;
  bool takes_unfinished = true;   // messages that are sent while they are written
  std::string memory_fault{};     // why this connection shares no memory; empty: none was found
  std::string gradients_fault{};  // likewise for gradients
};

// A possibility that a plan uses, or the reason why it doesn't.
struct Choice {
  bool is_used = false;
  std::string why_not{};  // empty if it is used
  bool operator==(const Choice&) const = default;
};

enum class Channel : uint8_t {
  kMessages,
  kSharedMemory,  // each side reads what the other lends
  kRemoteMemory,  // the worker's card reads and writes what the shard's host lends
};

// The form and the way of one direction.
struct Direction {
  arena::CodecKind codec = arena::CodecKind::kFloat32;
  Channel channel = Channel::kMessages;
  bool operator==(const Direction&) const = default;
};

struct TransferPlan {
  Direction parameters, gradients;

  Choice compressed;         // values are not sent as float32
  Choice shared_parameters;  // the worker reads them in the memory of the shard's host
  Choice shared_gradients;   // the shard's host reads them in the memory of the worker
  Choice remote_memory;      // both directions, by RDMA
  Choice overlap;            // an exchange begins before the one before it is answered
  Choice streaming;          // an exchange begins before its gradient is whole
  Choice rows;               // of tables, only the rows for the next batch are sent
  Choice host_sum;           // gradients are summed with those of other workers of its host

  // Why nothing can be exchanged with this peer; empty: it can.
  std::string fault;

  bool operator==(const TransferPlan&) const = default;
};

// Returns the plan of one worker and one shard. Pure. Called by both sides: `own` and `peer` are
// the worker and the shard's host, or the reverse.
TransferPlan planTransfer(const JobTransfers& job, const ShardTransfers& shard,
                          const TransferAbilities& own, const TransferPeer& peer);

// The choices of a plan with their names, for people.
struct NamedChoice {
  std::string_view name;
  const Choice& choice;
};
std::array<NamedChoice, 8> choicesOf(const TransferPlan& plan);

// The reason why a job's file can't have 'transport: rdma'; empty: it can, or has no need of it.
std::string rdmaFault(const JobTransfers& job);

// "float32, in shared memory"
std::string directionText(const Direction& direction);

}  // namespace dtf::exchange
