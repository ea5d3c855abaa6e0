#include "common/host/data_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/trace.h"
#include "common/host/board_service.h"
#include "common/host/gradient_reader.h"
#include "common/host/parameter_replies.h"
#include "common/net/error_bridge.h"
#include "common/replication/replication_rules.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/remote_codec.h"

namespace dtf::host {

namespace {

// A worker has one exchange in flight; a retry may overlap with the first attempt.
constexpr uint32_t kCallsInFlightMax = 2;

std::string_view textOf(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

// One worker's bulk session.
class DataSession final : public schema::PsData::Server, public BoardExchanges {
 public:
  DataSession(ShardHost& host, exchange::TransferPlan plan, arena::GradientLayout layout,
              wire::ConnectionRef connection, uint32_t rank, Incarnation incarnation,
              std::shared_ptr<LentMemory> lent, const ServiceOptions& options)
      : loop_(host.data()),
        shard_(host.shard()),
        plan_(std::move(plan)),
        replies_(host, options.self.index, rank),
        lent_(std::move(lent)),
        options_(options),
        layout_(std::move(layout)),
        connection_(std::move(connection)),
        gradients_(connection_,
                   1 + replication::batchesPerStep(shard_.declaration().value().replication, rank)),
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
    replication::Wanted wanted{.progress = context.getParams().getProgress()};
    trace::onRequest(0, {});  // a pull belongs to no traced step
    if (context.getParams().getWantsStep()) wanted.step = context.getParams().getWantedStep();
    const uint64_t epoch = context.getParams().getEpoch();
    if (board_) board_->skip();
    lent_->keepOnly(context.getParams().getInUse());
    ReplyForm form{.rows = net::bridgeErrors([&] { return readWanted(context.getParams()); }),
                   .base = context.getParams().getBase()};
    return answered(context, std::move(form),
                    [this, wanted, epoch](replication::PushCallback reply) {
                      shard_.pull(rank_, incarnation_, wanted, std::move(reply), epoch);
                    });
  }

  kj::Promise<void> averages(AveragesContext context) override {
    trace::onRequest(0, {});
    const auto what = context.getParams().getCurrent() ? shard::Shard::Aside::kParameters
                                                       : shard::Shard::Aside::kAverages;
    return answered(context, ReplyForm{.is_exact = true},
                    [this, what](replication::PushCallback reply) {
                      shard_.pullAside(rank_, incarnation_, what, std::move(reply));
                    });
  }

  kj::Promise<void> exchange(ExchangeContext context) override {
    noteStep(context.getParams().getStep());
    trace::onRequest(context.getParams().getStep(), textOf(context.getParams().getTraceparent()));
    if (board_) board_->skip();
    ReplyForm form{.base = context.getParams().getBase()};
    replication::Contribution contribution = net::bridgeErrors([&] {
      const trace::Span span("take gradient");
      form.rows = readWanted(context.getParams());
      return readContribution(context.getParams());
    });
    lent_->keepOnly(context.getParams().getInUse());
    context.releaseParams();
    return answered(context, std::move(form),
                    [this, &contribution](replication::PushCallback reply) {
                      shard_.push(std::move(contribution), std::move(reply));
                    });
  }

  kj::Promise<void> openDoor(OpenDoorContext context) override {
    net::bridgeErrors([&] {
      if (!plan_.shared_parameters.is_used)
        throw Error(ErrorCode::kBadConfig, plan_.shared_parameters.why_not);
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
      if (keys.size() > 0 && !plan_.shared_gradients.is_used)
        throw Error(ErrorCode::kBadData,
                    "these gradients can't be in shared memory: " + plan_.shared_gradients.why_not);
      board_ = nullptr;
      lent_->accept(keys, shard_.elements());
      if (const uint64_t key = context.getParams().getRequestKey(); key != 0)
        context.getResults().setReplyKey(openBoard(key));
    });
    return kj::READY_NOW;
  }

  kj::Promise<void> openRemote(OpenRemoteContext context) override {
    net::bridgeErrors([&] {
      if (!plan_.remote_memory.is_used)
        throw Error(ErrorCode::kBadConfig, plan_.remote_memory.why_not);
      lent_->openRemote(loop_, options_.remote, shard_.elements()).describe(context.getResults());
    });
    return kj::READY_NOW;
  }

 private:
  // Returns the key of the page for the replies; 0: there is no board.
  uint64_t openBoard(uint64_t request_key) {
    auto board =
        std::make_unique<BoardService>(loop_, *this, lent_->page(request_key, wire::kBoardBytes));
    if (board->replies() == nullptr) return 0;
    lent_->givePage(*board->replies());
    board_ = std::move(board);
    return board_->replies()->key();
  }

  // Only a ps follows the steps of its requests: a worker that hosts a shard traces its own steps.
  void noteStep(uint64_t step) const {
    if (options_.taskOf(options_.self).job == JobKind::kPs) trace::onStep(step);
  }

  replication::Contribution contributionOf(const wire::Exchange& exchange,
                                           arena::Gradient gradient) {
    replication::Contribution contribution;
    contribution.rank = rank_;
    contribution.incarnation = incarnation_;
    contribution.step = exchange.step;
    contribution.batch = exchange.batch;
    contribution.loss = exchange.loss;
    contribution.epoch = exchange.epoch;
    contribution.progress = exchange.progress;
    contribution.times = exchange.times;
    contribution.sequence = sequence_++;
    contribution.gradient = gradient.values;
    contribution.owner = std::move(gradient.owner);
    contribution.row_counts = std::move(gradient.row_counts);
    contribution.is_lent = gradient.is_lent;
    return contribution;
  }

  void push(const wire::BoardRequest& request, replication::PushCallback reply) override {
    noteStep(request.exchange.step);
    trace::onRequest(request.exchange.step, {});
    replication::Contribution contribution = [&] {
      const trace::Span span("take gradient");
      return contributionOf(request.exchange,
                            lent_->gradient(request.gradient_key, shard_.elements()));
    }();
    lent_->keepOnly(request.in_use);
    shard_.push(std::move(contribution), measured(trace::begin(), std::move(reply)));
  }

  wire::BoardReply replyOf(const replication::PushReply& reply) override {
    const trace::Span span("reply");
    wire::BoardReply said{.state = reply.state};
    if (reply.parameters != nullptr) lent_->lend(reply.parameters, said);
    return said;
  }

  template <class Params>
  arena::RowSet readWanted(Params params) {
    return wire::decodeRowSet(params.getWantedCounts(), params.getWantedIds(), layout_);
  }

  replication::Contribution readContribution(schema::PsData::ExchangeParams::Reader params) {
    wire::Exchange said{params.getStep(), params.getBatch(), params.getLoss(), params.getEpoch(),
                        params.getProgress()};
    if (params.hasTimes()) said.times = wire::decodePhaseTimes(params.getTimes());
    return contributionOf(said, readGradient(params));
  }

  arena::Gradient readGradient(schema::PsData::ExchangeParams::Reader params) {
    const uint64_t key = params.getGradientKey();
    if (key == 0)
      return gradients_.read(params.getGradient(), params.getRows(), layout_, replies_.gradient());
    if (params.getGradient().size() > 0 || params.getRows().size() > 0)
      throw Error(ErrorCode::kBadData, "a gradient in the message and another in shared memory");
    return lent_->gradient(key, shard_.elements());
  }

  // Returns a callback that ends the span `begun` and adds to the answer the time since now, and
  // the straggler. It doesn't refer to the session, which may end before the answer comes.
  replication::PushCallback measured(const trace::Begun& begun, replication::PushCallback reply) {
    return [reply = std::move(reply), &shard = shard_, &clock = loop_.clock(), rank = rank_, begun,
            came = loop_.clock().now()](replication::PushAnswer answer) {
      if (begun.recorded())
        trace::end("wait for the answer", begun, TaskId{JobKind::kWorker, rank}.name());
      if (auto* const pushed = std::get_if<replication::PushReply>(&answer)) {
        pushed->state.waited = std::max<Duration>(clock.now() - came, std::chrono::microseconds(1));
        pushed->state.straggler = shard.workers().straggler();
      }
      reply(std::move(answer));
    };
  }

  // Starts a call of the shard, and sends its answer, now or later: the state, and the parameters
  // in `form`, by reference to their version or by the key of their arena.
  template <class Context, class Start>
  kj::Promise<void> answered(Context context, ReplyForm form, Start start) {
    DTF_CHECK(connection_->connection != nullptr);  // a call of it has just come
    if (in_flight_ >= kCallsInFlightMax)
      net::throwAsKj(Error(ErrorCode::kBadData, "too many exchanges at once on one connection"));
    // An unread answer keeps a version of the parameters in memory.
    if (connection_->connection->queuedBytes() >
        kCallsInFlightMax * (shard_.elements() * sizeof(float) + wire::kMessageOverheadBytes))
      net::throwAsKj(Error(ErrorCode::kBadData, "too many unread answers"));
    ++in_flight_;
    context.allowCancellation();
    auto pair = kj::newPromiseAndFulfiller<replication::PushReply>();
    // std::function must be copyable, and kj::Own is not. The callback is destroyed on this loop,
    // like the rest of the shard.
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<replication::PushReply>>>(
        kj::mv(pair.fulfiller));
    const trace::Begun begun = trace::begin();
    start(measured(begun, [fulfiller](replication::PushAnswer answer) {
      if (const Error* error = std::get_if<Error>(&answer))
        return (*fulfiller)->reject(net::toKj(*error));
      (*fulfiller)->fulfill(std::move(std::get<replication::PushReply>(answer)));
    }));
    return pair.promise
        .then([this, context, begun, form = std::move(form)](replication::PushReply reply) mutable {
          if (connection_->connection == nullptr) return;
          const trace::Begun replying = trace::beside(begun);
          KJ_DEFER(trace::end("reply", replying));
          const uint64_t elements = reply.parameters ? reply.parameters->elements() : 0;
          auto results = context.getResults(capnp::MessageSize{
              26 + 2 * wire::arenaChunks(elements, options_.chunk_bytes) + form.rows.counts.size(),
              0});
          wire::encodeStepState(reply.state, results.initState());
          form.epoch = reply.state.epoch;
          if (elements > 0) sendParameters(results, reply.parameters, form);
        })
        .attach(kj::defer([this] {
          DTF_CHECK(in_flight_ > 0);
          --in_flight_;
        }));
  }

  template <class Results>
  void sendParameters(Results results,
                      const std::shared_ptr<const arena::ParameterVersion>& parameters,
                      const ReplyForm& form) {
    if constexpr (requires { results.setKey(0); }) {
      if (lendTo(results, parameters)) return;
      if (!form.rows.isWhole()) {
        auto counts = results.initRows(static_cast<uint32_t>(form.rows.counts.size()));
        for (uint32_t i = 0; i < counts.size(); ++i) counts.set(i, form.rows.counts[i]);
      }
    }
    const ReplyParts reply = net::bridgeErrors([&] { return replies_.of(parameters, form); });
    if constexpr (requires { results.setBase(0); }) {
      results.setBase(reply.base);
      results.setChanged(reply.is_changed);
    }
    uint32_t chunks = 0;
    for (const wire::ArenaPart& part : reply.parts)
      chunks += wire::chunksOf(part.bytes.size(), options_.chunk_bytes);
    wire::referenceParts(reply.parts, results.initParameters(chunks),
                         connection_->connection->stream(), options_.chunk_bytes);
  }

  // Puts the key of the parameters' arena into the reply. Returns false if there is none, and the
  // reply must contain the parameters.
  template <class Results>
  bool lendTo(Results results, const std::shared_ptr<const arena::ParameterVersion>& parameters) {
    const uint64_t key = net::bridgeErrors([&] { return lent_->lend(parameters); });
    results.setKey(key);
    if (const std::optional<net::RemoteArena> arena = lent_->takeNew())
      wire::encodeRemoteArena(*arena, results.initRemote());
    if (const std::vector<uint64_t> gone = lent_->takeGone(); !gone.empty()) {
      auto list = results.initGone(static_cast<uint32_t>(gone.size()));
      for (uint32_t i = 0; i < gone.size(); ++i) list.set(i, gone[i]);
    }
    return key != 0;
  }

  net::Loop& loop_;
  shard::Shard& shard_;
  const exchange::TransferPlan plan_;
  ParameterReplies replies_;
  const std::shared_ptr<LentMemory> lent_;
  const ServiceOptions& options_;
  const arena::GradientLayout layout_;
  const wire::ConnectionRef connection_;
  GradientReader gradients_;
  const uint32_t rank_;
  const Incarnation incarnation_;
  uint64_t sequence_ = 0;
  uint32_t in_flight_ = 0;
  std::unique_ptr<BoardService> board_;  // null: exchanges come as calls
};

}  // namespace

schema::PsData::Client makeDataSession(ShardHost& host, const ServiceOptions& options,
                                       wire::ConnectionRef connection, exchange::TransferPlan plan,
                                       DataCaller caller) {
  arena::GradientLayout layout(host.shard().declaration().value().layout, options.self.index);
  return kj::heap<DataSession>(host, std::move(plan), std::move(layout), std::move(connection),
                               caller.rank, caller.incarnation, std::move(caller.lent), options);
}

}  // namespace dtf::host
