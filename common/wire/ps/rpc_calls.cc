#include "common/wire/ps/rpc_calls.h"

#include <fmt/format.h>
#include <kj/vector.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/replication/barrier.h"
#include "common/replication/replication_rules.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

constexpr Duration kWatchEvery = std::chrono::seconds(1);
constexpr Duration kReportEvery = std::chrono::seconds(3);

}  // namespace

Abort::Abort() : aborted_(nullptr) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  fulfiller_ = kj::mv(pair.fulfiller);
  aborted_ = pair.promise.fork();
}

void Abort::fail(const Error& error) {
  has_failed_ = true;
  fulfiller_->reject(net::toKj(error));
}

// ---- control

ControlCalls::ControlCalls(net::Loop& loop, const RpcClientOptions& options, Events events)
    : loop_(loop), options_(options), on_lost_(std::move(events.on_lost)) {
  DTF_CHECK(!options.ps.empty());
  DTF_CHECK(on_lost_ != nullptr);
  kj::Vector<kj::Promise<void>> opened;
  for (uint32_t i = 0; i < options.ps.size(); ++i) {
    PsControlLink::Events of_link;
    of_link.on_lost = [this](const Error& error) { abort(error); };
    of_link.on_stop_wanted = [this, i] { stopWanted(i); };
    of_link.on_replaced = [this, i] { onReplaced(i); };
    of_link.on_waiting = options.on_waiting;
    of_link.on_broken = [this, i, told = events.on_broken](const Error& why) {
      if (told) told(i, why);
      if (on_break_) on_break_(i, why);
    };
    if (events.on_awaited)
      of_link.on_awaited = [i, told = events.on_awaited](const Awaited& awaited) {
        told(i, awaited);
      };
    links_.push_back(
        std::make_unique<PsControlLink>(loop, options.link, i, options.ps[i], std::move(of_link)));
    opened.add(links_.back()->open());
  }
  opened_ = joinAll(kj::mv(opened)).fork();
}

void ControlCalls::abort(const Error& error) {
  abort_.fail(error);
  on_lost_(error);
}

// Requests the end of the job when ps/0 is connected; another ps may have received its signal
// before that. A new process of ps/0 gets the request again.
kj::Promise<void> ControlCalls::askToStop() {
  stop_asked_ = true;
  return abort_
      .guard(opened_.addBranch().then([this] {
        return awaitNamed(loop_.timer(),
                          {host(0).name() + " to stop the job", std::chrono::seconds(10)},
                          links_[0]->requestStop());
      }))
      .catch_([this](kj::Exception&& exception) {
        const ErrorCode code = net::toError(exception).code();
        stop_asked_ = code == ErrorCode::kDeadline || code == ErrorCode::kUnavailable;
        kj::throwFatalException(kj::mv(exception));
      });
}

// Handles a new process of a ps, which has the model but no values.
void ControlCalls::onReplaced(uint32_t ps_task) {
  log::warning("event=ps_replaced ps={}", host(ps_task).name());
  if (ps_task == 0 && stop_asked_) passOnStop();
  if (options_.on_replaced) options_.on_replaced(ps_task);
}

// Handles a ps that has received a signal, and wants the job to stop first.
void ControlCalls::stopWanted(uint32_t ps_task) {
  told_to_end_.insert(ps_task);
  passOnStop();
}

// Requests a reply of every ps first: another worker may have stopped the job before this one knew
// which ps have received a signal.
kj::Promise<std::set<uint32_t>> ControlCalls::toldToEnd() {
  return onEvery([](PsControlLink& link) { return link.hear(); }).then([this] {
    return told_to_end_;
  });
}

void ControlCalls::passOnStop() {
  stopping_ = askToStop().eagerlyEvaluate([](kj::Exception&& e) {
    log::warning("event=stop_refused reason=\"{}\"", net::toError(e).message());
  });
}

void ControlCalls::requestStop(std::function<void(const Error&)> refused) {
  asked_to_stop_ = askToStop().eagerlyEvaluate(
      [refused = std::move(refused)](kj::Exception&& e) { refused(net::toError(e)); });
}

void ControlCalls::setEvaluating(bool evaluates) {
  for (const auto& link : links_) link->setEvaluating(evaluates);
}

// Calls `call(link)` for every ps at once, and waits for all replies or for the first error.
template <class Fn>
kj::Promise<void> ControlCalls::onEvery(Fn call) {
  kj::Vector<kj::Promise<void>> promises;
  for (auto& link : links_) promises.add(call(*link));
  return abort_.guard(joinAll(kj::mv(promises)));
}

kj::Promise<void> ControlCalls::declare(const arena::ModelDeclaration& declaration) {
  return onEvery([&](PsControlLink& link) { return link.declare(declaration); });
}

kj::Promise<void> ControlCalls::waitInitialised() {
  return onEvery([](PsControlLink& link) { return link.waitInitialised(); });
}

kj::Promise<void> ControlCalls::barrier(std::string_view name) {
  return abort_.guard(
      links_[0]->barrier(name, replication::barrierTimeout(name, options_.link.timeouts)));
}

void ControlCalls::hear(uint32_t ps_task, std::function<void()> heard) {
  DTF_CHECK(ps_task < links_.size() && heard != nullptr);
  hearing_.insert_or_assign(
      ps_task, links_[ps_task]->hear().then(std::move(heard)).eagerlyEvaluate([](kj::Exception&&) {
      }));  // on_lost reports the error
}

kj::Promise<void> ControlCalls::pause() {
  return onEvery([](PsControlLink& link) { return link.pause(); });
}

kj::Promise<void> ControlCalls::finish() {
  return onEvery([](PsControlLink& link) { return link.finish(); });
}

bool ControlCalls::finishedUnheard() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->finishedUnheard(); });
}

// Reports to each ps independently, since one may be gone. A worker that fails at once may have to
// wait for its hellos first.
kj::Promise<void> ControlCalls::fail(const Error& error, FailureOf failure_of, Duration patience) {
  DTF_CHECK(patience > Duration{0});
  return opened_.addBranch()
      .catch_([](kj::Exception&&) {})
      .exclusiveJoin(loop_.timer().afterDelay(net::toKj(patience)))
      .then([this, error, failure_of] {
        kj::Vector<kj::Promise<void>> told;
        for (auto& link : links_)
          told.add(link->fail(error, failure_of).catch_([](kj::Exception&& e) {
            log::info("event=failure_not_told reason=\"{}\"", net::toError(e).message());
          }));
        return joinAll(kj::mv(told));
      })
      .exclusiveJoin(loop_.timer().afterDelay(net::toKj(2 * patience)).then([patience] {
        log::info("event=failure_not_told reason=\"no reply for {:g} s\"", toSeconds(2 * patience));
      }));
}

// ---- data

DataCalls::DataCalls(net::Loop& loop, const RpcClientOptions& options, Ask ask)
    : loop_(loop),
      clock_(loop.clock(), kWatchEvery),
      options_(options),
      ask_(std::move(ask)),
      questions_(options.ps.size()),
      parameters_(options.ps.size()),
      gradients_(options.ps.size()),
      answered_(options.ps.size(), true),
      awaited_(options.ps.size()) {}

// "worker/1 in step 12 (says ps/0), ps/1 to come back (lost 4 s ago), ps/2 to answer the step".
std::string DataCalls::unansweredText() const {
  std::string text;
  for (uint32_t i = 0; i < answered_.size(); ++i) {
    if (answered_[i]) continue;
    const std::string ps = hostOf(options_.link, i).name();
    text += text.empty() ? "" : ", ";
    if (const std::optional<TimePoint> since = links_[i]->brokenSince())
      text += fmt::format("{} to come back (lost {:.0f} s ago)", ps,
                          toSeconds(loop_.clock().now() - *since));
    else
      text += awaited_[i].whom.empty() ? ps + " to answer the step"
                                       : fmt::format("{} (says {})", awaited_[i].whom, ps);
  }
  return text;
}

// Returns whether a lost worker or a lost ps may return. Both have a deadline of their own,
// timeouts.rejoin_seconds, which a ps or the link enforces. A lost ps counts even if it has replied
// to this call: another ps may wait for workers that wait for it.
bool DataCalls::awaitsReturn() const {
  for (uint32_t i = 0; i < links_.size(); ++i)
    if (awaited_[i].is_return || links_[i]->brokenSince()) return true;
  return false;
}

kj::Promise<void> DataCalls::askWhetherThere(uint32_t ps_task) {
  DTF_CHECK(ask_ != nullptr);
  auto heard = kj::newPromiseAndFulfiller<void>();
  Question& question = questions_.at(ps_task);
  question.answered = kj::mv(heard.fulfiller);
  ask_(ps_task, ++question.number);
  return kj::mv(heard.promise);
}

void DataCalls::heard(uint32_t ps_task, uint64_t question) {
  Question& last = questions_.at(ps_task);
  DTF_CHECK(question <= last.number);
  if (question == last.number) last.answered->fulfill();
}

void DataCalls::onBroken(uint32_t ps_task, const Error& why) {
  if (ps_task < links_.size()) links_[ps_task]->giveUp(why);
}

// Checks the calls in flight once a second: it logs the ps without a reply, and fails at the
// deadline. All steps share one timer, since a timer for each step would cost more than the rest of
// its bookkeeping.
kj::Promise<void> DataCalls::watch(Duration deadline, Duration reported) {
  return loop_.timer().afterDelay(net::toKj(kWatchEvery)).then([this, deadline, reported] {
    const TimePoint now = clock_.now();  // in every turn, which an AwakeClock requires
    if (isWriting()) call_.since = now;  // the ps wait for this worker
    const Duration waited = unanswered_ > 0 ? now - call_.since : Duration{0};
    if (awaitsReturn()) call_.deadline_from = now;
    if (waited < kReportEvery) return watch(deadline, Duration{0});
    if (waited - reported < kReportEvery) return watch(deadline, reported);
    const std::string what = unansweredText();
    log::info("event=waiting for=\"{}\" waited_s={:.0f}", what, toSeconds(waited));
    if (options_.on_waiting) options_.on_waiting(what, waited);
    if (now - std::max(call_.since, call_.deadline_from) >= deadline)
      abort_.fail(Error(ErrorCode::kDeadline,
                        fmt::format("waited {:.0f} s in a step for {}", toSeconds(waited), what)));
    return watch(deadline, waited);
  });
}

kj::Promise<void> DataCalls::open(const arena::ModelDeclaration& declaration) {
  DTF_CHECK(links_.empty());
  DTF_CHECK(declaration.layout.shards.size() == options_.ps.size());
  settlement_.emplace(declaration.replication, static_cast<uint32_t>(options_.ps.size()),
                      options_.link.self.name());
  kj::Vector<kj::Promise<void>> opened;
  for (uint32_t i = 0; i < options_.ps.size(); ++i) {
    std::function<kj::Promise<void>()> before_reopening;
    if (ask_) before_reopening = [this, i] { return askWhetherThere(i); };
    links_.push_back(std::make_unique<PsDataLink>(
        loop_, options_.link, i, options_.ps[i],
        trafficOf(declaration, options_.link.self.index, i), std::move(before_reopening)));
    opened.add(links_[i]->open().then([this, i] { gradients_[i] = links_[i]->gradients(); }));
  }
  overlaps_ = declaration.replication.overlap;
  reported_.are_compared = replication::awaitsAll(declaration.replication);
  const Duration deadline = fromSeconds(options_.link.timeouts.step_seconds + 5);
  watchdog_ = watch(deadline, Duration{0}).eagerlyEvaluate(nullptr);
  return abort_.guard(joinAll(kj::mv(opened)));
}

void DataCalls::setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) {
  links_.at(ps_task)->setRows(row_counts);
  gradients_[ps_task] = links_[ps_task]->gradients();
}

void DataCalls::wantRows(uint32_t ps_task, const arena::RowSet& rows) {
  links_.at(ps_task)->wantRows(rows);
}

bool DataCalls::streams() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->streams(); });
}

void DataCalls::begin(exchange::Gradient gradient) {
  DTF_CHECK(gates_.empty());
  DTF_CHECK(overlaps_ == (gradient == exchange::Gradient::kWhole));
  for (uint32_t i = 0; i < links_.size(); ++i) {
    if (overlaps_) {
      links_[i]->turn();
      gradients_[i] = links_[i]->gradients();
    } else {
      gates_.push_back(links_[i]->startPush());
    }
  }
}

void DataCalls::written(std::span<const uint64_t> elements) {
  DTF_CHECK(elements.size() == gates_.size());
  for (size_t i = 0; i < gates_.size(); ++i) links_[i]->gradientWritten(*gates_[i], elements[i]);
}

void DataCalls::sendMore() {
  for (const auto& link : links_) link->sendMore();
  call_.since = clock_.now();
}

bool DataCalls::isWriting() const {
  return std::ranges::any_of(gates_, [](const auto& gate) { return !gate->isOpen(); });
}

// Releases the parameters that the caller used for computing during the previous exchange.
void DataCalls::releaseEarlier() {
  if (overlaps_ || !gates_.empty()) return;
  for (const auto& link : links_) link->releaseEarlier();
}

kj::Promise<void> DataCalls::initialise(std::span<const std::span<const float>> shards,
                                        uint64_t epoch) {
  DTF_CHECK(shards.size() == links_.size());
  kj::Vector<kj::Promise<void>> promises;
  for (uint32_t i = 0; i < shards.size(); ++i)
    promises.add(links_[i]->initialise(shards[i], epoch));
  return abort_.guard(joinAll(kj::mv(promises)));
}

// Returns `answer`, and counts `ps_task` as unanswered until it comes.
kj::Promise<void> DataCalls::watched(uint32_t ps_task, kj::Promise<void> answer) {
  DTF_CHECK(answered_.at(ps_task));  // one call at a time
  answered_[ps_task] = false;
  ++unanswered_;
  const auto note = [this, ps_task] {
    DTF_CHECK(unanswered_ > 0 && !answered_[ps_task]);
    answered_[ps_task] = true;
    --unanswered_;
  };
  return answer.then(kj::cp(note), [note](kj::Exception&& exception) {
    note();
    kj::throwFatalException(kj::mv(exception));
  });
}

// Makes all `calls` at once, each on the link that it names, and waits for all replies.
kj::Promise<void> DataCalls::send(const std::vector<Call>& calls) {
  kj::Vector<kj::Promise<void>> promises;
  call_.since = clock_.now();
  for (const Call& call : calls) {
    const uint32_t ps = call.ps_task;
    promises.add(watched(ps, call.start(*links_[ps]).then([this, ps](replication::StepState state) {
      settlement_->answered(ps, state);
      noteAnswer(state);
      parameters_[ps] = links_[ps]->parameters();
    })));
  }
  return abort_.guard(joinAll(kj::mv(promises)));
}

// Returns the state that all ps agree on; pulls again until there is one.
kj::Promise<replication::StepState> DataCalls::settle() {
  const std::vector<exchange::Agreement::Pull> pulls =
      net::bridgeErrors([this] { return settlement_->again(); });
  if (pulls.empty()) {
    epoch_ = settlement_->state().epoch;
    const replication::StepState& state = settlement_->state();
    progress_ = state.done && state.progress > 0 ? replication::kProgressEnd : state.progress;
    replication::StepState settled = state;
    settled.waited = waited();
    return settled;
  }
  std::vector<Call> calls;
  for (const exchange::Agreement::Pull& pull : pulls)
    calls.push_back({pull.ps_task, [wanted = pull.wanted, epoch = pull.epoch](PsDataLink& link) {
                       return link.pull(wanted, epoch);
                     }});
  return send(calls).then([this] { return settle(); });
}

void DataCalls::noteAnswer(const replication::StepState& state) {
  if (state.waited == Duration{0}) call_.moving.reset();
  if (call_.moving)
    call_.moving = std::max(*call_.moving, loop_.clock().now() - call_.begun - state.waited);
}

// Returns the time that the ps let the call wait; all of its time if some ps doesn't measure that.
Duration DataCalls::waited() const {
  return std::max(loop_.clock().now() - call_.begun - call_.moving.value_or(Duration{0}),
                  Duration{0});
}

// Makes the same call to every ps. send() starts them all before it returns, so `call` may go then.
kj::Promise<replication::StepState> DataCalls::onEvery(const CallOfPs& call, bool is_push) {
  DTF_CHECK(settlement_.has_value());
  // The calls that fail() cancelled have no answers: the links take no others.
  if (abort_.hasFailed()) return abort_.guard(kj::Promise<replication::StepState>(kj::NEVER_DONE));
  releaseEarlier();
  for (const auto& link : links_) link->beginCall();
  std::vector<Call> calls;
  for (uint32_t i = 0; i < links_.size(); ++i)
    calls.push_back({i, [&call, i](PsDataLink& link) { return call(i, link); }});
  settlement_->start(is_push);
  call_.begun = loop_.clock().now();
  call_.moving = Duration{0};
  return send(calls).then([this] { return settle(); });
}

kj::Promise<replication::StepState> DataCalls::pull() {
  return onEvery(
      [told = progress_](uint32_t, PsDataLink& link) { return link.pull({.progress = told}); },
      false);
}

kj::Promise<void> DataCalls::pullAside(bool current) {
  DTF_CHECK(!links_.empty());
  if (abort_.hasFailed()) return abort_.guard(kj::Promise<void>(kj::NEVER_DONE));
  kj::Vector<kj::Promise<void>> promises;
  call_.since = clock_.now();
  for (uint32_t i = 0; i < links_.size(); ++i)
    promises.add(watched(i, links_[i]->pullAside(current)));
  return abort_.guard(joinAll(kj::mv(promises)));
}

kj::Promise<replication::StepState> DataCalls::exchange(uint64_t step, uint32_t batch, float loss) {
  const replication::PhaseTimes times = std::exchange(reported_.times, {});
  return onEvery(
      [&, this](uint32_t ps, PsDataLink& link) {
        const bool reports = reported_.are_compared && ps == 0;
        return link.exchange(
            {step, batch, loss, epoch_, progress_, reports ? times : replication::PhaseTimes()},
            gates_.empty() ? nullptr : gates_[ps]);
      },
      true);
}

}  // namespace dtf::wire
