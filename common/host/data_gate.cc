// The hellos of bulk connections: workers, the host of another shard, readers. All of it runs on
// the data loop.

#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "common/exchange/transfer_plan.h"
#include "common/host/data_service.h"
#include "common/host/ps_service.h"
#include "common/host/reader_service.h"
#include "common/host/replica_service.h"
#include "common/net/error_bridge.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/remote_codec.h"

namespace dtf::host {

namespace {

// Plans the transfers with a worker. It counts as on this host, since only the door can show that.
exchange::TransferPlan planFor(const ServiceOptions& options,
                               const arena::ModelDeclaration& declaration, uint32_t rank,
                               schema::Hello::Reader hello) {
  const arena::CodecSpec codec = arena::codecOf(declaration.replication);
  exchange::TransferAbilities own;
  own.share_from_bytes = options.shares_memory ? std::optional<uint64_t>(0) : std::nullopt;
  if (options.remote != nullptr) own.transport = cluster::Transport::kRdma;
  exchange::JobTransfers job = exchange::transfersOf(declaration.replication, rank);
  job.has_tables =
      std::ranges::any_of(declaration.layout.variables, &arena::VariableInfo::is_sparse);
  return exchange::planTransfer(
      job, exchange::shardOf(declaration.layout, options.self.index, codec), own,
      {.codecs = wire::decodeCodecs(hello.getCodecs()),
       .transport = wire::decodeTransport(hello.getTransport()),
       .on_this_host = true});
}

class DataGate final : public schema::PsDataGate::Server {
 public:
  DataGate(ShardHost& host, const ServiceOptions& options, wire::ConnectionRef connection)
      : host_(host), options_(options), connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    net::bridgeErrors([&] {
      const auto hello = context.getParams().getHello();
      checkHello(options_, hello);
      const TaskId worker = wire::decodeTask(hello.getCaller());
      connection_->set->checkCaller(*connection_, options_.taskOf(worker));
      const Incarnation incarnation{hello.getIncarnation()};
      if (worker.job != JobKind::kWorker)
        throw Error(ErrorCode::kBadConfig, worker.name() + " is no worker");
      if (const auto not_yet = host_.shard().workers().notYetDeclared(worker.index, incarnation))
        return context.getResults().setNotYet(not_yet->message());
      const uint64_t elements = host_.shard().elements();
      connection_->set->greet(*connection_, {worker, incarnation, hello.getConnection()});
      connection_->connection->setPeer(worker.name() + " bulk");
      exchange::TransferPlan plan =
          planFor(options_, host_.shard().declaration().value(), worker.index, hello);
      if (!plan.fault.empty())
        throw Error(ErrorCode::kBadConfig, worker.name() + ": " + plan.fault);
      auto results = context.getResults();
      wire::encodeCodecs(results);
      results.setTransport(wire::transportName(options_.remote != nullptr));
      if (lent_ == nullptr) lent_ = std::make_shared<LentMemory>(host_.shard(), worker);
      const arena::GradientLayout layout(host_.shard().declaration().value().layout,
                                         options_.self.index);
      connection_->connection->stream().setLimits(
          wire::gradientLimits(elements, layout, options_.chunk_bytes));
      results.setData(makeDataSession(host_, options_, connection_, std::move(plan),
                                      {worker.index, incarnation, lent_}));
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> replica(ReplicaContext context) override {
    const TaskId primary = net::bridgeErrors([&] {
      const auto hello = context.getParams().getHello();
      checkHello(options_, hello);
      const TaskId caller = wire::decodeTask(hello.getCaller());
      connection_->set->checkCaller(*connection_, options_.taskOf(caller));
      const Incarnation incarnation{hello.getIncarnation()};
      if (host_.replica() == nullptr || caller.job != JobKind::kPs ||
          replication::backupOf(caller.index, options_.ps_tasks) != options_.self.index)
        throw Error(ErrorCode::kBadConfig,
                    fmt::format("{} keeps no replica of {}; start all tasks with the same "
                                "cluster file",
                                options_.name(), options_.taskOf(caller).name()));
      host_.replica()->meet(incarnation);
      connection_->set->greet(*connection_, {caller, incarnation, hello.getConnection()});
      connection_->connection->setPeer(options_.taskOf(caller).name() + " replica");
      return caller;
    });
    const Incarnation incarnation{context.getParams().getHello().getIncarnation()};
    return host_.whenDeclared().then([this, context, primary, incarnation]() mutable {
      if (connection_->connection == nullptr) return;
      if (!host_.shard().declaration().has_value())
        net::throwAsKj(Error(ErrorCode::kUnavailable, "the model is no longer declared"));
      const arena::ParameterLayout& layout = host_.shard().declaration()->layout;
      arena::GradientLayout gradients(layout, primary.index);
      connection_->connection->stream().setLimits(wire::gradientLimits(
          layout.shards.at(primary.index).elements, gradients, options_.chunk_bytes));
      context.getResults().setIncarnation(options_.incarnation.value);
      context.getResults().setReplica(makeReplica(
          *host_.replica(), host_.shard(), connection_, primary.index, options_.taskOf(primary),
          std::move(gradients), incarnation, options_.chunk_bytes));
    });
  }

  kj::Promise<void> read(ReadContext context) override {
    net::bridgeErrors([&] {
      const capnp::Text::Reader name = context.getParams().getJob();
      const std::string_view job(name.begin(), name.size());
      if (!job.empty() && job != options_.job)
        throw Error(ErrorCode::kBadConfig,
                    fmt::format("{} belongs to the job '{}', not '{}'", options_.name(),
                                options_.job, printable(job)));
      auto results = context.getResults();
      const auto& declaration = host_.shard().declaration();
      if (!declaration)
        return results.setNotYet("no worker has declared the model to " + options_.name() +
                                 " yet: the job has not begun");
      if (reads_) throw Error(ErrorCode::kBadData, "this connection has a reader already");
      results.setReader(makeReader(host_, connection_));
      reads_ = true;
      results.setShard(options_.self.index);
      wire::encodeModel(*declaration, results.initModel());
      connection_->greeted = true;
      connection_->connection->setPeer("reader " + connection_->connection->peer());
    });
    return kj::READY_NOW;
  }

 private:
  ShardHost& host_;
  const ServiceOptions& options_;
  const wire::ConnectionRef connection_;
  std::shared_ptr<LentMemory> lent_;  // null before the first hello
  bool reads_ = false;                // this connection has a reader
};

}  // namespace

schema::PsDataGate::Client makeDataGate(ShardHost& host, const ServiceOptions& options,
                                        wire::ConnectionRef connection) {
  return kj::heap<DataGate>(host, options, std::move(connection));
}

}  // namespace dtf::host
