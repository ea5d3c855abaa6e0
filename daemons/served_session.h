#pragma once

// One session on a task that serves: its parts, its steps, and what its tasks send each other. The
// protocol is in common/wire/parts.capnp.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/engine/local_tasks.h"
#include "common/engine/rendezvous.h"
#include "common/engine/variable_store.h"
#include "common/net/loop.h"
#include "common/wire/part_codec.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/tensor_link.h"
#include "daemons/connection_set.h"

namespace dtf::daemons {

// What a task gives to sessions. Beyond it: an error that says so.
struct ServeLimits {
  size_t sessions = 16;
  size_t plans = 1024;  // of a session
  size_t variables = 16384;
  size_t calls = 256;                   // of a session, under way at once
  size_t registrations = 4;             // of these
  size_t aborts_kept = 1024;            // aborts of a session that came before their step did
  uint64_t bytes = uint64_t{48} << 30;  // of all parts' tensors, each counted once
  uint64_t variable_bytes = uint64_t{16} << 30;  // of variables' values
  engine::Rendezvous::Limits rendezvous{};       // of a session
};

class ServedSession;

// What sessions have in common. Borrows all that it names.
struct ServedTask {
  TaskId self;
  Incarnation incarnation;
  net::Loop& loop;
  engine::DeviceThreads& devices;
  engine::DeviceQueue& registrar;  // a thread that compiles
  engine::VariableStore& variables;
  std::function<std::optional<cluster::Address>(TaskId)> address_of;  // nullopt: no such task
  ServeLimits limits;
  uint64_t bytes = 0;  // that are taken, of limits.bytes
  // Runs `use` on the loop, with the session if there still is one, and frees that if it is closed and
  // quiet then. Any thread.
  std::function<void(uint64_t session, std::function<void(ServedSession&)> use)> post;
};

// Owns: parts, steps under way, connections to other tasks, what they have sent.
// Borrows: `task`.
// Threads: loop-thread only.
// Blocks: never.
// Errors: as the schema says, thrown or by promise, as dtf::Error inside.
class ServedSession final : kj::TaskSet::ErrorHandler {
 public:
  using RunPart =
      capnp::CallContext<schema::GraphSession::RunPartParams, schema::GraphSession::RunPartResults>;

  ServedSession(ServedTask& task, uint64_t id, ConnectionRef client);
  ~ServedSession() noexcept(false);
  ServedSession(const ServedSession&) = delete;
  ServedSession& operator=(const ServedSession&) = delete;

  kj::Promise<void> registerPart(uint64_t plan, schema::Part::Reader part, uint64_t digest);
  void releasePart(uint64_t plan);
  void setVariable(const engine::VariableKey& key, schema::Tensor::Reader value);
  kj::Promise<void> runPart(RunPart context);
  kj::Promise<void> abort(uint64_t step, const Error& cause);
  engine::RendezvousLoad load() const { return rendezvous_.load(); }

  // True: the step is over, nobody will take them.
  bool takeTensors(TaskId sender, Incarnation incarnation,
                   schema::TensorSink::SendTensorsParams::Reader tensors,
                   net::MessageStream& stream);

  // The client has gone: what runs is aborted, nothing more begins.
  void close();
  bool isClosed() const { return closed_; }
  // Nothing of it is under way.
  bool isQuiet() const { return running_.empty() && registering_.empty(); }

  size_t plans() const { return plans_.size(); }
  size_t steps() const { return running_.size(); }
  const ConnectionRef& client() const { return client_; }

 private:
  struct Registered;
  struct Running;
  struct Registering {
    uint64_t bytes = 0;
    kj::Own<kj::PromiseFulfiller<void>> registered;
  };
  using Compiled = std::variant<std::shared_ptr<Registered>, Error>;

  void taskFailed(kj::Exception&& exception) override;
  void checkOpen() const;
  std::shared_ptr<Registered> decode(uint64_t plan, schema::Part::Reader part, uint64_t digest,
                                     std::shared_ptr<engine::TaskPart>& decoded);
  void refuseIfFull(uint64_t bytes, const std::string& what) const;
  void compiled(uint64_t plan, Compiled result);
  void readFeeds(Running& running);
  void start(const std::shared_ptr<Running>& running, uint32_t deadline_ms);
  kj::Promise<void> ended(uint64_t step, engine::StepEnd end);
  void answer(const std::shared_ptr<Running>& running, uint64_t kernels);
  void leave(uint64_t plan, uint64_t step, TaskId to,
             std::vector<engine::PartProgram::Send> tensors, engine::Departures::Done done);
  wire::TensorLink& linkTo(TaskId to, Incarnation incarnation);

  ServedTask& task_;
  const uint64_t id_;
  const ConnectionRef client_;
  bool closed_ = false;
  engine::Rendezvous rendezvous_;
  std::map<uint64_t, std::shared_ptr<Registered>> plans_;
  std::map<uint64_t, Registering> registering_;
  std::map<uint64_t, std::shared_ptr<Running>> running_;  // by step
  std::map<uint64_t, Error> aborted_;                     // steps that have not begun
  std::map<TaskId, std::unique_ptr<wire::TensorLink>> links_;
  kj::TaskSet ending_{*this};  // steps; last: they use the others
};

}  // namespace dtf::daemons
