#include "common/host/ps_service.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/net/error_bridge.h"
#include "common/replication/phase_json.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::host {

namespace {

std::string text(capnp::Text::Reader reader) {
  return {reader.begin(), reader.size()};
}

// Makes a peer's text fit for a quoted field of a log line.
std::string quotable(std::string_view words) {
  std::string text = printable(words);
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

// Converts the reply function of ShardHost::ask() to the shard's callback.
replication::WaitCallback waitReply(ShardHost::Reply<bool> reply) {
  return [reply = std::move(reply)](const replication::WaitAnswer& answer) {
    if (const Error* error = std::get_if<Error>(&answer)) return reply(*error);
    reply(true);
  };
}

// One worker's control session. Its requests to the data loop contain copies of all they need,
// because the session may end before they run.
// Threads: control loop only.
class ControlSession final : public schema::PsControl::Server {
 public:
  ControlSession(ShardHost& host, WorkerSessions& sessions, const ServiceOptions& options,
                 uint32_t rank, Incarnation incarnation)
      : host_(host),
        sessions_(sessions),
        options_(options),
        rank_(rank),
        incarnation_(incarnation) {}

  kj::Promise<void> declare(DeclareContext context) override {
    auto model = net::bridgeErrors([&] {
      return std::make_shared<arena::ModelDeclaration>(
          wire::decodeModel(context.getParams().getModel()));
    });
    return host_
        .askNow<bool>(
            [&host = host_, rank = rank_, incarnation = incarnation_, model](shard::Shard& shard) {
              shard.workers().declare(rank, incarnation, *model);
              host.noteDeclared();
              return true;
            })
        .then([context](bool) mutable { context.getResults().setWeighsEpochs(true); });
  }

  kj::Promise<void> waitInitialised(WaitInitialisedContext) override {
    return host_
        .ask<bool>([rank = rank_, incarnation = incarnation_,
                    timeout = fromSeconds(options_.timeouts.start_seconds)](
                       shard::Shard& shard, ShardHost::Reply<bool> reply) {
          shard.waitInitialised(rank, incarnation, timeout, waitReply(std::move(reply)));
        })
        .ignoreResult();
  }

  // The data loop answers, so the reply shows that parameters are served, too.
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    return host_
        .askNow<wire::Awaited>(
            [rank = rank_, incarnation = incarnation_,
             evaluates = context.getParams().getEvaluates()](shard::Shard& shard) {
              shard.workers().heartbeat(rank, incarnation, evaluates);
              const shard::AwaitedEvent awaited = shard.awaited();
              return wire::Awaited{awaited.text, awaited.is_return};
            })
        .then([this, context](const wire::Awaited& awaited) mutable {
          auto results = context.getResults();
          results.setStopWanted(options_.stop_wanted);
          results.setAwaitsReturn(awaited.is_return);
          if (!awaited.whom.empty()) results.setAwaited(awaited.whom);
        });
  }

  kj::Promise<void> barrier(BarrierContext context) override {
    const std::string name = text(context.getParams().getName());
    const replication::Arrival arrival = context.getParams().getPassedBefore()
                                             ? replication::Arrival::kPassedBefore
                                             : replication::Arrival::kFirst;
    const Duration timeout = replication::barrierTimeout(name, options_.timeouts);
    return host_
        .ask<bool>([rank = rank_, incarnation = incarnation_, name, arrival, timeout](
                       shard::Shard& shard, ShardHost::Reply<bool> reply) {
          shard.workers().barrier(rank, incarnation, name, arrival, timeout,
                                  waitReply(std::move(reply)));
        })
        .ignoreResult();
  }

  kj::Promise<void> finish(FinishContext) override {
    return host_
        .askNow<bool>([rank = rank_, incarnation = incarnation_](shard::Shard& shard) {
          shard.workers().finish(rank, incarnation);
          return true;
        })
        .ignoreResult();
  }

  kj::Promise<void> supervise(SuperviseContext context) override {
    if (rank_ != kChief.index)
      net::throwAsKj(
          Error(ErrorCode::kPermission,
                fmt::format("{} tried to control the checkpoints of {}; only {} may",
                            replication::workerName(rank_), options_.name(), kChief.name())));
    using Snapshots = std::vector<checkpoint::CutName>;
    return host_
        .onDisk<Snapshots>([options = options_.checkpoint] { return listSnapshots(options); })
        .then([this](Snapshots snapshots) {
          return host_.askNow<checkpoint::PsState>(
              [&host = host_, snapshots = std::move(snapshots)](shard::Shard&) {
                checkpoint::PsState state = host.state();
                state.snapshots = snapshots;
                return state;
              });
        })
        .then([this, context](const checkpoint::PsState& state) mutable {
          wire::encodeHeld(state, context.getResults().initHeld());
          context.getResults().setCheckpoint(
              makeCheckpoint(host_, options_.checkpoint, incarnation_));
        });
  }

  kj::Promise<void> requestStop(RequestStopContext) override {
    return host_
        .askNow<bool>([rank = rank_, incarnation = incarnation_](shard::Shard& shard) {
          shard.workers().requestStop(rank, incarnation);
          return true;
        })
        .ignoreResult();
  }

  kj::Promise<void> fail(FailContext context) override {
    const auto params = context.getParams();
    const std::string reason = text(params.getReason()).substr(0, wire::kReasonBytesMax);
    if (params.getLeaves()) return leave(reason.empty() ? "it gave no reason" : quotable(reason));
    const Error error = wire::jobEndedBy(
        rank_, params.getBadConfig() ? ErrorCode::kBadConfig : ErrorCode::kUnavailable,
        quotable(reason));
    return host_
        .askNow<bool>([rank = rank_, incarnation = incarnation_](shard::Shard& shard) {
          shard.workers().checkMayEndJob(rank, incarnation);
          return true;
        })
        .then([&sessions = sessions_, error](bool) { sessions.jobFailed(error); });
  }

  kj::Promise<void> pause(PauseContext) override {
    if (rank_ != kChief.index)
      net::throwAsKj(Error(ErrorCode::kPermission,
                           fmt::format("{} tried to pause the job; only {} may",
                                       replication::workerName(rank_), kChief.name())));
    sessions_.paused();
    return kj::READY_NOW;
  }

  kj::Promise<void> awaitEnd(AwaitEndContext context) override {
    context.allowCancellation();  // otherwise the session outlives its broken connection
    return sessions_.failed();
  }

 private:
  kj::Promise<void> leave(const std::string& reason) {
    return host_
        .askNow<bool>([rank = rank_, incarnation = incarnation_, reason](shard::Shard& shard) {
          shard.workers().leave(rank, incarnation, reason);
          return true;
        })
        .then([&sessions = sessions_, rank = rank_, incarnation = incarnation_, reason](bool) {
          sessions.left(rank, incarnation, reason);
        });
  }

  ShardHost& host_;
  WorkerSessions& sessions_;
  const ServiceOptions& options_;
  const uint32_t rank_;
  const Incarnation incarnation_;
};

class Gate final : public schema::PsGate::Server {
 public:
  Gate(ShardHost& host, WorkerSessions& sessions, const ServiceOptions& options, Follow follow,
       wire::ConnectionRef connection)
      : host_(host),
        sessions_(sessions),
        options_(options),
        follow_(std::move(follow)),
        connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    const auto hello = context.getParams().getHello();
    const TaskId worker = wire::decodeTask(hello.getCaller());
    net::bridgeErrors([&] {
      checkHello(options_, hello);
      connection_->set->checkCaller(*connection_, options_.taskOf(worker));
    });
    const Incarnation incarnation{hello.getIncarnation()};
    if (worker.job != JobKind::kWorker)
      net::throwAsKj(Error(ErrorCode::kBadConfig, worker.name() + " is no worker"));
    return host_
        .askNow<bool>([rank = worker.index, incarnation](shard::Shard& shard) {
          return shard.workers().join(rank, incarnation);
        })
        .then([this, context, worker, incarnation](bool) mutable {
          if (connection_->connection == nullptr) return;
          connection_->connection->setPeer(worker.name());
          connection_->connection->stream().setLimits(wire::kControlLimits);
          sessions_.opened(connection_->connection, worker, incarnation);
          connection_->set->greet(
              *connection_, {worker, incarnation, context.getParams().getHello().getConnection()});
          context.getResults().setIncarnation(options_.incarnation.value);
          context.getResults().setControl(
              kj::heap<ControlSession>(host_, sessions_, options_, worker.index, incarnation));
        });
  }

  kj::Promise<void> peer(PeerContext context) override {
    net::bridgeErrors([&] {
      const auto params = context.getParams();
      checkHello(options_, params.getHello());
      const TaskId caller = wire::decodeTask(params.getHello().getCaller());
      connection_->set->checkCaller(*connection_, options_.taskOf(caller));
      const Incarnation incarnation{params.getHello().getIncarnation()};
      context.getResults().setLeader(follow_(caller, incarnation, params.getFollower()));
      context.getResults().setIncarnation(options_.incarnation.value);
      connection_->set->greet(*connection_,
                              {caller, incarnation, params.getHello().getConnection()});
      connection_->connection->setPeer(options_.taskOf(caller).name());
      connection_->connection->stream().setLimits(wire::kControlLimits);
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> status(StatusContext context) override {
    connection_->visitor = true;
    const auto ask = [](shard::Shard& shard) {
      shard::ShardStatus status = shard.status();
      // While others train, a lost worker is missing only if they wait for it.
      const std::string awaited = shard.awaited().text;
      if (!awaited.empty() || status.trains) status.missing = awaited;
      return status;
    };
    return host_.askNow<shard::ShardStatus>(ask).then(
        [this, context](shard::ShardStatus status) mutable {
          context.getResults().setJson(statusJson(options_, status));
        });
  }

 private:
  ShardHost& host_;
  WorkerSessions& sessions_;
  const ServiceOptions& options_;
  const Follow follow_;
  const wire::ConnectionRef connection_;
};

std::string workersText(const ServiceOptions& options) {
  constexpr size_t kNamedMax = 8;
  std::string list;
  for (size_t i = 0; i < std::min(options.worker_addresses.size(), kNamedMax); ++i)
    list += (i == 0 ? "" : ", ") + options.worker_addresses[i].str();
  return options.worker_addresses.size() > kNamedMax ? list + ", ..." : list;
}

void checkWorkers(const ServiceOptions& options, schema::Hello::Reader hello) {
  const TaskId caller = wire::decodeTask(hello.getCaller());
  if (caller.job != JobKind::kWorker) return;
  DTF_CHECK(caller.index < options.worker_addresses.size());
  const std::string ours = options.name();
  if (!hello.hasAddress())
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} sent no address from its cluster file, so {} can't compare it; "
                            "start all tasks with the same version of dtf",
                            caller.name(), ours));
  const std::string there = text(hello.getAddress());
  const std::string here = options.worker_addresses[caller.index].str();
  if (there != here)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{}'s cluster file has {} at {}, but {}'s has it at {}: two clusters "
                            "share an address, or the files differ",
                            caller.name(), caller.name(), there, ours, here));
  if (hello.getWorkers() != wire::fingerprintOf(options.worker_addresses))
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{}'s cluster file has other workers than {}'s: {} here; start all "
                            "tasks with the same cluster file",
                            caller.name(), ours, workersText(options)));
}

// Only the chief triggers snapshots, and a replica needs two ps. A task with another durability
// would wait for messages that never come.
void checkDurability(const ServiceOptions& options, schema::Hello::Reader hello) {
  const std::string there = hello.getDurability().size() > 0 ? text(hello.getDurability())
                                                             : cluster::DurabilitySpec().str();
  const std::string here = options.durability.str();
  if (there == here) return;
  throw Error(ErrorCode::kBadConfig,
              fmt::format("{} has `durability: {}`, but {} has `durability: {}`: start all tasks "
                          "with the same cluster file, or the same --set",
                          options.taskOf(wire::decodeTask(hello.getCaller())).name(), there,
                          options.name(), here));
}

}  // namespace

void checkHello(const ServiceOptions& options, schema::Hello::Reader hello) {
  const TaskId caller = wire::decodeTask(hello.getCaller());
  const TaskId callee = wire::decodeTask(hello.getCallee());
  const std::string job = text(hello.getJob());
  if (job != options.job)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} runs job '{}', but {} here serves job '{}': two jobs share an "
                            "address, or the files differ",
                            options.taskOf(caller).name(), job, options.name(), options.job));
  if (callee != options.self)
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format(
            "{} meant to reach the host of shard {}, but {} hosts shard {}: the tasks' host "
            "lists are not in the same order, or replication.leader differs",
            options.taskOf(caller).name(), callee.index, options.name(), options.self.index));
  const uint32_t tasks = caller.job == JobKind::kPs ? options.ps_tasks : options.workers;
  if (caller.index >= tasks)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} is unknown to {}: the cluster here has {} {} tasks",
                            options.taskOf(caller).name(), options.name(), tasks,
                            jobName(options.taskOf(caller).job)));
  if (hello.getIncarnation() == 0)
    throw Error(ErrorCode::kBadConfig, options.taskOf(caller).name() + " sent no incarnation");
  checkWorkers(options, hello);
  checkDurability(options, hello);
}

namespace {

Json addressOrNull(const std::string& address) {
  return address.empty() ? Json(nullptr) : Json(address);
}

}  // namespace

std::string statusJson(const ServiceOptions& options, const shard::ShardStatus& status) {
  Json members = Json::object();
  for (size_t i = 0; i < status.members.size(); ++i)
    members[TaskId{JobKind::kWorker, static_cast<uint32_t>(i)}.name()] =
        std::string(replication::memberStateName(status.members[i].state));
  const replication::CoordinatorStatus& steps = status.coordinator;
  return Json({{"schema", 1},
               {"job", options.job},
               {"task", options.name()},
               {"declared", status.declared},
               {"initialised", status.initialised},
               {"workers", members},
               {"awaited", status.missing},
               {"global_step", steps.global_step},
               {"gradients_applied", steps.gradients_applied},
               {"gradients_stale", steps.gradients_stale},
               {"gradients_repeated", steps.gradients_repeated},
               {"gradient_bytes", status.gradient_bytes},
               {"straggler", replication::stragglerJson(status.straggler)},
               {"metrics", addressOrNull(options.metrics_address)},
               {"staleness_max", steps.staleness.max},
               {"staleness_sum", steps.staleness.sum},
               {"staleness_histogram", steps.staleness.counts}})
      .dump();
}

schema::PsGate::Client makeGate(ShardHost& host, WorkerSessions& sessions,
                                const ServiceOptions& options, Follow follow,
                                wire::ConnectionRef connection) {
  return kj::heap<Gate>(host, sessions, options, std::move(follow), std::move(connection));
}

}  // namespace dtf::host
