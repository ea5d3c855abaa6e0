#include "tests/session_sim/session_client_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "tests/session_sim/served_task_sim.h"
#include "tests/session_sim/session_graph.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFloat32, shape);
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

bool isAll(const Tensor& tensor, float value) {
  const auto all = tensor.as<float>();
  return std::all_of(all.begin(), all.end(), [&](float each) { return each == value; });
}

wire::SessionLimits limitsOf(const SessionPlan& plan) {
  return {.step_max = plan.step_max, .abort_max = plan.abort_max};
}

}  // namespace

// The tasks of one session, with a trace of its steps for a stranger.
class SessionClientSim::TracedTasks final : public FiberTasks {
 public:
  TracedTasks(wire::SessionCalls& calls, const runtime::KernelTable& kernels, SessionTrace& trace)
      : FiberTasks(calls, kernels), trace_(trace) {}

 private:
  void registering(uint64_t plan, const std::vector<engine::TaskPart>& parts) override;
  void ended(uint64_t plan, uint64_t step) override {
    if (plan == trace_.plan) trace_.ended_step = step;
  }

  SessionTrace& trace_;
};

void SessionClientSim::TracedTasks::registering(uint64_t plan,
                                                const std::vector<engine::TaskPart>& parts) {
  for (const engine::TaskPart& part : parts) {
    for (const engine::TaskPart::Edge& edge : part.edges) {
      const graph::Node& node = part.graph.node(edge.node);
      if (part.task != TaskId{JobKind::kPs, 0} || edge.peer != TaskId{JobKind::kWorker, 0} ||
          node.op != "_Recv" || trace_.plan != 0)
        continue;
      trace_.edge = edge.number;
      trace_.bytes = node.outputs[0].bytes();
      trace_.plan = plan;
    }
  }
}

SessionClientSim::SessionClientSim(const Environment& environment, const SessionPlan& plan,
                                   const runtime::KernelTable& kernels, const kj::FiberPool& fibers,
                                   uint32_t index, ClientTally& tally, Hooks hooks)
    : environment_(environment),
      plan_(plan),
      kernels_(kernels),
      fibers_(fibers),
      index_(index),
      tally_(tally),
      hooks_(std::move(hooks)),
      process_(std::make_shared<Process>(fmt::format("client/{}.{}", index, tally.processes++))),
      loop_(environment, process_) {
  work_ = fibers
              .startFiber([this](kj::WaitScope& scope) {
                work(scope);
                environment_.scheduler.after({}, process_, [this] { hooks_.on_ended(*this); });
              })
              .eagerlyEvaluate(nullptr);
}

SessionClientSim::~SessionClientSim() noexcept(false) {
  for (auto* const fiber : {&lookups_, &puts_, &takes_}) fiber->reset();
  work_ = nullptr;
  session_ = nullptr;
  calls_ = nullptr;
}

void SessionClientSim::work(kj::WaitScope& scope) {
  while (tally_.ended_well < plan_.steps) {
    const TimePoint begun = loop_.clock().now();
    const std::optional<Error> failed = runSession(scope);
    if (!failed) continue;
    judge(*failed, begun, false);
    hooks_.log(fmt::format("{} lost its session: {}", process_->name, failed->message()));
    const auto pause = static_cast<int64_t>(10 + environment_.random.below(300));
    loop_.timer().afterDelay(pause * kj::MILLISECONDS).wait(scope);
  }
}

// Both fibers end before the session does, for any reason. No fiber waits while it handles an
// exception: all fibers of the thread share one stack of exceptions.
std::optional<Error> SessionClientSim::runSession(kj::WaitScope& scope) {
  std::optional<Error> failed;
  try {
    open(scope);
    if (plan_.lookups)
      lookups_ = fibers_.startFiber([this](kj::WaitScope& own) { runLookups(own); })
                     .eagerlyEvaluate(nullptr);
    if (plan_.jobs) {
      puts_ =
          fibers_.startFiber([this](kj::WaitScope& own) { runPuts(own); }).eagerlyEvaluate(nullptr);
      takes_ = fibers_.startFiber([this](kj::WaitScope& own) { runTakes(own); })
                   .eagerlyEvaluate(nullptr);
    }
    runSteps(scope);
  } catch (const Error& error) {
    failed = error;
  }
  ending_ = true;
  for (auto* const fiber : {&lookups_, &puts_, &takes_}) {
    if (*fiber) (*fiber)->wait(scope);
    fiber->reset();
  }
  trace_ = nullptr;
  session_ = nullptr;
  tasks_ = nullptr;
  calls_ = nullptr;
  return failed;
}

void SessionClientSim::open(kj::WaitScope& scope) {
  const uint32_t number = tally_.sessions++;
  const std::string container = fmt::format("{}.{}", index_, number);
  begun_ = well_ = looked_up_ = failed_in_turn_ = 0;
  ending_ = closing_ = is_given_up_ = false;
  jobs_ = JobLedger();
  jobs_put_ = jobs_taken_ = 0;
  aborts_.clear();
  trace_ = std::make_shared<SessionTrace>();
  Random& random = environment_.random;
  trace_->token = {.number = 1 + random.below(uint64_t{1} << 62),
                   .secret = {1 + random.below(uint64_t{1} << 62), number}};
  std::vector<wire::RemoteTarget> targets;
  for (const TaskId task : tasksOf(plan_)) targets.push_back({addressOf(task), task});
  calls_ = std::make_unique<wire::SessionCalls>(loop_, std::move(targets), limitsOf(plan_));
  auto tasks = std::make_unique<TracedTasks>(*calls_, kernels_, *trace_);
  tasks->runsIn(scope);
  tasks->await(calls_->open(trace_->token));
  tasks_ = tasks.get();
  session_ = std::make_unique<engine::Session>(graphOf(plan_, container), std::move(tasks));
  session_->setVariable("w", filled({plan_.elements}, static_cast<float>(index_ + 1)));
  session_->setVariable("count", filled({plan_.elements}, 0));
  Tensor table(DType::kFloat32, {kRows, kColumns});
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    table.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  session_->setVariable("table", table);
  hooks_.log(fmt::format("{} has session {}", process_->name, number));
}

void SessionClientSim::runSteps(kj::WaitScope& scope) {
  while (tally_.ended_well < plan_.steps) {
    tasks_->runsIn(scope);
    if (plan_.abort_share > 0 && environment_.random.uniform() < plan_.abort_share) abortSoon();
    if (step(false, well_, [this] { train(); })) {
      failed_in_turn_ = 0;
      ++tally_.ended_well;
      tasks_->runsIn(scope);
      if (!plan_.lookups && !plan_.jobs && environment_.random.below(3) == 0) judgeLoad();
    } else if (++failed_in_turn_ == 3) {
      throw Error(ErrorCode::kUnavailable, "three steps in turn have failed");
    }
  }
}

void SessionClientSim::runLookups(kj::WaitScope& scope) {
  while (!ending_) {
    tasks_->runsIn(scope);
    const bool is_bad = plan_.bad_share > 0 && environment_.random.uniform() < plan_.bad_share;
    const auto look = [&] {
      Tensor at(DType::kInt32, {2});
      const auto row = static_cast<int32_t>(environment_.random.below(kRows));
      at.as<int32_t>()[0] = row;
      at.as<int32_t>()[1] = is_bad ? static_cast<int32_t>(kRows) + 7 : row;
      const std::vector<engine::Feed> feeds = {{"at", &at}};
      const std::vector<Tensor> values = session_->run(feeds, std::vector<std::string>{"doubled"});
      const Tensor& got = values.at(0);
      for (size_t i = 0; i < 2 * kColumns; ++i)
        if (got.as<float>()[i] !=
            static_cast<float>(2 * (row * kColumns + static_cast<int64_t>(i % kColumns))))
          return hooks_.complain(
              fmt::format("{} looked up {}, got {}", process_->name, row, got.as<float>()[i]));
      if (is_bad)
        hooks_.complain(process_->name + " looked up what isn't there, and got something");
    };
    step(is_bad, looked_up_, look);
    const auto pause = static_cast<int64_t>(1 + environment_.random.below(50));
    loop_.timer().afterDelay(pause * kj::MILLISECONDS).wait(scope);
  }
}

// At the end it closes the queue, so that runTakes() ends, too.
void SessionClientSim::runPuts(kj::WaitScope& scope) {
  while (!ending_) {
    tasks_->runsIn(scope);
    Tensor job(DType::kInt32, {1});
    job.as<int32_t>()[0] = jobs_.next();
    const std::vector<engine::Feed> feeds = {{"job", &job}};
    const auto put = [&] { session_->run(feeds, {}, std::vector<std::string>{"put"}); };
    if (!step(false, jobs_put_, put)) jobs_.stepFailed();
    const auto pause = static_cast<int64_t>(1 + environment_.random.below(50));
    loop_.timer().afterDelay(pause * kj::MILLISECONDS).wait(scope);
  }
  tasks_->runsIn(scope);
  uint32_t never = 0;
  closing_ = true;
  if (step(false, never, [&] { session_->run({}, {}, std::vector<std::string>{"close"}); })) return;
  // The queue cannot be closed: an abort ends the step that waits for a job.
  is_given_up_ = true;
  aborts_.push_back({loop_.clock().now(), process_->name + " puts no more jobs in"});
  calls_->abortSteps(Error(ErrorCode::kUnavailable, aborts_.back().text));
}

void SessionClientSim::runTakes(kj::WaitScope& scope) {
  std::string wrong;
  bool is_over = false, is_lost = false;
  const auto take = [&] {
    try {
      const auto values = session_->run({}, std::vector<std::string>{"take"});
      wrong = jobs_.taken(values.at(0).as<int32_t>()[0]);
    } catch (const Error& error) {
      is_over = error.code() == ErrorCode::kOutOfRange && closing_;
      // The queue may be lost with its task after it was closed.
      is_lost = error.code() == ErrorCode::kUnavailable && closing_ && plan_.losesTasks();
      if (!is_over) throw;
      wrong = jobs_.ended();
    }
  };
  while (!is_over && !is_lost && !is_given_up_) {
    tasks_->runsIn(scope);
    if (!step(false, jobs_taken_, take)) {
      jobs_.stepFailed();
      const auto pause = static_cast<int64_t>(1 + environment_.random.below(50));
      loop_.timer().afterDelay(pause * kj::MILLISECONDS).wait(scope);
    }
    if (!wrong.empty()) hooks_.complain(process_->name + " " + wrong);
    wrong.clear();
  }
}

// x differs from step to step, so that a tensor of another step is noticed.
void SessionClientSim::train() {
  const auto x = static_cast<float>(++begun_ % 1000);
  const Tensor fed = filled({plan_.elements}, x);
  const std::vector<engine::Feed> feeds = {{"x", &fed}};
  judgeValues(session_->run(feeds, std::vector<std::string>{"sum", "shown", "after"}), x);
}

void SessionClientSim::judgeValues(const std::vector<Tensor>& values, float x) {
  const float sum = 3 * (2 * x + static_cast<float>(index_ + 1)) + 2 * x;
  if (!isAll(values.at(0), sum))
    hooks_.complain(
        fmt::format("{} got {} where {} is right", process_->name, values[0].as<float>()[0], sum));
  // A failed step may have added, or not; a step that ended well has.
  const float count = values.at(2).as<float>()[0];
  if (!isAll(values[2], count) || !isAll(values.at(1), count - 1))
    hooks_.complain(fmt::format("{} read {} of a count, and left {}", process_->name,
                                values[1].as<float>()[0], count));
  if (count < static_cast<float>(well_ + 1) || count > static_cast<float>(begun_))
    hooks_.complain(
        fmt::format("{}: {} steps have added to a count, of {} that ended well and {} that began",
                    process_->name, count, well_ + 1, begun_));
}

void SessionClientSim::judgeLoad() {
  const engine::RendezvousLoad load = session_->load();
  if (!trace_->parked && load.steps + load.parked + load.owned_bytes + load.waiting > 0)
    hooks_.complain(
        fmt::format("between steps of {} {} tensors are parked, {} waited for, of {} steps",
                    process_->name, load.parked, load.waiting, load.steps));
}

void SessionClientSim::abortSoon() {
  const Duration delay(static_cast<int64_t>(environment_.random.below(40'000'000)));
  environment_.scheduler.after(delay, process_, [this] {
    if (calls_ == nullptr || session_ == nullptr || ending_) return;
    aborts_.push_back({loop_.clock().now(),
                       fmt::format("{} wants it no more ({})", process_->name, aborts_.size())});
    calls_->abortSteps(Error(ErrorCode::kUnavailable, aborts_.back().text));
  });
}

bool SessionClientSim::step(bool is_bad, uint32_t& well, const std::function<void()>& run) {
  const TimePoint begun = loop_.clock().now();
  try {
    run();
    judgeTime(begun, well++ > 0);
    return true;
  } catch (const Error& error) {
    judgeTime(begun, well > 0);
    ++tally_.failed;
    judge(error, begun, is_bad);
    return false;
  }
}

// The deadline holds for all clients. One that isn't frozen learns of a loss, or of an abort, soon.
void SessionClientSim::judgeTime(TimePoint begun, bool is_compiled) {
  using Kind = SessionFault::Kind;
  const TimePoint now = loop_.clock().now();
  const Duration compiling = is_compiled ? Duration{0} : limitsOf(plan_).register_max;
  if (!plan_.has(Kind::kFreezeClient) &&
      now - begun > compiling + plan_.step_max + plan_.abort_max + seconds(1))
    hooks_.complain(fmt::format("a step of {} lasts {:.1f} s, longer than it may", process_->name,
                                toSeconds(now - begun)));
  const std::optional<TimePoint> loss = hooks_.first_loss(begun);
  if (plan_.isPrompt() && loss && now - *loss > milliseconds(3500))
    hooks_.complain(fmt::format("a step of {} ends {:.1f} s after a loss", process_->name,
                                toSeconds(now - *loss)));
}

// Not always the newest abort: another plan's step may have begun since.
std::optional<TimePoint> SessionClientSim::abortedAt(const std::string& text,
                                                     TimePoint begun) const {
  for (const Abort& abort : aborts_)
    if (abort.at >= begun && abort.text == text) return abort.at;
  return std::nullopt;
}

void SessionClientSim::judge(const Error& error, TimePoint begun, bool is_bad) {
  const std::string& text = error.message();
  const Duration lasted = loop_.clock().now() - begun;
  const std::optional<TimePoint> aborted = abortedAt(text, begun);
  if (is_bad && text.find("index 1 is 13") != std::string::npos) {
    ++tally_.bad;
  } else if (aborted) {
    ++tally_.aborted;
    if (!plan_.has(SessionFault::Kind::kFreezeClient) &&
        loop_.clock().now() - *aborted > plan_.abort_max + seconds(1))
      hooks_.complain(fmt::format("a step of {} ends {:.1f} s after its abort", process_->name,
                                  toSeconds(loop_.clock().now() - *aborted)));
  } else if (error.code() == ErrorCode::kDeadline && lasted >= plan_.step_max) {
    ++tally_.late;
  } else if (error.code() == ErrorCode::kUnavailable &&
             (plan_.losesTasks() || text == "three steps in turn have failed")) {
    ++tally_.lost;
  } else {
    hooks_.complain(
        fmt::format("{} is told {}: {}", process_->name, errorCodeName(error.code()), text));
  }
}

}  // namespace dtf::sim
