#pragma once

// One session on a serving task: its parts, its steps, and tensors from and to other tasks. The
// protocol is in common/wire/parts.capnp.

#include <kj/async.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/engine/rendezvous.h"
#include "common/serving/served_part.h"
#include "common/serving/served_task.h"
#include "common/wire/connection_set.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/session/session_token.h"
#include "common/wire/session/tensor_link.h"

namespace dtf::serving {

// Owns: parts, running steps, connections to other tasks, their received tensors.
// Borrows: `task`.
// Threads: loop-thread only.
// Blocks: never.
// Errors: as in the schema, as dtf::Error, thrown or in a promise.
class ServedSession final : kj::TaskSet::ErrorHandler {
 public:
  using RegisterPart = capnp::CallContext<schema::GraphSession::RegisterPartParams,
                                          schema::GraphSession::RegisterPartResults>;
  using SetVariable = capnp::CallContext<schema::GraphSession::SetVariableParams,
                                         schema::GraphSession::SetVariableResults>;
  using RunPart =
      capnp::CallContext<schema::GraphSession::RunPartParams, schema::GraphSession::RunPartResults>;

  ServedSession(ServedTask& task, const wire::SessionToken& token, wire::ConnectionRef client);
  ~ServedSession() noexcept(false);
  ServedSession(const ServedSession&) = delete;
  ServedSession& operator=(const ServedSession&) = delete;

  kj::Promise<void> registerPart(RegisterPart context);
  void releasePart(uint64_t plan);
  kj::Promise<void> setVariable(SetVariable context);
  kj::Promise<void> runPart(RunPart context);
  kj::Promise<void> abort(uint64_t step, const Error& cause);
  engine::RendezvousLoad load() const { return rendezvous_.load(); }

  // Counts a task that may send tensors, until the result is destroyed. Errors: kUnavailable beyond
  // the limit.
  std::shared_ptr<const void> addSink();
  // Takes a step's tensors from `sender`. Returns true if the step is over: they are dropped.
  bool takeTensors(TaskId sender, Incarnation incarnation,
                   schema::TensorSink::SendTensorsParams::Reader tensors,
                   net::MessageStream& stream);
  // Sends tensors of a step to another task.
  void leave(uint64_t plan, uint64_t step, TaskId to,
             std::vector<engine::PartProgram::Send> tensors, engine::Departures::Done done);

  // The client has gone: aborts running steps and rejects further calls.
  void close();
  bool isClosed() const { return closed_; }
  // Returns whether no call of it runs.
  bool isQuiet() const { return running_.empty() && registering_.empty() && copying_.empty(); }
  // Returns whether no call has used it: its client's next hello may replace it.
  bool isUnused() const { return !used_; }
  void use() { used_ = true; }

  const wire::SessionToken& token() const { return token_; }
  size_t plans() const { return plans_.size(); }
  size_t steps() const { return running_.size(); }
  const wire::ConnectionRef& client() const { return client_; }

 private:
  struct Running;
  // Calls with messages that another thread reads: kept until it has finished.
  struct Registering {
    RegisterPart context;
    kj::Own<kj::PromiseFulfiller<void>> registered;
    bool is_released = false;
  };
  struct Copying {
    SetVariable context;
    kj::Own<kj::PromiseFulfiller<void>> copied;
  };
  using Made = std::variant<std::shared_ptr<ServedPart>, Error>;

  void taskFailed(kj::Exception&& exception) override;
  void checkOpen() const;
  void compiled(uint64_t plan, const Made& made);
  void copied(uint64_t copy, const std::optional<Error>& failed);
  void readFeeds(Running& running);
  void start(const std::shared_ptr<Running>& running, uint32_t deadline_ms);
  kj::Promise<void> ended(uint64_t step, engine::StepEnd end);
  void tell(const std::shared_ptr<Running>& running, const engine::StepEnd& end);
  void answer(const std::shared_ptr<Running>& running, uint64_t kernels);
  engine::Parcel keep(capnp::List<capnp::Data>::Reader bytes, uint64_t size,
                      net::MessageStream& stream, const std::string& what) const;
  engine::Parcel keepInMessage(engine::Bytes bytes, net::MessageStream& stream,
                               const std::string& what) const;
  wire::TensorLink& linkTo(TaskId to, Incarnation incarnation);

  ServedTask& task_;
  const wire::SessionToken token_;
  const uint64_t id_;
  const wire::ConnectionRef client_;
  bool closed_ = false;
  bool used_ = false;
  engine::Rendezvous rendezvous_;
  std::map<uint64_t, std::shared_ptr<ServedPart>> plans_;
  std::map<uint64_t, Registering> registering_;           // by plan
  std::map<uint64_t, Copying> copying_;                   // in the order of the calls
  std::map<uint64_t, std::shared_ptr<Running>> running_;  // by step
  uint64_t next_copy_ = 1;
  const std::shared_ptr<size_t> sinks_ = std::make_shared<size_t>(0);
  std::map<TaskId, std::unique_ptr<wire::TensorLink>> links_;
  kj::TaskSet ending_{*this};  // steps; last: they use the other members
};

}  // namespace dtf::serving
