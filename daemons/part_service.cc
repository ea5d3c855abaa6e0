#include "daemons/part_service.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/wire/model_codec.h"
#include "common/wire/tensor_codec.h"
#include "daemons/part_server.h"

namespace dtf::daemons {

namespace {

std::string textOf(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

// Who was let in may send more than a hello.
void greet(ConnectionHandle& connection, std::string peer) {
  DTF_CHECK(connection.connection != nullptr);
  connection.greeted = true;
  connection.connection->setPeer(std::move(peer));
  connection.connection->stream().setLimits(wire::kTensorLimits);
}

// A client's session. The session itself is the server's: it ends when its connection does.
class Session final : public schema::GraphSession::Server {
 public:
  Session(PartServer& server, uint64_t id) : server_(server), id_(id) {}

  kj::Promise<void> registerPart(RegisterPartContext context) override {
    const auto params = context.getParams();
    return counted([&] {
      return session().registerPart(params.getPlan(), params.getPart(), params.getDigest());
    });
  }

  kj::Promise<void> releasePart(ReleasePartContext context) override {
    net::bridgeErrors([&] { session().releasePart(context.getParams().getPlan()); });
    return kj::READY_NOW;
  }

  kj::Promise<void> setVariable(SetVariableContext context) override {
    const auto params = context.getParams();
    net::bridgeErrors([&] {
      session().setVariable(
          {textOf(params.getDevice()), textOf(params.getContainer()), textOf(params.getName())},
          params.getValue());
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> resetVariables(ResetVariablesContext context) override {
    net::bridgeErrors([&] {
      session();  // which has not ended
      server_.task().variables.reset(textOf(context.getParams().getContainer()));
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> runPart(RunPartContext context) override {
    return counted([&] { return session().runPart(context); });
  }

  kj::Promise<void> abort(AbortContext context) override {
    const auto params = context.getParams();
    return counted([&] {
      const auto text = params.getCause();
      const Error cause = net::toError(
          kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(text)));
      return session().abort(params.getStep(), cause);
    });
  }

  kj::Promise<void> load(LoadContext context) override {
    net::bridgeErrors([&] {
      const engine::RendezvousLoad load = session().load();
      auto results = context.getResults();
      results.setSteps(load.steps);
      results.setParked(load.parked);
      results.setOwnedBytes(load.owned_bytes);
      results.setWaiting(load.waiting);
    });
    return kj::READY_NOW;
  }

 private:
  ServedSession& session() {
    ServedSession* const found = server_.find(id_);
    if (found == nullptr) throw Error(ErrorCode::kUnavailable, "the session has ended");
    return *found;
  }

  // A call that is answered later.
  template <class Start>
  kj::Promise<void> counted(const Start& start) {
    return net::bridgeErrors([&]() -> kj::Promise<void> {
      if (*calls_ >= server_.task().limits.calls)
        throw Error(ErrorCode::kBadData,
                    fmt::format("more than {} calls at once in one session", *calls_));
      kj::Promise<void> answered = start();
      ++*calls_;
      return answered.attach(kj::defer([calls = calls_] { --*calls; }));
    });
  }

  PartServer& server_;
  const uint64_t id_;
  const std::shared_ptr<size_t> calls_ = std::make_shared<size_t>(0);  // under way
};

// Another task's tensors for one session.
class Sink final : public schema::TensorSink::Server {
 public:
  Sink(PartServer& server, uint64_t session, TaskId sender, Incarnation incarnation,
       ConnectionRef connection)
      : server_(server),
        session_(session),
        sender_(sender),
        incarnation_(incarnation),
        connection_(std::move(connection)) {}

  kj::Promise<void> sendTensors(SendTensorsContext context) override {
    net::bridgeErrors([&] {
      DTF_CHECK(connection_->connection != nullptr);  // a call of it has just come
      ServedSession* const session = server_.find(session_);
      if (session == nullptr) throw Error(ErrorCode::kUnavailable, "the session has ended");
      context.getResults().setOver(session->takeTensors(sender_, incarnation_, context.getParams(),
                                                        connection_->connection->stream()));
    });
    return kj::READY_NOW;
  }

 private:
  PartServer& server_;
  const uint64_t session_;
  const TaskId sender_;
  const Incarnation incarnation_;
  const ConnectionRef connection_;
};

class Gate final : public schema::TaskGate::Server {
 public:
  Gate(PartServer& server, ConnectionRef connection)
      : server_(server), connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    net::bridgeErrors([&] {
      const uint64_t id = context.getParams().getSession();
      server_.open(id, connection_);
      greet(*connection_, fmt::format("session {:x}", id));
      const ServedTask& task = server_.task();
      auto results = context.getResults();
      results.setSession(kj::heap<Session>(server_, id));
      wire::encodeTask(task.self, results.initTask());
      results.setIncarnation(task.incarnation.value);
      const auto& names = task.devices.names();
      auto devices = results.initDevices(static_cast<uint32_t>(names.size()));
      for (uint32_t i = 0; i < devices.size(); ++i) devices.set(i, names[i].str());
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> tensors(TensorsContext context) override {
    net::bridgeErrors([&] {
      const auto params = context.getParams();
      const ServedTask& task = server_.task();
      const TaskId caller = wire::decodeTask(params.getCaller());
      const TaskId callee = wire::decodeTask(params.getCallee());
      if (callee != task.self)
        throw Error(ErrorCode::kBadConfig,
                    fmt::format("this is {}, not {}: the addresses in the cluster files differ",
                                task.self.name(), callee.name()));
      if (server_.find(params.getSession()) == nullptr)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("{} has no session {:x}", task.self.name(), params.getSession()));
      greet(*connection_, fmt::format("{} session {:x}", caller.name(), params.getSession()));
      context.getResults().setSink(kj::heap<Sink>(
          server_, params.getSession(), caller, Incarnation{params.getIncarnation()}, connection_));
      context.getResults().setIncarnation(task.incarnation.value);
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> status(StatusContext context) override {
    connection_->visitor = true;
    context.getResults().setJson(server_.statusJson());
    return kj::READY_NOW;
  }

 private:
  PartServer& server_;
  const ConnectionRef connection_;
};

}  // namespace

schema::TaskGate::Client makeTaskGate(PartServer& server, ConnectionRef connection) {
  return kj::heap<Gate>(server, std::move(connection));
}

}  // namespace dtf::daemons
