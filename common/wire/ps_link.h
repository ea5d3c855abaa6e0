#pragma once

// A worker's two connections to one ps. PsControlLink lives on the control loop, PsDataLink on the
// data loop.

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
#include "common/ps/parameter_client.h"
#include "common/tensor/buffer.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

// What a ps takes on a control connection, once the hello is said; and a worker, whom a ps tells of
// each part of a saved shard.
inline constexpr net::Limits kControlLimits{.bytes_max = 16 << 20};
inline constexpr net::Limits kAnswerLimits{.bytes_max = 256 << 20};

// Who we are and how long we wait: the same for every link of a worker.
struct LinkOptions {
  std::string job;
  TaskId self;
  Incarnation incarnation;
  cluster::Timeouts timeouts;
  std::vector<cluster::Address> workers;  // of the cluster, as this task's file has them
};

// What `self`, started with `job`, says.
LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation);

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks);

// Equal for equal lists.
uint64_t fingerprintOf(const std::vector<cluster::Address>& addresses);

// Of why a worker ends the job: what a message to all the others has room for.
inline constexpr size_t kReasonBytesMax = 16384;
// What the others read when a worker has ended the job.
std::string jobFailedText(uint32_t rank, const std::string& reason);
// Whether `error` is that: told by another, it need not be told again.
bool isJobFailed(const Error& error);
// Whose failure an error of a worker is: the job's when another process would meet it again, the
// worker's own when it lost a peer or waited in vain.
enum class FailureOf : uint8_t { kJob, kWorker };
FailureOf failureOf(const Error& error);

void encodeHello(const LinkOptions& options, TaskId callee, schema::Hello::Builder hello);

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
    std::function<void(Error)> on_lost;      // once: connection or heartbeats fail after the hello
    std::function<void()> on_stop_wanted{};  // once: the ps was told to end
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
  kj::Promise<void> finish();
  // Tells the ps why this worker ends, or ends its job. At once when the link is not open.
  kj::Promise<void> fail(const Error& error, FailureOf failure_of);

  // After open(): for calls that have no method here.
  schema::PsControl::Client& control() { return *control_; }

  // From now on a closed connection is the normal end of the job.
  void expectClose() { closing_ = true; }

 private:
  kj::Promise<void> beat();
  void onBeatAnswered(schema::PsControl::HeartbeatResults::Reader answer);
  void watch();
  void lost(Error error);

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const cluster::Address address_;
  const std::string peer_;
  Events events_;
  std::unique_ptr<net::RpcConnection> connection_;
  std::optional<schema::PsControl::Client> control_;
  bool closing_ = false;
  Awaited awaited_;  // as the last heartbeat's answer said
  kj::Promise<void> heartbeats_ = nullptr;
  kj::Promise<void> watched_ = nullptr;
};

// Owns: the bulk connection, the gradient arena, the last response with its parameters.
// Borrows: `io`.
// Threads: loop-thread only; the memory behind parameters() and gradients() is the training
// thread's between calls.
class PsDataLink {
 public:
  // `batches_per_step`: of this worker, in sync training; the parameters stay while it computes
  // them.
  PsDataLink(net::Loop& io, LinkOptions options, uint32_t ps_task, cluster::Address address,
             uint64_t elements, uint32_t batches_per_step = 1);

  kj::Promise<void> open();
  kj::Promise<void> initialise(std::span<const float> values);
  kj::Promise<ps::StepState> pull(std::optional<uint64_t> wanted_step);
  kj::Promise<ps::StepState> exchange(uint64_t step, uint32_t batch, float loss);

  // Kept beside the parameters, until the next call.
  kj::Promise<void> pullAverages();

  const float* parameters() const { return parameters_.values.data(); }
  const float* averages() const { return averages_.values.data(); }
  float* gradients() { return gradient_->as<float>(); }

 private:
  // An arena that was received, in its response or, of several chunks, put together.
  struct Received {
    std::span<const float> values;
    kj::Own<void> held;  // the response that `values` points into
    Buffer assembled;
  };
  template <class Response>
  ps::StepState take(capnp::Response<Response>&& response, Received& received, bool more_batches);

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const cluster::Address address_;
  const std::string peer_;
  const uint64_t elements_;
  const uint32_t batches_per_step_;
  const std::shared_ptr<Buffer> gradient_;  // shared with messages being sent
  std::unique_ptr<net::RpcConnection> connection_;
  std::optional<schema::PsData::Client> data_;
  Received parameters_;
  Received averages_;
  std::shared_ptr<net::BufferPool> pool_;
};

}  // namespace dtf::wire
