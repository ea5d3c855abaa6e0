#include "tests/sim/sim_worker.h"

#include <fmt/format.h>

#include <numeric>

#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/ps/barrier.h"
#include "common/train/step_loop.h"
#include "tests/sim/sim_ps.h"
#include "tests/sim/sim_supervisor.h"

namespace dtf::sim {

// The blocking client, as RpcParameterClient is: here the fiber waits, there a thread.
class SimClient final : public ps::ParameterClient {
 public:
  SimClient(wire::ControlCalls& control, wire::DataCalls& data, kj::WaitScope& scope)
      : control_(control), data_(data), scope_(scope) {}
  ~SimClient() noexcept override =
      default;  // kj's promises may throw at their end: nobody could go on

  template <class T>
  T await(kj::Promise<T> promise) {
    try {
      return promise.wait(scope_);
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }

  void declare(const ps::ModelDeclaration& declaration) override {
    await(control_.opened());
    await(control_.declare(declaration));
    await(data_.open(declaration));
  }
  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override {
    await(data_.initialise(shards, epoch));
  }
  void waitInitialised() override { await(control_.waitInitialised()); }
  ps::StepState pull() override { return await(data_.pull()); }
  const float* parameters(uint32_t ps_task) const override { return data_.parameters(ps_task); }
  void pullAverages() override { await(data_.pullAside(false)); }
  const float* averages(uint32_t ps_task) const override { return data_.aside(ps_task); }
  float* gradients(uint32_t ps_task) override { return data_.gradients(ps_task); }
  void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) override {
    data_.setRows(ps_task, row_counts);
  }
  bool bringsRows() const override { return true; }
  void wantRows(uint32_t ps_task, const ps::RowSet& rows) override {
    data_.wantRows(ps_task, rows);
  }
  void pullWhole() override { await(data_.pullAside(true)); }
  const float* whole(uint32_t ps_task) const override { return data_.aside(ps_task); }
  GradientPlace placeOf(uint32_t ps_task) {
    return {[this, ps_task](auto row_counts) { data_.setRows(ps_task, row_counts); },
            [this, ps_task] { return data_.gradients(ps_task); }};
  }
  ps::StepState exchange(uint64_t step, uint32_t batch, float loss) override {
    return await(data_.exchange(step, batch, loss));
  }
  void startExchange(uint64_t step, uint32_t batch, float loss) override {
    data_.turn();
    exchange_ = data_.exchange(step, batch, loss).eagerlyEvaluate(nullptr);
  }
  ps::StepState finishExchange() override { return await(kj::mv(exchange_)); }
  bool streamsGradients() const override { return true; }
  void startPush(uint64_t step, uint32_t batch, float loss) override {
    data_.startPush();
    exchange_ = data_.exchange(step, batch, loss).eagerlyEvaluate(nullptr);
  }
  void gradientsWritten(std::span<const uint64_t> elements) override {
    data_.gradientsWritten(elements);
    data_.sendMore();
  }
  ps::StepState finishPush() override {
    KJ_DEFER(data_.endPush());
    return await(kj::mv(exchange_));
  }
  void abandonPush(const Error& why) override {
    data_.fail(why);
    data_.endPush();
  }
  void barrier(std::string_view name) override { await(control_.barrier(name)); }
  void finish() override { await(control_.finish()); }

 private:
  wire::ControlCalls& control_;
  wire::DataCalls& data_;
  kj::WaitScope& scope_;
  kj::Promise<ps::StepState> exchange_ = nullptr;  // while its worker computes
};

namespace {

// dtf-launch counts the starts; by hand the time of day tells.
Incarnation incarnationOf(const Plan& plan, uint32_t number, TimePoint now) {
  using Ticks = std::chrono::duration<uint64_t, std::ratio<1, 256>>;
  const auto ticks = std::chrono::duration_cast<Ticks>(now.time_since_epoch()).count();
  return Incarnation::of(plan.launched ? number + 1 : 0, ticks, static_cast<uint8_t>(number));
}

wire::RpcClientOptions clientOptions(const Plan& plan, uint32_t rank, Incarnation incarnation,
                                     const std::function<void()>& on_replaced) {
  const cluster::JobSpec job = jobOf(plan);
  wire::RpcClientOptions options;
  options.link = wire::linkOptions(job, {JobKind::kWorker, rank}, incarnation);
  options.ps = wire::addressesOf(job.cluster.ps);
  options.link.share_from_bytes = plan.shares_memory ? std::optional<uint64_t>(0) : std::nullopt;
  options.link.rows_share_max = 2;  // with their ids all are twice as large as the table
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

// As RpcParameterClient does.
void SimWorker::ask(uint32_t ps, uint64_t question) {
  control_loop_.post([this, ps, question] {
    control_->hear(ps, [this, ps, question] {
      data_loop_.post([this, ps, question] { data_->heard(ps, question); });
    });
  });
}

std::vector<const float*> SimWorker::arenas() const {
  std::vector<const float*> arenas;
  for (uint32_t ps = 0; ps < plan_.ps_tasks; ++ps) arenas.push_back(data_->parameters(ps));
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
  ledger_.writeGradient(push, echoPlace());
  const Duration delay(static_cast<int64_t>(environment_.random.below(3'000'000)));
  echo_ = data_loop_.timer()
              .afterDelay(net::toKj(delay))
              .then([this, push, due = due_] {
                repeated_ = true;
                return echo_link_->exchange({push.step, push.batch, 0, due.epoch, due.progress});
              })
              .then([](ps::StepState) {}, [](kj::Exception&&) {})
              .then([this, push] {
                ledger_.eraseGradient(push, echoPlace());
                echoing_ = repeated_ = false;
              })
              .eagerlyEvaluate(nullptr);
}

// What TrainingLoop is in a workerd: the loop is the same.
class SimWorker::Steps final : public train::StepWorker {
 public:
  Steps(SimWorker& worker, SimClient& client) : worker_(worker), client_(client) {}

  void onFirst(const ps::StepState& state) override {
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onDue(const ps::StepState& state) override {
    if (worker_.supervisor_) worker_.supervisor_->onStep(state);
  }
  float compute(const ps::StepState& due) override {
    has_started_push_ = false;
    if (!hasRowsOf(due))
      worker_.ledger_.complain(fmt::format("{} computes step {} with other rows",
                                           worker_.process_->name, due.next_step));
    if (worker_.plan_.streamsGradients()) {
      startPush(due);
    } else {
      worker_.compute(client_);
    }
    return worker_.loss();
  }
  bool hasStartedPush() const override { return has_started_push_; }
  void beforePush(const ps::StepState& due) override {
    if (hasStartedPush()) return;
    worker_.due_ = due;
    worker_.beforePush(client_, worker_.pushOf(due));
    if (worker_.plan_.namesRows()) nameRows(due.next_step + 1);
  }
  bool hasRowsOf(const ps::StepState& due) override {
    return !worker_.plan_.namesRows() || named_for_ == due.next_step;
  }
  void wantRowsOf(const ps::StepState& due) override { nameRows(due.next_step); }
  void beforeFirst() override { named_for_.reset(); }
  void onRows(const ps::StepState& state) override {
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onWentBack(const ps::StepState& state) override {
    worker_.hooks_.log(
        fmt::format("{} went back to step {}", worker_.process_->name, state.next_step));
    worker_.ledger_.onParameters(worker_.rank_, worker_.number_, state, worker_.arenas());
  }
  void onAnswer(const ps::StepState& due, const ps::StepState& state) override {
    worker_.afterPush(client_, worker_.pushOf(due), state);
  }

 private:
  // Of the batch of that step all of them: what comes is judged whole.
  void nameRows(uint64_t step) {
    named_for_ = step;
    const auto rows = static_cast<uint32_t>(worker_.ledger_.elements());
    ps::RowSet all{{rows}, std::vector<uint32_t>(rows)};
    std::iota(all.ids.begin(), all.ids.end(), 0);
    for (uint32_t ps = 0; ps < worker_.plan_.ps_tasks; ++ps) client_.wantRows(ps, all);
  }

  // Until the batch is computed the arenas have the gradient of the one before.
  void startPush(const ps::StepState& due) {
    worker_.due_ = due;
    client_.startPush(due.next_step, due.next_batch, worker_.loss());
    has_started_push_ = true;
    worker_.compute(client_);
    worker_.beforePush(client_, worker_.pushOf(due));
    client_.gradientsWritten(
        std::vector<uint64_t>(worker_.plan_.ps_tasks, worker_.ledger_.elements()));
  }

  SimWorker& worker_;
  SimClient& client_;
  bool has_started_push_ = false;
  std::optional<uint64_t> named_for_;  // the step for which rows were asked for last
};

Push SimWorker::pushOf(const ps::StepState& due) const {
  return {rank_, number_, due.next_step, due.next_batch};
}

// The arenas still have what was pushed from them before; where exchanges overlap there are two of
// each, in turns.
void SimWorker::beforePush(SimClient& client, const Push& push) {
  std::optional<Push>& written = written_[plan_.overlaps() ? pushes_++ % 2 : 0];
  for (uint32_t ps = 0; ps < plan_.ps_tasks; ++ps) {
    if (written) ledger_.eraseGradient(*written, client.placeOf(ps));
    ledger_.writeGradient(push, client.placeOf(ps));
  }
  written = push;
  if (fenced_) ledger_.forbid(push);
  echo_draw_ = environment_.random.uniform();
  if (echo_draw_ < plan_.early_echo_share) echo(push);
}

void SimWorker::afterPush(SimClient& client, const Push& push, const ps::StepState& state) {
  hooks_.log(fmt::format("{} {} {} -> step {} batch {}{}", process_->name,
                         state.outcome == ps::Outcome::kApplied  ? "applied"
                         : state.outcome == ps::Outcome::kQueued ? "queued"
                                                                 : "stale",
                         push.text(), state.next_step, state.next_batch,
                         state.done ? ", done" : ""));
  ledger_.onAnswer(push, state, arenas());
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
    echo_ps_ = static_cast<uint32_t>(environment_.random.below(plan_.ps_tasks));
    // Its gradients travel: a ps goes on with the one that came first, in whose arena a worker that
    // repeats it has it still. This one erases its own when it gives way.
    wire::LinkOptions link = options_.link;
    link.share_from_bytes = std::nullopt;
    echo_link_ = std::make_unique<wire::PsDataLink>(
        data_loop_, std::move(link), echo_ps_, options_.ps[echo_ps_],
        wire::ShardTraffic{.elements = ledger_.elements(),
                           .sparse = ps::sparseSlices(model_.layout, echo_ps_),
                           .narrows = plan_.narrows});
    client.await(echo_link_->open());
  }
  if (rank_ != kChief.index) return client.waitInitialised();
  std::vector<float> values(ledger_.elements());
  ledger_.writeInitial(number_, values.data());
  const std::vector<std::span<const float>> shards(plan_.ps_tasks, values);
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
  client.initialise(shards, ps::kFirstEpoch);
  client.waitInitialised();
}

// As WorkerJob::isOverOnceSaved().
bool SimWorker::isOverOnceSaved(const std::function<bool()>& is_over) const {
  try {
    return is_over();
  } catch (const Error& error) {
    const bool is_lost =
        error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
    if (rank_ == kChief.index || !plan_.supervised() || !is_lost) throw;
    hooks_.log(fmt::format("{} leaves unanswered: {}", process_->name, error.message()));
    return true;
  }
}

void SimWorker::finishAsChief(SimClient& client,
                              const std::function<bool(const ps::StepState&)>& is_over,
                              bool is_saved) {
  hooks_.on_moment(*this, Fault::Since::kLastEvaluation, is_saved);
  if (plan_.evaluation > Duration{0})
    client.await(data_loop_.timer().afterDelay(net::toKj(plan_.evaluation)));
  const ps::StepState state = client.pull();
  if (!is_over(state))
    throw Error(ErrorCode::kUnavailable, process_->name +
                                             ": the ps went back after the last step, when "
                                             "others had left the job");
  ledger_.onFinal(number_, state, arenas(), hooks_.stopped());
  if (is_saved) hooks_.on_rest(state.global_step);
  hooks_.on_moment(*this, Fault::Since::kResult, is_saved);
}

// As daemons/workerd/worker_job.cc does.
void SimWorker::train(kj::WaitScope& scope) {
  SimClient client(*control_, *data_, scope);
  join(client, scope);
  hooks_.on_ready(*this);
  client.barrier(ps::kStartBarrier);
  hooks_.log(process_->name + " starts to train");
  bool saved = false;
  ps::StepState end;
  // As TrainingResult::isOver().
  const auto is_over = [&](const ps::StepState& state) {
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
    client.barrier(ps::trainedBarrier(epoch));
    // As WorkerJob::areAllAtRest(), isOverOnceSaved().
    const auto are_all_at_rest = [&] {
      const ps::StepState state = client.pull();
      return state.epoch == epoch && is_over(state);
    };
    if (supervisor_) hooks_.on_moment(*this, Fault::Since::kLastSave, false);
    saved = supervisor_ && are_all_at_rest() && supervisor_->saveAtRest();
    if (supervisor_) hooks_.on_moment(*this, Fault::Since::kLastSaved, saved);
    client.barrier(ps::savedBarrier(epoch));
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
  client.finish();
  finished_unheard_ = control_->finishedUnheard();
}

}  // namespace dtf::sim
