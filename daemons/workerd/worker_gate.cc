#include "daemons/workerd/worker_gate.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/replication/phase_json.h"

namespace dtf::workerd {

namespace {

class Gate final : public schema::WorkerGate::Server {
 public:
  Gate(const cluster::TaskOptions& task, const WorkerStatus& status, std::string metrics_address)
      : task_(task), status_(status), metrics_address_(std::move(metrics_address)) {}
  kj::Promise<void> status(StatusContext context) override {
    const train::Progress progress = status_.done().progress;
    const bool has_steps = progress.phases != replication::PhaseTimes();
    context.getResults().setJson(
        Json({{"schema", 1},
              {"job", task_.job.job},
              {"task", task_.task.name()},
              {"metrics", metrics_address_.empty() ? Json(nullptr) : Json(metrics_address_)},
              {"training", status_.phase() == WorkerPhase::kTraining},
              {"global_step", status_.global_step.load()},
              {"steps", status_.steps.load()},
              {"loss", status_.loss.load()},
              {"steps_per_second", status_.steps_per_second.load()},
              {"examples_per_second", status_.examples_per_second.load()},
              {"evaluating", status_.evaluates.load()},
              {"step_ms", has_steps ? replication::phasesJson(progress.phases) : Json(nullptr)},
              {"straggler", replication::stragglerJson(progress.straggler)}})
            .dump());
    return kj::READY_NOW;
  }

 private:
  const cluster::TaskOptions& task_;
  const WorkerStatus& status_;
  const std::string metrics_address_;
};

Json fieldsOf(capnp::Text::Reader json) {
  Json fields = Json::parseOrNull({json.begin(), json.size()});
  return fields.isObject() ? fields : Json::object();
}

// Passes each call on to the half that it is for.
class HostingGate final : public schema::HostingWorkerGate::Server {
 public:
  HostingGate(schema::PsGate::Client shard, schema::WorkerGate::Client own,
              wire::ConnectionRef connection)
      : shard_(kj::mv(shard)), own_(kj::mv(own)), connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    auto request = shard_.helloRequest();
    request.setHello(context.getParams().getHello());
    return context.tailCall(kj::mv(request));
  }

  kj::Promise<void> peer(PeerContext context) override {
    auto request = shard_.peerRequest();
    request.setHello(context.getParams().getHello());
    request.setFollower(context.getParams().getFollower());
    return context.tailCall(kj::mv(request));
  }

  kj::Promise<void> status(schema::PsGate::Server::StatusContext context) override {
    return context.tailCall(shard_.statusRequest());
  }

  // A field that both halves report is the worker's.
  kj::Promise<void> status(schema::WorkerGate::Server::StatusContext context) override {
    connection_->visitor = true;  // it may not stay
    return shard_.statusRequest()
        .send()
        .then([](auto&& shard) { return fieldsOf(shard.getJson()); },
              [](kj::Exception&&) { return Json::object(); })  // the shard has ended
        .then([this, context](Json status) mutable {
          return own_.statusRequest().send().then([context, status](auto&& own) mutable {
            status.update(fieldsOf(own.getJson()));
            context.getResults().setJson(status.dump());
          });
        });
  }

 private:
  schema::PsGate::Client shard_;
  schema::WorkerGate::Client own_;
  const wire::ConnectionRef connection_;
};

}  // namespace

schema::HostingWorkerGate::Client makeHostingGate(schema::PsGate::Client shard,
                                                  schema::WorkerGate::Client own,
                                                  wire::ConnectionRef connection) {
  DTF_CHECK(connection != nullptr);
  return kj::heap<HostingGate>(kj::mv(shard), kj::mv(own), std::move(connection));
}

schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status, std::string metrics_address) {
  return kj::heap<Gate>(task, status, std::move(metrics_address));
}

}  // namespace dtf::workerd
