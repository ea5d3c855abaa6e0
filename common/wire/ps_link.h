#pragma once

// A worker's two connections to one ps. PsControlLink lives on the control loop, PsDataLink on the
// data loop.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/net/send_gate.h"
#include "common/ps/barrier.h"
#include "common/ps/gradient_buffer.h"
#include "common/ps/narrow_gradient.h"
#include "common/ps/parameter_client.h"
#include "common/ps/row_set.h"
#include "common/tensor/buffer.h"
#include "common/wire/arena_codec.h"
#include "common/wire/healing_connection.h"
#include "common/wire/parameter_reader.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/ps_memory.h"

namespace dtf::wire {

// What a ps takes on a control connection, once the hello is said; and a worker, whom a ps tells of
// each part of a saved shard.
inline constexpr net::Limits kControlLimits{.bytes_max = 16 << 20};
inline constexpr net::Limits kAnswerLimits{.bytes_max = 256 << 20};

// Arenas of less travel: they fit into the message that would name them, or nearly so.
inline constexpr uint64_t kShareFromBytes = uint64_t{4} << 10;

// Smaller gradients are on their way for less time than it is worth to hand them to another thread:
// 3 ms at 10 Gbit/s.
inline constexpr uint64_t kStreamFromBytes = uint64_t{4} << 20;

// Who we are and how long we wait: the same for every link of a worker.
struct LinkOptions {
  std::string job;
  TaskId self;
  Incarnation incarnation;
  cluster::Timeouts timeouts;
  std::vector<cluster::Address> workers;  // of the cluster, as this task's file has them
  cluster::DurabilitySpec durability{};   // likewise
  // Of a shard of so many bytes the arenas are read in the ps's memory, and by the ps in ours,
  // where both are on one host; nullopt: never.
  std::optional<uint64_t> share_from_bytes = kShareFromBytes;
  // A gradient arena of so many bytes, more than net::kSentAsWrittenFromBytes, leaves while it is
  // written, where it travels; nullopt: never.
  std::optional<uint64_t> stream_from_bytes = kStreamFromBytes;
  // Rows of sparse variables are asked for where they, with their ids, are no more than this of a
  // shard's tables; else all come.
  double rows_share_max = 0.5;
  // Arenas travel in blobs of this size, those of the peer too; smaller in tests.
  uint64_t chunk_bytes = kChunkBytesMax;
};

// What `self`, started with `job`, says.
LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation);

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks);

// Equal for equal lists.
uint64_t fingerprintOf(const std::vector<cluster::Address>& addresses);

// Of why a worker ends the job: what a message to all the others has room for.
inline constexpr size_t kReasonBytesMax = 16384;
// The error that the other tasks get when worker `rank` has ended the job, with
// ErrorTrait::kJobEnded.
Error jobEndedBy(uint32_t rank, ErrorCode code, const std::string& reason);
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

  kj::Promise<void> declare(const ps::ModelDeclaration& model);
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
  kj::Promise<void> sendArrival(const std::string& name, ps::Arrival arrival);
  void onOpen();
  void onBroken(const Error& why);
  kj::Promise<void> beat();
  kj::Promise<void> giveUpIfSilent();
  void onFailed(const kj::Exception& exception);
  void onBeatAnswered(schema::PsControl::HeartbeatResults::Reader answer);
  void watch();
  kj::Promise<void> sendDeclaration();

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const std::string peer_;
  Events events_;
  uint32_t hellos_said_ = 0;
  Incarnation met_;  // the newest process of the ps that has answered a hello
  // What a process of the ps that was started again has to be told.
  std::optional<ps::ModelDeclaration> declared_;
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
  kj::Promise<void> watched_ = nullptr;
};

// What moves between a worker and one shard.
struct ShardTraffic {
  uint64_t elements = 0;
  // Of this worker, in sync training; the parameters stay while it computes them.
  uint32_t batches_per_step = 1;
  std::vector<ps::SparseSlice> sparse{};  // of the shard
  // There are two of each arena, for an exchange that goes on while the next gradient is computed.
  bool overlaps = false;
  // Parameters and gradients are bfloat16 on the way, but for these elements
  // (ps/narrow_gradient.h), and share no memory.
  bool narrows = false;
  std::vector<ps::ElementRange> exact{};

  // Of a gradient without rows.
  uint64_t gradientBytes() const {
    return narrows ? ps::NarrowLayout(elements, exact).bytes() : elements * sizeof(float);
  }
};
// Of `rank` and the shard of `ps_task`.
ShardTraffic trafficOf(const ps::ModelDeclaration& model, uint32_t rank, uint32_t ps_task);

// Owns: the bulk connection, the gradient arena, the last response with its parameters; two of what
// is read and written during an exchange. Borrows: `io`.
// Threads: loop-thread only; the memory behind parameters() and gradients() is the training
// thread's between calls.
class PsDataLink {
 public:
  // `before_reopening`: see HealingConnection::Steps.
  PsDataLink(net::Loop& io, LinkOptions options, uint32_t ps_task, cluster::Address address,
             ShardTraffic traffic, std::function<kj::Promise<void>()> before_reopening = nullptr);

  kj::Promise<void> open();
  kj::Promise<void> initialise(std::span<const float> values, uint64_t epoch);
  // `epoch`: see PsData.pull in ps.capnp.
  kj::Promise<ps::StepState> pull(const ps::Wanted& wanted, uint64_t epoch = 0);
  // What is said of a gradient.
  struct Exchange {
    uint64_t step = 0;
    uint32_t batch = 0;
    float loss = 0;
    uint64_t epoch = 0;     // of the parameters that it was computed from
    uint64_t progress = 0;  // bounded: of the worker, as ps/0 has said it last
  };
  // `gate`: of a gradient that is still being written; null: it is whole.
  kj::Promise<ps::StepState> exchange(Exchange said,
                                      std::shared_ptr<const net::SendGate> gate = nullptr);
  // The gate of the exchange under way has been opened further.
  void sendMore();

  // What the next pull or exchange brings: see ps::ParameterClient. Between calls.
  void wantRows(const ps::RowSet& rows);
  // Ahead of a pull or an exchange, and those that repeat it: what is wanted was said since the
  // last one, or it is all.
  void beginCall();
  // Whether parameters() are all of them, as the ps has them.
  bool hasWhole() const { return parameters_[received_].is_whole; }

  // Kept beside the parameters, until the next call: the moving averages or, `current`, the
  // parameters.
  kj::Promise<void> pullAside(bool current);

  // Since when the connection is broken; nullopt while it isn't.
  std::optional<TimePoint> brokenSince() const { return connection_.brokenSince(); }
  // The ps is known to be away: as when the connection breaks.
  void giveUp(const Error& why) { connection_.giveUp(why); }

  const float* parameters() const { return parameters_[received_].values.data(); }
  const float* aside() const { return aside_.values.data(); }  // what pullAside() brought
  // Whether it reads parameters in the memory of the ps, and how many arenas it has mapped for
  // that.
  bool TEST_sharesMemory() const { return memory_ != nullptr; }
  size_t TEST_arenasMapped() const { return memory_ ? memory_->TEST_mappedCount() : 0; }

  // After open().
  float* gradients() { return gradients_[written_].values(); }
  // Between calls: see ps::ParameterClient.
  void setRows(std::span<const uint32_t> row_counts) { gradients_[written_].setRows(row_counts); }
  // Where it overlaps, between calls: the gradient that was written is what the next exchange
  // pushes, and what it brings goes beside the parameters that are here.
  void turn();
  // Between calls: whether a gradient would leave while it is being written.
  bool streams() { return connection_.isOpen() && sendsAsWritten(); }
  // Ahead of an exchange with a gate, which brings its parameters beside those that are here. The
  // gate of that gradient, which gradientWritten() opens: see DataCalls.
  std::shared_ptr<net::SendGate> startPush();
  void gradientWritten(net::SendGate& gate, uint64_t elements);
  // The parameters that such an exchange has left where they were are read no more.
  void releaseEarlier() { parameters_[1 - received_].release(); }

 private:
  // An arena that was received: in its response; where the ps has it; or put together or widened in
  // `assembled`, which keeps the rows that don't come.
  struct Received {
    std::span<const float> values;
    kj::Own<void> held;  // the response that `values` points into
    Buffer assembled;
    std::shared_ptr<const MappedMemory> mapped;  // or this
    uint64_t key = 0;                            // of that
    bool is_whole = false;                       // as the ps has them, and all
    void release();
  };
  kj::Promise<void> sayHello(net::RpcConnection& connection);
  kj::Promise<void> shareMemory(net::RpcConnection& connection);
  void noteNotShared(const Error& error);
  void takeShared(Received& received, uint64_t key);
  bool sendsAsWritten();
  bool wantsRows() const;
  kj::Promise<void> whenWritten(const net::SendGate& gate);
  kj::Promise<ps::StepState> push(const Exchange& said,
                                  const std::shared_ptr<const net::SendGate>& gate);
  kj::Promise<void> giveGradients(const std::string& door, const net::DoorSecret& secret);
  uint64_t inUse() const;
  template <class Response>
  ps::StepState take(capnp::Response<Response>&& response, Received& received, bool more_batches);

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const std::string peer_;
  const ShardTraffic traffic_;
  const uint64_t gradient_bytes_;
  std::vector<ps::GradientBuffer>
      gradients_;                    // shared with messages being sent; two where it overlaps
  size_t written_ = 0, pushed_ = 0;  // of them
  std::optional<ps::NarrowGradient>
      narrow_;  // what is sent of the one that is pushed, where that is bfloat16
  uint32_t hellos_said_ = 0;
  HealingConnection connection_;
  std::optional<schema::PsData::Client> data_;  // of the last hello
  std::array<Received, 2> parameters_;  // may be of a connection before; the second where it
                                        // overlaps, or a gradient is streamed
  size_t received_ = 0;                 // of them: the newest
  std::unique_ptr<PsMemory> memory_;    // of the last hello; null: arenas travel
  bool gives_gradients_ = false;        // likewise: the ps reads gradients_ where they are
  bool gradients_may_move_ = true;      // nobody has asked where they are
  bool shares_;                         // false: that has failed, or isn't wanted: arenas travel
  bool said_shared_ = false, said_not_shared_ = false, said_rows_ = false;  // in the log
  Received aside_;
  ps::RowSet wanted_;
  bool is_wanted_anew_ = false;  // since the last call
  ParameterReader reader_;
  std::shared_ptr<const net::SendGate> gate_;        // of the exchange under way, or the last one
  kj::Own<kj::PromiseFulfiller<void>> gate_opened_;  // of who waits for it to be open; may be null
};

}  // namespace dtf::wire
