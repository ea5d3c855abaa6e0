#pragma once

// A worker's control connection to one ps, on the control loop, and the options of all its links.
// The data connection is in ps_data_link.h.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/exchange/transfer_plan.h"
#include "common/net/channels/remote_memory.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/replication/barrier.h"
#include "common/wire/arena_codec.h"
#include "common/wire/healing_connection.h"
#include "common/wire/message_limits.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

using exchange::kShareFromBytes;
using exchange::kStreamFromBytes;

// The identity and the timeouts of a task, the same for all of its links.
struct LinkOptions {
  std::string job;
  TaskId self;
  Incarnation incarnation;
  cluster::Timeouts timeouts;
  std::vector<cluster::Address> workers;  // in this task's cluster file
  cluster::DurabilitySpec durability{};   // likewise
  // The tasks that host the shards. In a hello, a host is the ps of its shard; for its name in
  // messages and for its certificate, it is the task itself.
  ShardHosts hosts{};
  // See exchange::TransferAbilities. The second is more than net::kSentAsWrittenFromBytes.
  std::optional<uint64_t> share_from_bytes = kShareFromBytes;
  std::optional<uint64_t> stream_from_bytes = kStreamFromBytes;
  // With `transport: rdma`; null: TCP.
  std::shared_ptr<net::RemoteDomain> remote{};
  // Exchanges with shared arenas need no message (exchange_board.h); false in tests of the calls.
  bool exchanges_in_memory = true;
  // The link requests single rows of sparse variables if they, with their ids, are at most this
  // share of the shard's tables; otherwise it requests all rows.
  double rows_share_max = 0.5;
  // The size of an arena's blobs, the same on both sides; smaller in tests.
  uint64_t chunk_bytes = kChunkBytesMax;
};

// Returns the domain of this process if the job's file says `transport: rdma`; else null.
// Errors: as RemoteDomain::open().
std::shared_ptr<net::RemoteDomain> remoteDomainOf(const cluster::JobSpec& job);

// Returns the options of task `self`, started with `job`.
// Errors: as remoteDomainOf().
LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation);

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks);

// Returns the task that hosts a shard: "ps/1", or "worker/1".
inline TaskId hostOf(const LinkOptions& options, uint32_t shard) {
  return options.hosts.of(shard);
}

// Returns a fingerprint of the list, equal for equal lists.
uint64_t fingerprintOf(const std::vector<cluster::Address>& addresses);

// The longest reason for the end of a job: a message to all other workers has room for it.
inline constexpr size_t kReasonBytesMax = 16384;
// The error that the other tasks get when worker `rank` has ended the job, with
// ErrorTrait::kJobEnded.
Error jobEndedBy(uint32_t rank, ErrorCode code, const std::string& reason);
// The error that the peers of a process get when it leaves the job to them because of `error`, with
// ErrorTrait::kProcessLeft.
Error processLeft(const Error& error);
// The scope of a worker's error. kJob: a restarted worker would fail the same way. kWorker: it lost
// a peer or timed out, and a restarted one may succeed.
enum class FailureOf : uint8_t { kJob, kWorker };
FailureOf failureOf(const Error& error);

// `connection`: the number of earlier hellos of this process to `callee`, for the same purpose.
void encodeHello(const LinkOptions& options, TaskId callee, schema::Hello::Builder hello,
                 uint32_t connection = 0);

// "ps/1 (localhost:2222)"
std::string peerText(TaskId task, const cluster::Address& address);

// The workers that pushes on a ps wait for, as the ps reports them.
struct Awaited {
  std::string whom;        // empty: none
  bool is_return = false;  // a lost worker, which may be restarted
  bool operator==(const Awaited&) const = default;
};

// A worker's control connection to one ps, with its heartbeats. It introduces the worker to each
// new process of the ps.
// Owns: the control connection.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only (io's loop).
// Errors: as promises, with the ps named.
class PsControlLink {
 public:
  struct Events {
    std::function<void(Error)> on_lost;      // once: see HealingConnection::Steps
    std::function<void()> on_stop_wanted{};  // once: the ps has received a signal to stop
    // The connection has broken, and is being made again.
    std::function<void(const Error& why)> on_broken{};
    // A new process of the ps has received the model, and has no values. This comes before the
    // calls without a reply from the earlier process are repeated.
    std::function<void()> on_replaced{};
    // See Opening::on_waiting.
    std::function<void(const std::string& what, Duration waited)> on_waiting{};
    // The workers that the ps waits for have changed.
    std::function<void(const Awaited&)> on_awaited{};
  };
  PsControlLink(net::Loop& io, LinkOptions options, uint32_t ps_task, cluster::Address address,
                Events events);

  // Connects (the ps may start later than this worker), sends the hello, starts the heartbeats.
  kj::Promise<void> open();

  kj::Promise<void> declare(const arena::ModelDeclaration& model);
  kj::Promise<void> waitInitialised();
  kj::Promise<void> barrier(std::string_view name, Duration deadline);
  kj::Promise<void> pause();
  // Resolves even if the ps is gone without a reply: see finishedUnheard().
  kj::Promise<void> finish();
  // Returns whether finish() has ended without a reply.
  bool finishedUnheard() const { return finished_unheard_; }
  kj::Promise<void> requestStop();
  // Reports to the ps why this worker ends, or ends the job; does nothing if the link is not open.
  kj::Promise<void> fail(const Error& error, FailureOf failure_of);

  // Resolves when the ps has replied to a request made after this call, on any connection.
  kj::Promise<void> hear();

  // Sets the state that heartbeats report; if it changes, one is sent at once.
  void setEvaluating(bool evaluates);

  const cluster::Timeouts& timeouts() const { return options_.timeouts; }

  // After open(): for calls that have no method here.
  schema::PsControl::Client& control() { return *control_; }

  // From now on a closed connection is the normal end of the job.
  void expectClose() { connection_.expectClose(); }

 private:
  kj::Promise<void> sayHello(net::RpcConnection& connection);
  void meet(Incarnation incarnation);
  kj::Promise<void> introduce();
  kj::Promise<void> sendArrival(const std::string& name, replication::Arrival arrival);
  void onOpen();
  void onBroken(const Error& why);
  kj::Promise<void> beat();
  kj::Promise<void> giveUpIfSilent();
  void onFailed(const kj::Exception& exception);
  void onBeatAnswered(schema::PsControl::HeartbeatResults::Reader answer);
  kj::Promise<void> sendDeclaration();

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;  // its name in hellos
  const std::string peer_;
  Events events_;
  uint32_t hellos_said_ = 0;
  Incarnation met_;  // the newest process of the ps that has answered a hello
  // The state that a new process of the ps must receive.
  std::optional<arena::ModelDeclaration> declared_;
  std::vector<std::string> passed_;  // barriers, in their order
  bool finishing_ = false;           // the ps may go: the worker needs it no more
  bool finished_unheard_ = false;
  bool is_replaced_ = false;          // a new process has not received all of that yet
  Awaited awaited_;                   // from the reply to the last heartbeat
  bool evaluates_ = false;            // in heartbeats
  kj::Promise<void> told_ = nullptr;  // the heartbeat after evaluates_ has changed
  HealingConnection connection_;
  std::optional<schema::PsControl::Client> control_;  // of the last hello
  kj::Promise<void> heartbeats_ = nullptr;
  kj::Promise<void> ended_ = nullptr;
  std::vector<kj::Promise<void>> arrivals_;  // at barriers, repeated to a new process of the ps
};

}  // namespace dtf::wire
