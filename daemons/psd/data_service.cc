// The bulk half of ps_service.h: parameters out, gradients in. Everything here runs on the data
// loop.

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/trace.h"
#include "common/net/error_bridge.h"
#include "common/ps/replication_rules.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/model_codec.h"
#include "daemons/psd/gradient_reader.h"
#include "daemons/psd/lent_memory.h"
#include "daemons/psd/narrow_parameters.h"
#include "daemons/psd/ps_service.h"
#include "daemons/psd/replica_service.h"
#include "daemons/psd/sent_rows.h"

namespace dtf::psd {

namespace {

// A worker has one exchange in flight; a second may cross a retry.
constexpr uint32_t kCallsInFlightMax = 2;

std::string_view textOf(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

using Part = wire::ArenaPart;

// How parameters travel: all or, of sparse variables, these rows; as bfloat16 or as they are.
struct Form {
  ps::RowSet rows{};
  bool narrows = false;
};

std::vector<ps::ElementRange> exactOf(const ps::Shard& shard, uint32_t ps_task) {
  return ps::exactRanges(shard.declaration().value().layout, ps_task);
}

// One worker's bulk session.
class DataSession final : public schema::PsData::Server {
 public:
  DataSession(ShardHost& host, ps::GradientLayout layout, daemons::ConnectionRef connection,
              uint32_t rank, Incarnation incarnation, std::shared_ptr<LentMemory> lent,
              const ServiceOptions& options)
      : shard_(host.shard()),
        narrow_parameters_(host.narrowParameters()),
        narrows_(ps::narrowsTransfers(shard_.declaration().value().replication)),
        sent_rows_(layout),
        narrow_all_(shard_.elements(), exactOf(shard_, options.self.index)),
        narrow_dense_(layout.denseElements(), exactOf(shard_, options.self.index)),
        lent_(std::move(lent)),
        options_(options),
        layout_(std::move(layout)),
        connection_(std::move(connection)),
        gradients_(connection_,
                   1 + ps::batchesPerStep(shard_.declaration().value().replication, rank)),
        rank_(rank),
        incarnation_(incarnation) {}

  kj::Promise<void> initialise(InitialiseContext context) override {
    net::bridgeErrors([&] {
      Buffer assembled;
      shard_.initialise(
          rank_, incarnation_,
          wire::readArena(context.getParams().getValues(), shard_.elements(), assembled),
          context.getParams().getEpoch());
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> pull(PullContext context) override {
    ps::Wanted wanted{.progress = context.getParams().getProgress()};
    trace::onRequest(0, {});  // no part of a step that is traced
    if (context.getParams().getWantsStep()) wanted.step = context.getParams().getWantedStep();
    const uint64_t epoch = context.getParams().getEpoch();
    lent_->keepOnly(context.getParams().getInUse());
    Form form{.rows = net::bridgeErrors([&] { return readWanted(context.getParams()); }),
              .narrows = narrows_};
    return answered(context, std::move(form), [this, wanted, epoch](ps::PushCallback reply) {
      shard_.pull(rank_, incarnation_, wanted, std::move(reply), epoch);
    });
  }

  kj::Promise<void> averages(AveragesContext context) override {
    trace::onRequest(0, {});
    const auto what = context.getParams().getCurrent() ? ps::Shard::Aside::kParameters
                                                       : ps::Shard::Aside::kAverages;
    return answered(context, Form{}, [this, what](ps::PushCallback reply) {
      shard_.pullAside(rank_, incarnation_, what, std::move(reply));
    });
  }

  kj::Promise<void> exchange(ExchangeContext context) override {
    trace::onStep(context.getParams().getStep());
    trace::onRequest(context.getParams().getStep(), textOf(context.getParams().getTraceparent()));
    Form form{.narrows = narrows_};
    ps::Contribution contribution = net::bridgeErrors([&] {
      const trace::Span span("take gradient");
      form.rows = readWanted(context.getParams());
      return readContribution(context.getParams());
    });
    lent_->keepOnly(context.getParams().getInUse());
    context.releaseParams();
    return answered(context, std::move(form), [this, &contribution](ps::PushCallback reply) {
      shard_.push(std::move(contribution), std::move(reply));
    });
  }

  kj::Promise<void> openDoor(OpenDoorContext context) override {
    net::bridgeErrors([&] {
      if (!options_.shares_memory)
        throw Error(ErrorCode::kBadConfig, "its cluster file says 'shared_memory: false'");
      if (narrows_)
        throw Error(ErrorCode::kBadConfig,
                    "this job's parameters and gradients travel as bfloat16");
      const net::MemoryDoor& door = lent_->openDoor();
      auto results = context.getResults();
      results.setAddress(door.address());
      results.setSecret0(door.secret()[0]);
      results.setSecret1(door.secret()[1]);
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> shareMemory(ShareMemoryContext context) override {
    net::bridgeErrors([&] {
      const auto keys = context.getParams().getGradientKeys();
      const auto& replication = shard_.declaration().value().replication;
      if (keys.size() > 0 &&
          (!layout_.sparse().empty() || ps::batchesPerStep(replication, rank_) > 1))
        throw Error(ErrorCode::kBadData,
                    "gradients with rows, or of several batches a step, can't be in shared memory");
      lent_->accept(keys, shard_.elements());
    });
    return kj::READY_NOW;
  }

 private:
  template <class Params>
  ps::RowSet readWanted(Params params) {
    return wire::decodeRowSet(params.getWantedCounts(), params.getWantedIds(), layout_);
  }

  ps::Contribution readContribution(schema::PsData::ExchangeParams::Reader params) {
    ps::Contribution contribution;
    contribution.rank = rank_;
    contribution.incarnation = incarnation_;
    contribution.step = params.getStep();
    contribution.batch = params.getBatch();
    contribution.loss = params.getLoss();
    contribution.epoch = params.getEpoch();
    contribution.progress = params.getProgress();
    contribution.sequence = sequence_++;
    ps::Gradient gradient = readGradient(params);
    contribution.gradient = gradient.values;
    contribution.owner = std::move(gradient.owner);
    contribution.row_counts = std::move(gradient.row_counts);
    return contribution;
  }

  // What goes to a replica may be on its way when the worker is answered, as where all go back to
  // an earlier cut: of that a copy.
  ps::Gradient readGradient(schema::PsData::ExchangeParams::Reader params) {
    const uint64_t key = params.getGradientKey();
    if (key == 0)
      return narrows_ ? gradients_.readNarrow(params.getGradient(), params.getRows(), layout_,
                                              narrow_dense_)
                      : gradients_.read(params.getGradient(), params.getRows(), layout_);
    if (params.getGradient().size() > 0 || params.getRows().size() > 0)
      throw Error(ErrorCode::kBadData, "a gradient in the message and another in shared memory");
    ps::Gradient gradient = lent_->gradient(key, shard_.elements());
    const bool has_replica = options_.durability.kind == cluster::Durability::kReplica;
    return has_replica ? gradients_.copyOf(std::move(gradient)) : gradient;
  }

  // Starts a call of the shard and sends its answer, now or later: state, and parameters in that
  // form, by reference to the snapshot, or its name.
  template <class Context, class Start>
  kj::Promise<void> answered(Context context, Form form, Start start) {
    DTF_CHECK(connection_->connection != nullptr);  // a call of it has just come
    if (in_flight_ >= kCallsInFlightMax)
      net::throwAsKj(Error(ErrorCode::kBadData, "too many exchanges at once on one connection"));
    // An answer that is not read keeps a snapshot: two may wait, as two calls may.
    if (connection_->connection->queuedBytes() >
        kCallsInFlightMax * (shard_.elements() * sizeof(float) + wire::kMessageOverheadBytes))
      net::throwAsKj(Error(ErrorCode::kBadData, "too many unread answers"));
    ++in_flight_;
    context.allowCancellation();
    auto pair = kj::newPromiseAndFulfiller<ps::PushReply>();
    // std::function wants to copy, kj's owner only moves. The callback is dropped on this loop, as
    // all of a shard is.
    auto fulfiller =
        std::make_shared<kj::Own<kj::PromiseFulfiller<ps::PushReply>>>(kj::mv(pair.fulfiller));
    const trace::Begun begun = trace::begin();
    start([fulfiller, rank = rank_, begun](ps::PushAnswer answer) {
      if (begun.recorded())
        trace::end("wait for the answer", begun, TaskId{JobKind::kWorker, rank}.name());
      if (const Error* error = std::get_if<Error>(&answer))
        return (*fulfiller)->reject(net::toKj(*error));
      (*fulfiller)->fulfill(std::move(std::get<ps::PushReply>(answer)));
    });
    return pair.promise
        .then([this, context, begun, form = std::move(form)](ps::PushReply reply) mutable {
          if (connection_->connection == nullptr) return;
          const trace::Begun replying = trace::beside(begun);
          KJ_DEFER(trace::end("reply", replying));
          const uint64_t elements = reply.parameters ? reply.parameters->elements() : 0;
          auto results = context.getResults(capnp::MessageSize{
              24 + 2 * wire::arenaChunks(elements, options_.chunk_bytes) + form.rows.counts.size(),
              0});
          wire::encodeStepState(reply.state, results.initState());
          if (elements > 0) sendParameters(results, reply.parameters, form);
        })
        .attach(kj::defer([this] {
          DTF_CHECK(in_flight_ > 0);
          --in_flight_;
        }));
  }

  template <class Results>
  void sendParameters(Results results, const std::shared_ptr<const ps::Snapshot>& parameters,
                      const Form& form) {
    if constexpr (requires { results.setKey(0); }) {
      if (lendTo(results, parameters)) return;
      if (!form.rows.isWhole()) {
        auto counts = results.initRows(static_cast<uint32_t>(form.rows.counts.size()));
        for (uint32_t i = 0; i < counts.size(); ++i) counts.set(i, form.rows.counts[i]);
      }
    }
    const std::vector<Part> parts = partsOf(parameters, form);
    uint32_t chunks = 0;
    for (const Part& part : parts)
      chunks += wire::chunksOf(part.bytes.size(), options_.chunk_bytes);
    wire::referenceParts(parts, results.initParameters(chunks), connection_->connection->stream(),
                         options_.chunk_bytes);
  }

  std::vector<Part> partsOf(const std::shared_ptr<const ps::Snapshot>& parameters,
                            const Form& form) {
    if (parameters->elements() != narrow_all_.elements())
      net::throwAsKj(Error(ErrorCode::kUnavailable, "another model was declared meanwhile"));
    std::vector<Part> parts;
    const bool is_whole = form.rows.isWhole();
    if (form.narrows) {
      const ps::NarrowLayout& layout = is_whole ? narrow_all_ : narrow_dense_;
      const auto narrow = narrow_parameters_.of(parameters, layout);
      parts.push_back({{narrow->data(), layout.bytes()}, narrow});
    } else {
      const uint64_t elements = is_whole ? parameters->elements() : layout_.denseElements();
      parts.push_back({wideBytes(*parameters, elements), parameters});
    }
    if (!is_whole) {
      const trace::Span span("gather rows");
      parts.push_back(sent_rows_.of(*parameters, form.rows, form.narrows));
    }
    return parts;
  }

  static std::span<const std::byte> wideBytes(const ps::Snapshot& parameters, uint64_t elements) {
    return std::as_bytes(std::span(parameters.data(), elements));
  }

  // Whether the answer names the parameters, instead of having them.
  template <class Results>
  bool lendTo(Results results, const std::shared_ptr<const ps::Snapshot>& parameters) {
    const uint64_t key = lent_->lend(parameters);
    results.setKey(key);
    if (const std::vector<uint64_t> gone = lent_->takeGone(); !gone.empty()) {
      auto list = results.initGone(static_cast<uint32_t>(gone.size()));
      for (uint32_t i = 0; i < gone.size(); ++i) list.set(i, gone[i]);
    }
    return key != 0;
  }

  ps::Shard& shard_;
  NarrowParameters& narrow_parameters_;
  const bool narrows_;  // what travels is bfloat16
  SentRows sent_rows_;
  const ps::NarrowLayout narrow_all_, narrow_dense_;
  const std::shared_ptr<LentMemory> lent_;
  const ServiceOptions& options_;
  const ps::GradientLayout layout_;
  const daemons::ConnectionRef connection_;
  GradientReader gradients_;
  const uint32_t rank_;
  const Incarnation incarnation_;
  uint64_t sequence_ = 0;
  uint32_t in_flight_ = 0;
};

class DataGate final : public schema::PsDataGate::Server {
 public:
  DataGate(ShardHost& host, const ServiceOptions& options, daemons::ConnectionRef connection)
      : host_(host), options_(options), connection_(std::move(connection)) {}

  kj::Promise<void> hello(HelloContext context) override {
    net::bridgeErrors([&] {
      const auto hello = context.getParams().getHello();
      checkHello(options_, hello);
      const TaskId worker = wire::decodeTask(hello.getCaller());
      connection_->set->checkCaller(*connection_, worker);
      const Incarnation incarnation{hello.getIncarnation()};
      if (worker.job != JobKind::kWorker)
        throw Error(ErrorCode::kBadConfig, worker.name() + " is no worker");
      if (const auto not_yet = host_.shard().notYetDeclared(worker.index, incarnation))
        return context.getResults().setNotYet(not_yet->message());
      const uint64_t elements = host_.shard().elements();
      connection_->set->greet(*connection_, {worker, incarnation, hello.getConnection()});
      connection_->connection->setPeer(worker.name() + " bulk");
      if (lent_ == nullptr) lent_ = std::make_shared<LentMemory>(host_.shard(), worker);
      ps::GradientLayout layout(host_.shard().declaration().value().layout, options_.self.index);
      connection_->connection->stream().setLimits(
          wire::gradientLimits(elements, layout, options_.chunk_bytes));
      context.getResults().setData(kj::heap<DataSession>(
          host_, std::move(layout), connection_, worker.index, incarnation, lent_, options_));
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> replica(ReplicaContext context) override {
    const TaskId primary = net::bridgeErrors([&] {
      const auto hello = context.getParams().getHello();
      checkHello(options_, hello);
      const TaskId caller = wire::decodeTask(hello.getCaller());
      connection_->set->checkCaller(*connection_, caller);
      const Incarnation incarnation{hello.getIncarnation()};
      if (host_.replica() == nullptr || caller.job != JobKind::kPs ||
          ps::backupOf(caller.index, options_.ps_tasks) != options_.self.index)
        throw Error(ErrorCode::kBadConfig,
                    fmt::format("{} keeps no replica of {}; start all tasks with the same "
                                "cluster file",
                                options_.self.name(), caller.name()));
      host_.replica()->meet(incarnation);
      connection_->set->greet(*connection_, {caller, incarnation, hello.getConnection()});
      connection_->connection->setPeer(caller.name() + " replica");
      return caller;
    });
    const Incarnation incarnation{context.getParams().getHello().getIncarnation()};
    return host_.whenDeclared().then([this, context, primary, incarnation]() mutable {
      if (connection_->connection == nullptr) return;
      if (!host_.shard().declared())
        net::throwAsKj(Error(ErrorCode::kUnavailable, "the model is no longer declared"));
      const ps::ParameterLayout& layout = host_.shard().declaration()->layout;
      ps::GradientLayout gradients(layout, primary.index);
      connection_->connection->stream().setLimits(wire::gradientLimits(
          layout.shards.at(primary.index).elements, gradients, options_.chunk_bytes));
      context.getResults().setIncarnation(options_.incarnation.value);
      context.getResults().setReplica(makeReplica(*host_.replica(), host_.shard(), connection_,
                                                  primary.index, std::move(gradients), incarnation,
                                                  options_.chunk_bytes));
    });
  }

 private:
  ShardHost& host_;
  const ServiceOptions& options_;
  const daemons::ConnectionRef connection_;
  std::shared_ptr<LentMemory> lent_;  // null before the first hello
};

}  // namespace

schema::PsDataGate::Client makeDataGate(ShardHost& host, const ServiceOptions& options,
                                        daemons::ConnectionRef connection) {
  return kj::heap<DataGate>(host, options, std::move(connection));
}

}  // namespace dtf::psd
