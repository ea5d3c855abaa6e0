#include "tests/sim/sim_worker.h"

#include <fmt/format.h>

#include <numeric>

#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/replication/barrier.h"
#include "common/replication/replication_rules.h"
#include "common/train/epochs.h"
#include "common/train/step_loop.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/sim_ps.h"
#include "tests/sim/sim_supervisor.h"

namespace dtf::sim {

namespace {

// dtf-launch counts the starts; by hand the time of day orders them.
Incarnation incarnationOf(const Plan& plan, uint32_t number, TimePoint now) {
  using Ticks = std::chrono::duration<uint64_t, std::ratio<1, 256>>;
  const auto ticks = std::chrono::duration_cast<Ticks>(now.time_since_epoch()).count();
  return Incarnation::of(plan.launched ? number + 1 : 0, ticks, static_cast<uint8_t>(number));
}

std::optional<cluster::BatchPlan> batchPlanOf(const Plan& plan,
                                              const arena::ModelDeclaration& model) {
  if (plan.epochs == 0) return std::nullopt;
  return replication::epochPlan(model.replication, plan.workers, plan.examples, plan.batch_size);
}

wire::RpcClientOptions clientOptions(const Plan& plan, uint32_t rank, Incarnation incarnation,
                                     const std::function<void()>& on_replaced) {
  const cluster::JobSpec job = jobOf(plan);
  wire::RpcClientOptions options;
  options.link = wire::linkOptions(job, {JobKind::kWorker, rank}, incarnation);
  options.ps = wire::addressesOf(job.cluster.hosts());
  options.link.share_from_bytes = plan.shares_memory ? std::optional<uint64_t>(0) : std::nullopt;
  options.link.rows_share_max = 2;  // all rows with their ids are twice as large as the table
  options.link.stream_from_bytes =
      plan.streamsGradients() ? std::optional<uint64_t>(0) : std::nullopt;
  options.on_replaced = [on_replaced](uint32_t) { on_replaced(); };
  return options;
}

}  // namespace

SimWorker::SimWorker(const Environment& environment, const Plan& plan, Ledger& ledger,
                     const kj::FiberPool& fibers, uint32_t rank, uint32_t number, Hooks hooks)
    : environment_(environment),
      plan_(plan),
      ledger_(ledger),
      fibers_(fibers),
      rank_(rank),
      number_(number),
      hooks_(std::move(hooks)),
      process_(std::make_shared<Process>(fmt::format("worker/{}.{}", rank, number))),
      control_loop_(environment, process_),
      data_loop_(environment, process_),
      model_(plan.model(ledger.elements())),
      batches_(batchPlanOf(plan, model_)),
      options_(clientOptions(plan, rank, incarnationOf(plan, number, environment.scheduler.now()),
                             [this] {
                               if (supervisor_) supervisor_->onPsReplaced();
                             })),
      data_(std::make_unique<wire::DataCalls>(
          data_loop_, options_, [this](uint32_t ps, uint64_t question) { ask(ps, question); })) {
  wire::ControlCalls::Events events;
  events.on_lost = [this](const Error& error) {
    data_loop_.post([this, error] { data_->fail(error); });
  };
  events.on_broken = [this](uint32_t ps, const Error& why) {
    data_loop_.post([this, ps, why] { data_->onBroken(ps, why); });
  };
  events.on_awaited = [this](uint32_t ps, const wire::Awaited& awaited) {
    data_loop_.post([this, ps, awaited] { data_->setAwaited(ps, awaited); });
  };
  control_ = std::make_unique<wire::ControlCalls>(control_loop_, options_, std::move(events));
  training_ = fibers
                  .startFiber([this](kj::WaitScope& scope) {
                    try {
                      train(scope);
                    } catch (const Error& error) {
                      error_ = error;
                    } catch (const kj::Exception& exception) {
                      error_ = net::toError(exception);
                    }
                    environment_.scheduler.after({}, process_,
                                                 [this, ended = hooks_.on_ended] { ended(*this); });
                  })
                  .eagerlyEvaluate(nullptr);
}

SimWorker::~SimWorker() noexcept(false) {
  training_ = nullptr;
  echo_ = nullptr;
  supervisor_ = nullptr;
  control_ = nullptr;
  echo_link_ = nullptr;
  data_ = nullptr;
}

// Mirrors RpcExchangeClient.
void SimWorker::ask(uint32_t ps, uint64_t question) {
  control_loop_.post([this, ps, question] {
    control_->hear(ps, [this, ps, question] {
      data_loop_.post([this, ps, question] { data_->heard(ps, question); });
    });
  });
}

std::vector<const float*> SimWorker::arenas() const {
  std::vector<const float*> arenas;
  for (uint32_t ps = 0; ps < plan_.shards(); ++ps) arenas.push_back(data_->parameters(ps));
  return arenas;
}

void SimWorker::compute(SimClient& client) {
  auto most = static_cast<uint64_t>(plan_.compute_max.count());
  if (plan_.straggler_share > 0 && environment_.random.uniform() < plan_.straggler_share)
    most *= 20;
  const Duration time(static_cast<int64_t>(environment_.random.below(most)));
  const std::vector<const float*> read = arenas();
  std::vector<std::vector<float>> begun_with;
  for (const float* arena : read) begun_with.emplace_back(arena, arena + ledger_.elements());
  client.await(data_loop_.timer().afterDelay(net::toKj(time)));
  ledger_.onComputed(process_->name, begun_with, read);
}

GradientPlace SimWorker::echoPlace() {
  return {[this](auto row_counts) { echo_link_->setRows(row_counts); },
          [this] { return echo_link_->gradients(); }};
}

void SimWorker::echo(const Push& push) {
  if (echoing_) return;
  echoing_ = true;
  ledger_.writeGradient(push, weightsOf(push), echo_ps_, echoPlace());
  const Duration delay(static_cast<int64_t>(environment_.random.below(3'000'000)));
  echo_ = data_loop_.timer()
              .afterDelay(net::toKj(delay))
              .then([this, push, due = due_] {
                repeated_ = true;
                return echo_link_->exchange({push.step, push.batch, 0, due.epoch, due.progress});
              })
              .then([](replication::StepState) {}, [](kj::Exception&&) {})
              .then([this, push] {
                ledger_.eraseGradient(push, echo_ps_, echoPlace());
                echoing_ = repeated_ = false;
              })
              .eagerlyEvaluate(nullptr);
}

// Takes the place of workerd's TrainingLoop; the loop itself is the same.
class SimWorker::Steps final : public train::StepWorker {
 public:
  Steps(SimWorker& worker, SimClient& client) : worker_(worker), client_(client) {}

  void onFirst(const replication::StepState& state) override {
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onDue(const replication::StepState& state) override {
    if (worker_.supervisor_) worker_.supervisor_->onStep(state);
  }
  float compute(const replication::StepState& due) override {
    has_begun_exchange_ = false;
    if (!hasRowsOf(due))
      worker_.ledger_.complain(fmt::format("{} computes step {} with other rows",
                                           worker_.process_->name, due.next_step));
    const Push push = worker_.pushOf(due);
    if (worker_.isEmpty(push)) return 0;  // as in TrainingLoop::compute()
    if (worker_.plan_.streamsGradients() && isUnweighed(worker_.weightsOf(push))) {
      computeStreamed(due);
    } else {
      worker_.compute(client_);
    }
    return worker_.loss();
  }
  bool hasBegunExchange() const override { return has_begun_exchange_; }
  void beforePush(const replication::StepState& due) override {
    if (hasBegunExchange()) return;
    worker_.due_ = due;
    worker_.beforePush(client_, worker_.pushOf(due));
    if (worker_.plan_.namesRows()) nameRows(due.next_step + 1);
    if (worker_.ledger_.endsPart(worker_.pushOf(due)))
      worker_.hooks_.on_moment(worker_, Fault::Since::kPartDone, false);
  }
  bool hasRowsOf(const replication::StepState& due) override {
    return !worker_.plan_.namesRows() || named_for_ == due.next_step;
  }
  void wantRowsOf(const replication::StepState& due) override { nameRows(due.next_step); }
  void beforeFirst() override { named_for_.reset(); }
  void onRows(const replication::StepState& state) override {
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onWentBack(const replication::StepState& state) override {
    worker_.hooks_.log(
        fmt::format("{} went back to step {}", worker_.process_->name, state.next_step));
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onAnswer(const replication::StepState& due, const replication::StepState& state) override {
    worker_.afterPush(client_, worker_.pushOf(due), state);
  }

 private:
  // Names all rows for that step, because the ledger judges whole arenas.
  void nameRows(uint64_t step) {
    named_for_ = step;
    const auto rows = static_cast<uint32_t>(worker_.ledger_.elements());
    arena::RowSet all{{rows}, std::vector<uint32_t>(rows)};
    std::iota(all.ids.begin(), all.ids.end(), 0);
    for (uint32_t ps = 0; ps < worker_.plan_.shards(); ++ps)
      if (worker_.plan_.isSparse(ps)) client_.setRows(exchange::RowsOf::kParameters, ps, all);
  }

  // Mirrors TrainingLoop::listenerFor().
  static bool isUnweighed(const BatchWeights& weights) {
    return weights.gradient == 1 && weights.rows == 1;
  }

  // Until the batch is computed the arenas have the gradient of the one before.
  void computeStreamed(const replication::StepState& due) {
    worker_.due_ = due;
    client_.begin(due.next_step, due.next_batch, worker_.loss(), exchange::Gradient::kGrowing);
    has_begun_exchange_ = true;
    worker_.compute(client_);
    worker_.beforePush(client_, worker_.pushOf(due));
    client_.written(std::vector<uint64_t>(worker_.plan_.shards(), worker_.ledger_.elements()));
  }

  SimWorker& worker_;
  SimClient& client_;
  bool has_begun_exchange_ = false;
  std::optional<uint64_t> named_for_;  // the step of the last request for rows
};

// Mirrors TrainingLoop::batchOf().
uint64_t SimWorker::numberOf(const Push& push) const {
  const uint32_t of_step = replication::batchesOfOrderStep(model_.replication, plan_.workers);
  return cluster::globalBatch(push.step, push.batch, rank_, plan_.workers, of_step);
}

bool SimWorker::isEmpty(const Push& push) const {
  if (!batches_) return false;
  const cluster::BatchRange range = batches_->range(numberOf(push));
  ledger_.onBatch(push, range);
  return range.count == 0;
}

// Mirrors TrainingLoop::finishGradients().
BatchWeights SimWorker::weightsOf(const Push& push) const {
  if (!batches_) return {};
  const uint64_t number = numberOf(push);
  return {static_cast<float>(batches_->weight(number)),
          static_cast<float>(train::rowWeight(*batches_, number))};
}

Push SimWorker::pushOf(const replication::StepState& due) const {
  return {rank_, number_, due.next_step, due.next_batch};
}

// An arena still holds its last push, which is erased first. Where exchanges overlap, each ps has
// two arenas, used in turns.
void SimWorker::beforePush(SimClient& client, const Push& push) {
  std::optional<Push>& written = written_[plan_.overlaps() ? pushes_++ % 2 : 0];
  for (uint32_t ps = 0; ps < plan_.shards(); ++ps) {
    if (written) ledger_.eraseGradient(*written, ps, client.placeOf(ps));
    ledger_.writeGradient(push, weightsOf(push), ps, client.placeOf(ps));
  }
  written = push;
  if (fenced_) ledger_.forbid(push);
  echo_draw_ = environment_.random.uniform();
  if (echo_draw_ < plan_.early_echo_share) echo(push);
}

void SimWorker::afterPush(SimClient& client, const Push& push,
                          const replication::StepState& state) {
  hooks_.log(fmt::format("{} {} {} -> step {} batch {}{}", process_->name,
                         state.outcome == replication::Outcome::kApplied  ? "applied"
                         : state.outcome == replication::Outcome::kQueued ? "queued"
                                                                          : "stale",
                         push.text(), state.next_step, state.next_batch,
                         state.done ? ", done" : ""));
  ledger_.onAnswer(push, state, arenas());
  hooks_.on_step();
  const bool early = echo_draw_ < plan_.early_echo_share;
  if (!early && echo_draw_ < plan_.early_echo_share + plan_.echo_share) echo(push);
}

void SimWorker::requestStop() {
  control_->requestStop(
      [this](const Error& error) { hooks_.log("not stopped: " + error.message()); });
}

// The chief restores or initialises, the others wait for it.
void SimWorker::join(SimClient& client, kj::WaitScope& scope) {
  client.declare(model_);
  joined_ = true;
  hooks_.on_joined(*this);
  if (plan_.echo_share + plan_.early_echo_share > 0) {
    echo_ps_ = static_cast<uint32_t>(environment_.random.below(plan_.shards()));
    // The echo link does not share memory. A ps continues with the first copy of a repeated
    // gradient and reads it from that copy's arena, where a repeating worker still has it. This one
    // erases its arena when it gives way.
    wire::LinkOptions link = options_.link;
    link.share_from_bytes = std::nullopt;
    echo_link_ = std::make_unique<wire::PsDataLink>(
        data_loop_, std::move(link), echo_ps_, options_.ps[echo_ps_],
        wire::ShardTraffic{.job = {.codec = model_.replication.transfer_dtype},
                           .elements = ledger_.elements(),
                           .sparse = arena::sparseSlices(model_.layout, echo_ps_)});
    client.await(echo_link_->open());
  }
  if (rank_ != kChief.index) return client.waitInitialised();
  std::vector<float> values(ledger_.elements());
  ledger_.writeInitial(number_, values.data());
  const std::vector<std::span<const float>> shards(plan_.shards(), values);
  if (plan_.supervised()) {
    supervisor_ = std::make_unique<SimSupervisor>(
        environment_, plan_, hooks_.reached_step(), *control_, control_loop_,
        SimSupervisor::Hooks{hooks_.log, hooks_.on_saved,
                             [this](const train::WentBack& back) {
                               hooks_.log(back.reason);
                               hooks_.on_went_back();
                             },
                             [this](const Error& error) { control_->abort(error); },
                             hooks_.on_going_back, hooks_.on_refilled});
    std::optional<uint64_t> epoch = supervisor_->begin(model_, options_.link.incarnation, scope);
    hooks_.on_restored(!epoch, supervisor_->restoredStep());
    for (; epoch; epoch = supervisor_->begin(model_, options_.link.incarnation, scope))
      client.initialise(shards, *epoch);
    return supervisor_->start(fibers_, scope);
  }
  client.initialise(shards, replication::kFirstEpoch);
  client.waitInitialised();
}

// Mirrors WorkerJob::canLeaveWithout().
bool SimWorker::canLeaveWithout(const Error& error) const {
  const bool is_lost =
      error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
  if (!plan_.supervised() || !is_lost) return false;
  hooks_.log(fmt::format("{} leaves unanswered: {}", process_->name, error.message()));
  return true;
}

// Mirrors WorkerJob::isOverOnceSaved().
bool SimWorker::isOverOnceSaved(const std::function<bool()>& is_over) const {
  try {
    return is_over();
  } catch (const Error& error) {
    if (rank_ == kChief.index || !canLeaveWithout(error)) throw;
    return true;
  }
}

void SimWorker::finishAsChief(SimClient& client,
                              const std::function<bool(const replication::StepState&)>& is_over,
                              bool is_saved) {
  hooks_.on_moment(*this, Fault::Since::kLastEvaluation, is_saved);
  if (plan_.evaluation > Duration{0})
    client.await(data_loop_.timer().afterDelay(net::toKj(plan_.evaluation)));
  const replication::StepState state = client.pull();
  if (!is_over(state))
    throw Error(ErrorCode::kUnavailable, process_->name +
                                             ": the ps went back after the last step, when "
                                             "others had left the job");
  ledger_.onFinal(number_, state, arenas(), hooks_.stopped());
  if (is_saved) hooks_.on_rest(state.global_step);
  hooks_.on_moment(*this, Fault::Since::kResult, is_saved);
}

// Mirrors daemons/workerd/worker_job.cc.
void SimWorker::train(kj::WaitScope& scope) {
  SimClient client(*control_, *data_, scope);
  join(client, scope);
  hooks_.on_ready(*this);
  client.barrier(replication::kStartBarrier);
  hooks_.log(process_->name + " starts to train");
  bool saved = false;
  replication::StepState end;
  // Mirrors TrainingResult::isOver().
  const auto is_over = [&](const replication::StepState& state) {
    return state.done || (state.epoch == end.epoch && state.global_step >= end.global_step);
  };
  for (;;) {
    training_now_ = has_trained_ = true;
    Steps steps(*this, client);
    end = plan_.overlaps() ? train::trainOverlapped(client, steps, plan_.steps)
                           : train::trainSteps(client, steps);
    const uint64_t epoch = end.epoch;
    training_now_ = false;
    if (supervisor_ && end.global_step < plan_.steps) requestStop();
    hooks_.on_moment(*this, Fault::Since::kFirstTrained, false);
    client.barrier(replication::trainedBarrier(epoch));
    // Mirror WorkerJob::areAllAtRest() and isOverOnceSaved().
    const auto are_all_at_rest = [&] {
      const replication::StepState state = client.pull();
      return state.epoch == epoch && is_over(state);
    };
    if (supervisor_) hooks_.on_moment(*this, Fault::Since::kLastSave, false);
    saved = supervisor_ && are_all_at_rest() && supervisor_->saveAtRest();
    if (supervisor_) hooks_.on_moment(*this, Fault::Since::kLastSaved, saved);
    client.barrier(replication::savedBarrier(epoch));
    hooks_.on_moment(*this, Fault::Since::kFirstMet, saved);
    if (isOverOnceSaved([&] {
          return rank_ == kChief.index && !saved ? are_all_at_rest() : is_over(client.pull());
        }))
      break;
  }
  const bool is_chief = rank_ == kChief.index;
  if (is_chief) finishAsChief(client, is_over, saved);
  hooks_.on_moment(*this, is_chief ? Fault::Since::kChiefLeaves : Fault::Since::kFirstLeaves,
                   saved);
  try {
    client.leave();
  } catch (const Error& error) {
    if (!canLeaveWithout(error)) throw;
  }
  finished_unheard_ = control_->finishedUnheard();
}

}  // namespace dtf::sim
