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

// Who we are and how long we wait: the same for every link of a worker.
struct LinkOptions {
  std::string job;
  TaskId self;
  Incarnation incarnation;
  cluster::Timeouts timeouts;
  std::vector<cluster::Address> workers;  // of the cluster, as this task's file has them
  cluster::DurabilitySpec durability{};   // likewise
  // The tasks that host the shards. A host says hello and is greeted as the ps of its shard; its
  // name and its certificate are those of its task.
  ShardHosts hosts{};
  // See exchange::TransferAbilities. The second is more than net::kSentAsWrittenFromBytes.
  std::optional<uint64_t> share_from_bytes = kShareFromBytes;
  std::optional<uint64_t> stream_from_bytes = kStreamFromBytes;
  // Exchanges whose arenas are shared need no message (exchange_board.h); false in tests of those.
  bool exchanges_in_memory = true;
  // Rows of sparse variables are asked for where they, with their ids, are no more than this of a
  // shard's tables; else all come.
  double rows_share_max = 0.5;
  // Arenas travel in blobs of this size, those of the peer too; smaller in tests.
  uint64_t chunk_bytes = kChunkBytesMax;
};

// What `self`, started with `job`, says.
LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation);

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks);

// Returns the task that hosts a shard: "ps/1", or "worker/1".
inline TaskId hostOf(const LinkOptions& options, uint32_t shard) {
  return options.hosts.of(shard);
}

// Equal for equal lists.
uint64_t fingerprintOf(const std::vector<cluster::Address>& addresses);

// Of why a worker ends the job: what a message to all the others has room for.
inline constexpr size_t kReasonBytesMax = 16384;
// The error that the other tasks get when worker `rank` has ended the job, with
// ErrorTrait::kJobEnded.
Error jobEndedBy(uint32_t rank, ErrorCode code, const std::string& reason);
// The error that the peers of a process get when it leaves the job to them because of `error`, with
// ErrorTrait::kProcessLeft.
Error processLeft(const Error& error);
// Whose failure an error of a worker is: the job's when another process would meet it again, the
// worker's own when it lost a peer or waited in vain.
enum class FailureOf : uint8_t { kJob, kWorker };
FailureOf failureOf(const Error& error);

// `connection`: how many hellos this process has said to `callee` before, for the same purpose.
void encodeHello(const LinkOptions& options, TaskId callee, schema::Hello::Builder hello,
                 uint32_t connection = 0);

// "ps/1 (localhost:2222)"
std::string peerText(TaskId task, const cluster::Address& address);

// For whom pushes wait on a ps, by its own word.
struct Awaited {
  std::string whom;        // empty: for nobody
  bool is_return = false;  // a lost worker, which may be started again
  bool operator==(const Awaited&) const = default;
};

// Owns: the control connection.
// Borrows: `io`.
// Threads: loop-thread only (io's loop).
// Errors: as promises, with the ps named.
class PsControlLink {
 public:
  struct Events {
    std::function<void(Error)> on_lost;      // once: see HealingConnection::Steps
    std::function<void()> on_stop_wanted{};  // once: the ps was told to end
    // The connection has broken, and is being made again.
    std::function<void(const Error& why)> on_broken{};
    // Another process of the ps has been told the model: it holds nothing. Before it is asked again
    // what the one before has not answered.
    std::function<void()> on_replaced{};
    // See Opening::on_waiting.
    std::function<void(const std::string& what, Duration waited)> on_waiting{};
    // When the ps begins to wait for somebody, or for somebody else, or no more.
    std::function<void(const Awaited&)> on_awaited{};
  };
  PsControlLink(net::Loop& io, LinkOptions options, uint32_t ps_task, cluster::Address address,
                Events events);

  // Connects (the ps may start later than we do), says hello, starts the heartbeats.
  kj::Promise<void> open();

  kj::Promise<void> declare(const arena::ModelDeclaration& model);
  kj::Promise<void> waitInitialised();
  kj::Promise<void> barrier(std::string_view name, Duration deadline);
  kj::Promise<void> pause();
  // Also where the ps has gone without an answer.
  kj::Promise<void> finish();
  // finish() went on without an answer.
  bool finishedUnheard() const { return finished_unheard_; }
  kj::Promise<void> requestStop();
  // Tells the ps why this worker ends, or ends its job. At once when the link is not open.
  kj::Promise<void> fail(const Error& error, FailureOf failure_of);

  // Done when the ps has answered something that was asked after this, on whichever connection.
  kj::Promise<void> hear();

  // What heartbeats say from now on; the first goes at once.
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
  const TaskId ps_;  // as hellos have it
  const std::string peer_;
  Events events_;
  uint32_t hellos_said_ = 0;
  Incarnation met_;  // the newest process of the ps that has answered a hello
  // What a process of the ps that was started again has to be told.
  std::optional<arena::ModelDeclaration> declared_;
  std::vector<std::string> passed_;  // barriers, in their order
  bool finishing_ = false;           // the loss of the ps is nobody's loss any more
  bool finished_unheard_ = false;
  bool is_replaced_ = false;          // it has not been told all of that
  Awaited awaited_;                   // as the last heartbeat's answer said
  bool evaluates_ = false;            // say heartbeats
  kj::Promise<void> told_ = nullptr;  // that it does, or no more
  HealingConnection connection_;
  std::optional<schema::PsControl::Client> control_;  // of the last hello
  kj::Promise<void> heartbeats_ = nullptr;
  kj::Promise<void> ended_ = nullptr;
  std::vector<kj::Promise<void>> arrivals_;  // at barriers, repeated to a new process of the ps
};

}  // namespace dtf::wire
