#include "common/serving/part_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/serving/connection_metrics.h"
#include "common/serving/part_service.h"

namespace dtf::serving {

namespace {

// No limit for concurrent calls: feeds are held while their step runs, and ServeLimits bounds the
// steps.
constexpr uint64_t kCallsBytesMax = uint64_t{1} << 40;

// Bytes of buffers kept for the next tensor, besides the data of sessions. A larger buffer is
// mapped and faulted anew in each step, which costs a third of the wire's speed.
size_t retainedBytesMax(const ServeLimits& limits) {
  return std::max<size_t>(net::BufferPool::kRetainedBytesMax, limits.bytes / 5 * 2);
}

std::vector<engine::SessionDevice> counted(
    std::vector<engine::SessionDevice> devices,
    const std::vector<std::unique_ptr<CountedDevice>>& memory) {
  for (size_t i = 0; i < devices.size(); ++i) devices[i].device = memory[i].get();
  return devices;
}

}  // namespace

PartServer::PartServer(PartServerOptions options, net::Loop& loop,
                       const std::vector<engine::SessionDevice>& devices)
    : options_(std::move(options)),
      self_(std::make_shared<PartServer*>(this)),
      budget_(ByteBudget::create(options_.limits.bytes, options_.self.name())),
      pool_(net::BufferPool::create(retainedBytesMax(options_.limits), budget_)),
      memory_(count(devices, budget_)),
      variables_(options_.limits.variables, budget_, options_.incarnation),
      queues_(options_.limits.queues, budget_),
      devices_(
          std::make_unique<engine::DeviceThreads>(counted(devices, *memory_), options_.make_queue)),
      registrar_(options_.make_queue("dtf-register")),
      copier_(options_.make_queue("dtf-values")),
      task_{.self = options_.self,
            .incarnation = options_.incarnation,
            .loop = loop,
            .devices = *devices_,
            .registrar = *registrar_,
            .copier = *copier_,
            .variables = variables_,
            .queues = queues_,
            .address_of = [this](TaskId task) -> std::optional<cluster::Address> {
              const auto& of = task.job == JobKind::kPs ? options_.ps : options_.workers;
              if (task.index >= of.size()) return std::nullopt;
              return of[task.index];
            },
            .limits = options_.limits,
            .budget = budget_,
            .device_memory = memory_,
            .post =
                [&loop, self = self_](uint64_t session, std::function<void(ServedSession&)> use) {
                  loop.post([self, session, use = std::move(use)] {
                    if (*self == nullptr) return;
                    const auto at = (*self)->sessions_.find(session);
                    if (at == (*self)->sessions_.end()) return;
                    use(*at->second);
                    (*self)->eraseIfOver(session);
                  });
                }},
      connections_(std::make_unique<wire::ConnectionSet>(
          loop, [this](const void* key) { onClosed(key); }, kCallsBytesMax)) {
  DTF_CHECK(options_.incarnation.value != 0);
}

PartServer::~PartServer() noexcept(false) {
  *self_ = nullptr;
  for (const auto& [id, session] : sessions_) session->close();
  registrar_.reset();
  copier_.reset();
  devices_.reset();  // no computation runs any more
  connections_.reset();
  sessions_.clear();
}

std::shared_ptr<const PartServer::CountedDevices> PartServer::count(
    const std::vector<engine::SessionDevice>& devices, const std::shared_ptr<ByteBudget>& budget) {
  auto counted = std::make_shared<CountedDevices>();
  for (const engine::SessionDevice& device : devices)
    counted->push_back(std::make_unique<CountedDevice>(*device.device, budget));
  return counted;
}

void PartServer::serve(kj::Own<net::MessageStream> stream, std::string peer) {
  if (connections_->size() >= options_.limits.connections) {
    if (const auto suppressed = limiter_.allow(0, task_.loop.clock().now()))
      log::warning("event=connection_refused peer=\"{}\" reason=\"{} others\" suppressed={}", peer,
                   connections_->size(), *suppressed);
    return;
  }
  connections_->serve(kj::mv(stream), std::move(peer),
                      [this](const wire::ConnectionRef& ref) -> capnp::Capability::Client {
                        return makeTaskGate(*this, ref);
                      });
}

ServedSession& PartServer::open(const wire::SessionToken& token,
                                const wire::ConnectionRef& client) {
  DTF_CHECK(client->connection != nullptr);
  const uint64_t session = token.number;
  for (const auto& [id, other] : sessions_)
    if (other->client() == client)
      throw Error(ErrorCode::kBadData, "this connection has a session already");
  // A connection may break before its hello is answered, and this side may notice that only after
  // the next connection's hello.
  if (const auto known = sessions_.find(session); known != sessions_.end()) {
    if (!known->second->isUnused() || !wire::haveSameSecret(known->second->token(), token))
      throw Error(ErrorCode::kBadData,
                  fmt::format("session {:x} is open on {}", session, options_.self.name()));
    sessions_.erase(known);
  }
  if (sessions_.size() >= options_.limits.sessions)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} has {} sessions, as many as it may: end one of them, or raise "
                            "sessions_max in its cluster file or in the options of its Server",
                            options_.self.name(), sessions_.size()));
  const auto at =
      sessions_.emplace(session, std::make_unique<ServedSession>(task_, token, client)).first;
  log::info("event=session_opened session={:x} peer=\"{}\"", session, client->connection->peer());
  return *at->second;
}

ServedSession* PartServer::find(uint64_t session) {
  const auto at = sessions_.find(session);
  return at == sessions_.end() || at->second->isClosed() ? nullptr : at->second.get();
}

void PartServer::onClosed(const void* key) {
  for (const auto& [id, session] : sessions_) {
    if (session->client()->connection != key) continue;
    log::info("event=session_closed session={:x} plans={} steps={}", id, session->plans(),
              session->steps());
    session->close();
    // It is erased later: the connection's own promises may be on the stack.
    task_.post(id, [](ServedSession&) {});
    return;
  }
}

void PartServer::eraseIfOver(uint64_t session) {
  const auto at = sessions_.find(session);
  if (at->second->isClosed() && at->second->isQuiet()) sessions_.erase(at);
}

std::vector<Metric> PartServer::metrics() const {
  engine::RendezvousLoad load;
  size_t plans = 0, steps = 0;
  for (const auto& [id, session] : sessions_) {
    const engine::RendezvousLoad of_session = session->load();
    load.parked += of_session.parked;
    load.owned_bytes += of_session.owned_bytes;
    load.waiting += of_session.waiting;
    plans += session->plans();
    steps += session->steps();
  }
  const engine::VariableStore::Load held = variables_.load();
  const engine::QueueStore::Load queued = queues_.load();
  const auto now = [](std::string_view name, std::string_view help, uint64_t value) {
    return gauge(name, help, static_cast<double>(value));
  };
  std::vector<Metric> metrics = connectionMetrics({{"control", wire::loadOf(*connections_)}});
  for (const Metric& metric :
       {now("dtf_sessions", "Open sessions of clients.", sessions_.size()),
        now("dtf_session_plans", "Compiled parts of graphs.", plans),
        now("dtf_session_steps", "Running steps.", steps),
        now("dtf_held_bytes", "Bytes of memory that all sessions hold.", budget_->taken()),
        now("dtf_held_bytes_max", "Bytes of memory that all sessions may hold.",
            budget_->bytesMax()),
        now("dtf_variables", "Variables of this task, shared by sessions.", held.variables),
        now("dtf_variable_bytes", "Bytes of the values of variables.", held.bytes),
        now("dtf_queues", "Queues of this task, shared by sessions.", queued.queues),
        now("dtf_queue_elements", "Elements in queues.", queued.elements),
        now("dtf_queue_bytes", "Bytes of the elements in queues.", queued.bytes),
        now("dtf_parked_tensors", "Tensors that wait for their receive operation.", load.parked),
        now("dtf_parked_bytes", "Bytes of the parked tensors.", load.owned_bytes),
        now("dtf_waiting_receives", "Receive operations that wait for their tensor.",
            load.waiting)})
    metrics.push_back(metric);
  return metrics;
}

std::string PartServer::statusJson() const {
  Json sessions = Json::array();
  for (const auto& [id, session] : sessions_) {
    const engine::RendezvousLoad load = session->load();
    sessions.push_back({{"session", fmt::format("{:x}", id)},
                        {"plans", session->plans()},
                        {"steps", session->steps()},
                        {"parked", load.parked},
                        {"parked_bytes", load.owned_bytes},
                        {"waiting", load.waiting}});
  }
  const engine::VariableStore::Load held = variables_.load();
  const engine::QueueStore::Load queued = queues_.load();
  std::vector<std::string> devices;
  for (const graph::DeviceName& device : devices_->names()) devices.push_back(device.str());
  return Json({{"schema", 1},
               {"task", options_.self.name()},
               {"serves", true},
               {"devices", devices},
               {"held_bytes", budget_->taken()},
               {"held_bytes_max", budget_->bytesMax()},
               {"variables", held.variables},
               {"variable_bytes", held.bytes},
               {"queues", queued.queues},
               {"queue_elements", queued.elements},
               {"queue_bytes", queued.bytes},
               {"metrics", metrics_address_.empty() ? Json(nullptr) : Json(metrics_address_)},
               {"sessions", sessions}})
      .dump();
}

}  // namespace dtf::serving
