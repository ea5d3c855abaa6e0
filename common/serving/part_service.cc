#include "common/serving/part_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/serving/part_server.h"
#include "common/wire/model_codec.h"
#include "common/wire/session/session_token.h"
#include "common/wire/session/tensor_codec.h"

namespace dtf::serving {

namespace {

// After its hello, a client may send larger messages. A message above the task's limit is rejected
// with an error once it is received, unless it is twice as large.
void greet(PartServer& server, wire::ConnectionHandle& connection, std::string peer) {
  DTF_CHECK(connection.connection != nullptr);  // one of its calls has just come
  connection.greeted = true;
  connection.connection->setPeer(std::move(peer));
  net::Limits limits = wire::kTensorLimits;
  limits.bytes_max = std::min(limits.bytes_max, 2 * server.task().budget->bytesMax());
  connection.connection->stream().setLimits(limits);
}

// The addresses of the cluster file's tasks, also "host:auto": the client then names its mistake.
std::vector<std::pair<TaskId, std::string>> clusterOf(const ServedTask& task) {
  std::vector<std::pair<TaskId, std::string>> all;
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (TaskId each{job, 0};; ++each.index) {
      const std::optional<cluster::Address> address = task.address_of(each);
      if (!address) break;
      all.emplace_back(each, address->str());
    }
  return all;
}

// A client's session. The ServedSession belongs to the server and ends with the connection.
class Session final : public schema::GraphSession::Server {
 public:
  Session(PartServer& server, uint64_t id, wire::ConnectionRef client)
      : server_(server), id_(id), client_(std::move(client)) {}

  kj::Promise<void> registerPart(RegisterPartContext context) override {
    return counted([&] { return session().registerPart(context); });
  }

  kj::Promise<void> releasePart(ReleasePartContext context) override {
    net::bridgeErrors([&] { session().releasePart(context.getParams().getPlan()); });
    return kj::READY_NOW;
  }

  kj::Promise<void> setVariable(SetVariableContext context) override {
    return counted([&] { return session().setVariable(context); });
  }

  kj::Promise<void> reset(ResetContext context) override {
    net::bridgeErrors([&] {
      session();  // throws if it has ended
      const auto container = context.getParams().getContainer();
      const std::string name(container.begin(), container.size());
      server_.task().variables.reset(name);
      server_.task().queues.reset(name);
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
      const size_t kept = std::min<size_t>(text.size(), server_.task().limits.cause_bytes);
      const Error cause = net::toError(kj::Exception(kj::Exception::Type::FAILED, __FILE__,
                                                     __LINE__, kj::heapString(text.begin(), kept)));
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
    // Another connection may have taken over the session: PartServer::open().
    if (found == nullptr || found->client() != client_)
      throw Error(ErrorCode::kUnavailable, "the session has ended");
    found->use();
    return *found;
  }

  // Counts a call until it is answered.
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
  const wire::ConnectionRef client_;
  const std::shared_ptr<size_t> calls_ = std::make_shared<size_t>(0);  // running ones
};

// Another task's tensors for one session.
class Sink final : public schema::TensorSink::Server {
 public:
  Sink(PartServer& server, ServedSession& session, TaskId sender, Incarnation incarnation,
       wire::ConnectionRef connection)
      : server_(server),
        session_(session.token().number),
        counted_(session.addSink()),
        sender_(sender),
        incarnation_(incarnation),
        connection_(std::move(connection)) {}

  kj::Promise<void> sendTensors(SendTensorsContext context) override {
    net::bridgeErrors([&] {
      DTF_CHECK(connection_->connection != nullptr);  // one of its calls has just come
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
  const std::shared_ptr<const void> counted_;
  const TaskId sender_;
  const Incarnation incarnation_;
  const wire::ConnectionRef connection_;
};

class Gate final : public schema::TaskGate::Server {
 public:
  Gate(PartServer& server, wire::ConnectionRef connection)
      : server_(server), connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    net::bridgeErrors([&] {
      const wire::SessionToken token = wire::decodeToken(context.getParams().getToken());
      server_.open(token, connection_);
      greet(server_, *connection_, fmt::format("session {:x}", token.number));
      const ServedTask& task = server_.task();
      auto results = context.getResults();
      results.setSession(kj::heap<Session>(server_, token.number, connection_));
      wire::encodeTask(task.self, results.initTask());
      results.setIncarnation(task.incarnation.value);
      const auto& names = task.devices.names();
      auto devices = results.initDevices(static_cast<uint32_t>(names.size()));
      for (uint32_t i = 0; i < devices.size(); ++i) devices.set(i, names[i].str());
      results.setBytesMax(task.budget->bytesMax());
      const auto all = clusterOf(task);
      auto cluster = results.initCluster(static_cast<uint32_t>(all.size()));
      for (uint32_t i = 0; i < cluster.size(); ++i) {
        wire::encodeTask(all[i].first, cluster[i].initTask());
        cluster[i].setAddress(all[i].second);
      }
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> tensors(TensorsContext context) override {
    net::bridgeErrors([&] {
      const auto params = context.getParams();
      const ServedTask& task = server_.task();
      const TaskId caller = wire::decodeTask(params.getCaller());
      const TaskId callee = wire::decodeTask(params.getCallee());
      connection_->set->checkCaller(*connection_, caller);
      if (callee != task.self)
        throw Error(ErrorCode::kBadConfig,
                    fmt::format("this is {}, not {}: the addresses in the cluster files differ",
                                task.self.name(), callee.name()));
      const wire::SessionToken token = wire::decodeToken(params.getToken());
      ServedSession* const session = server_.find(token.number);
      // The error is the same for a wrong secret and for a missing session.
      if (session == nullptr || !wire::haveSameSecret(session->token(), token))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("{} has no session {:x}", task.self.name(), token.number));
      context.getResults().setSink(kj::heap<Sink>(
          server_, *session, caller, Incarnation{params.getIncarnation()}, connection_));
      greet(server_, *connection_, fmt::format("{} session {:x}", caller.name(), token.number));
      context.getResults().setIncarnation(task.incarnation.value);
      context.getResults().setBytesMax(task.budget->bytesMax());
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
  const wire::ConnectionRef connection_;
};

}  // namespace

schema::TaskGate::Client makeTaskGate(PartServer& server, wire::ConnectionRef connection) {
  return kj::heap<Gate>(server, std::move(connection));
}

}  // namespace dtf::serving
