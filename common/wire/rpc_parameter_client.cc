#include "common/wire/rpc_parameter_client.h"

#include <kj/vector.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

Abort::Abort() : aborted_(nullptr) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  fulfiller_ = kj::mv(pair.fulfiller);
  aborted_ = pair.promise.fork();
}

void Abort::fail(const Error& error) {
  fulfiller_->reject(net::toKj(error));
}

struct RpcParameterClient::ControlSide {
  std::vector<std::unique_ptr<PsControlLink>> links;
  Abort abort;
  kj::ForkedPromise<void> opened = nullptr;  // all links have said hello
  kj::Promise<void> stopping = nullptr;
};

struct RpcParameterClient::DataSide {
  std::vector<std::unique_ptr<PsDataLink>> links;
  Abort abort;
  // The call in flight, for the watchdog.
  TimePoint since{};
  std::vector<bool> answered;
  uint32_t unanswered = 0;
  kj::Promise<void> watchdog = nullptr;
};

namespace {

kj::Promise<void> joinAll(kj::Vector<kj::Promise<void>> promises) {
  return kj::joinPromises(promises.releaseAsArray());
}

// Looks once a second at the exchange in flight: says who has not answered, and fails at the
// deadline. One timer for all steps: a timer per step would cost more than the step's other
// bookkeeping.
template <class Side>
kj::Promise<void> watchExchange(net::IoThread& io, Side& side, Duration deadline,
                                Duration reported) {
  return io.timer().afterDelay(1 * kj::SECONDS).then([&io, &side, deadline, reported]() mutable {
    const Duration waited = side.unanswered > 0 ? SystemClock().now() - side.since : Duration{0};
    if (waited < std::chrono::seconds(3)) reported = Duration{0};
    if (waited - reported >= std::chrono::seconds(3)) {
      reported = waited;
      std::string names;
      for (size_t i = 0; i < side.answered.size(); ++i)
        if (!side.answered[i])
          names +=
              (names.empty() ? "" : ", ") + TaskId{JobKind::kPs, static_cast<uint32_t>(i)}.name();
      log::info("event=waiting for=\"{} to answer the step\" waited_s={:.0f}", names,
                toSeconds(waited));
      if (waited >= deadline)
        side.abort.fail(
            Error(ErrorCode::kDeadline,
                  fmt::format("{} did not answer a step for {:.0f} s", names, toSeconds(waited))));
    }
    return watchExchange(io, side, deadline, reported);
  });
}

}  // namespace

RpcParameterClient::RpcParameterClient(RpcClientOptions options)
    : options_(std::move(options)),
      parameters_(options_.ps.size()),
      gradients_(options_.ps.size()),
      states_(options_.ps.size()),
      asked_(options_.ps.size()),
      data_("dtf-data", net::kDataBusyPoll),
      control_("dtf-control") {
  data_.call([this] { data_side_ = std::make_unique<DataSide>(); });
  data_.onStop([this] { data_side_ = nullptr; });
  control_.call([this] {
    control_side_ = std::make_unique<ControlSide>();
    kj::Vector<kj::Promise<void>> opened;
    for (uint32_t i = 0; i < options_.ps.size(); ++i) {
      control_side_->links.push_back(std::make_unique<PsControlLink>(
          control_, options_.link, i, options_.ps[i],
          PsControlLink::Events{[this](const Error& error) { lost(error); },
                                [this] { stopWanted(); }}));
      opened.add(control_side_->links.back()->open());
    }
    control_side_->opened = joinAll(kj::mv(opened)).fork();
  });
  control_.onStop([this] { control_side_ = nullptr; });
}

RpcParameterClient::~RpcParameterClient() = default;

// On the control loop: a ps was told to end, and asks for the job to be stopped first.
void RpcParameterClient::stopWanted() {
  control_side_->stopping =
      control_side_->links[0]->control().requestStopRequest().send().ignoreResult().eagerlyEvaluate(
          [](kj::Exception&& e) {
            log::warning("event=stop_refused reason=\"{}\"", net::toError(e).message());
          });
}

// On the control loop: a ps is gone, so nothing that waits will be answered as it should.
void RpcParameterClient::lost(const Error& error) {
  control_side_->abort.fail(error);
  data_.post([this, error] {
    if (data_side_) data_side_->abort.fail(error);
  });
}

// Calls `call(link, index)` for every ps at once and waits for all, or for the first error.
template <class Fn>
void RpcParameterClient::onEveryControl(Fn call) {
  control_.call([this, &call] {
    kj::Vector<kj::Promise<void>> promises;
    for (uint32_t i = 0; i < control_side_->links.size(); ++i)
      promises.add(call(*control_side_->links[i], i));
    return control_side_->abort.guard(joinAll(kj::mv(promises)));
  });
}

void RpcParameterClient::declare(const ps::ModelDeclaration& declaration) {
  DTF_CHECK(declaration.layout.shards.size() == options_.ps.size());
  mode_ = declaration.replication.mode;
  control_.call([this] { return control_side_->opened.addBranch(); });
  onEveryControl([&](PsControlLink& link, uint32_t) { return link.declare(declaration); });
  data_.call([this, &declaration] {
    DataSide& side = *data_side_;
    side.answered.assign(options_.ps.size(), true);
    kj::Vector<kj::Promise<void>> opened;
    for (uint32_t i = 0; i < options_.ps.size(); ++i) {
      side.links.push_back(std::make_unique<PsDataLink>(data_, options_.link, i, options_.ps[i],
                                                        declaration.layout.shards[i].elements));
      gradients_[i] = side.links[i]->gradients();
      opened.add(side.links[i]->open());
    }
    const Duration deadline = secondsToDuration(options_.link.timeouts.step_seconds + 5);
    side.watchdog = watchExchange(data_, side, deadline, Duration{0}).eagerlyEvaluate(nullptr);
    return side.abort.guard(joinAll(kj::mv(opened)));
  });
}

void RpcParameterClient::initialise(std::span<const std::span<const float>> shards) {
  DTF_CHECK(shards.size() == options_.ps.size());
  data_.call([this, shards] {
    kj::Vector<kj::Promise<void>> promises;
    for (uint32_t i = 0; i < shards.size(); ++i)
      promises.add(data_side_->links[i]->initialise(shards[i]));
    return data_side_->abort.guard(joinAll(kj::mv(promises)));
  });
}

void RpcParameterClient::waitInitialised() {
  onEveryControl([](PsControlLink& link, uint32_t) { return link.waitInitialised(); });
}

// Calls `calls` on the links they name, at once, and waits for all the answers.
void RpcParameterClient::onData(const std::vector<DataCall>& calls, bool is_exchange) {
  data_.call([&] {
    DataSide& side = *data_side_;
    kj::Vector<kj::Promise<void>> promises;
    side.since = SystemClock().now();
    for (const DataCall& call : calls) {
      const uint32_t ps = call.ps_task;
      if (is_exchange) {
        side.answered[ps] = false;
        ++side.unanswered;
      }
      promises.add(call.start(*side.links[ps]).then([this, &side, ps](ps::StepState state) {
        states_[ps] = state;
        parameters_[ps] = side.links[ps]->parameters();
        if (side.answered[ps]) return;
        side.answered[ps] = true;
        --side.unanswered;
      }));
    }
    return side.abort.guard(joinAll(kj::mv(promises)));
  });
}

// Asks again until all ps name the same step.
ps::StepState RpcParameterClient::settle() {
  for (int round = 0; round < ps::kAgreementRoundsMax; ++round) {
    const ps::Agreement agreement = ps::agree(mode_, states_, asked_);
    if (agreement.again.empty()) return agreement.state;
    std::vector<DataCall> calls;
    for (const ps::Agreement::Pull& pull : agreement.again) {
      asked_[pull.ps_task] = pull.wanted_step;
      calls.push_back(
          {pull.ps_task, [step = pull.wanted_step](PsDataLink& link) { return link.pull(step); }});
    }
    onData(calls, false);
  }
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("{} asked {} times and did not get parameters of the same step from every ps",
                  options_.link.self.name(), ps::kAgreementRoundsMax));
}

// The same call to every ps.
ps::StepState RpcParameterClient::onEveryData(
    const std::function<kj::Promise<ps::StepState>(PsDataLink&)>& call, bool is_exchange) {
  std::vector<DataCall> calls;
  for (uint32_t i = 0; i < options_.ps.size(); ++i) calls.push_back({i, call});
  std::fill(asked_.begin(), asked_.end(), std::nullopt);
  onData(calls, is_exchange);
  return settle();
}

ps::StepState RpcParameterClient::pull() {
  return onEveryData([](PsDataLink& link) { return link.pull(std::nullopt); }, false);
}

const float* RpcParameterClient::parameters(uint32_t ps_task) const {
  return parameters_[ps_task];
}

float* RpcParameterClient::gradients(uint32_t ps_task) {
  return gradients_[ps_task];
}

ps::StepState RpcParameterClient::exchange(uint64_t step, uint32_t batch, float loss) {
  return onEveryData([=](PsDataLink& link) { return link.exchange(step, batch, loss); }, true);
}

void RpcParameterClient::barrier(std::string_view name) {
  const cluster::Timeouts& timeouts = options_.link.timeouts;
  const Duration deadline =
      secondsToDuration(name == "start" ? timeouts.start_seconds : timeouts.finish_seconds);
  control_.call(
      [&] { return control_side_->abort.guard(control_side_->links[0]->barrier(name, deadline)); });
}

void RpcParameterClient::requestStop() {
  control_.call([this] {
    return control_side_->abort.guard(
        awaitNamed(control_.timer(), {"ps/0 to stop the job", std::chrono::seconds(10)},
                   control_side_->links[0]->control().requestStopRequest().send().ignoreResult()));
  });
}

PsControlLink& RpcParameterClient::controlLink(uint32_t ps_task) {
  return *control_side_->links[ps_task];
}

kj::Promise<void> RpcParameterClient::guardControl(kj::Promise<void> promise) {
  return control_side_->abort.guard(kj::mv(promise));
}

void RpcParameterClient::finish() {
  control_.call([this] {
    for (auto& link : control_side_->links) link->expectClose();
  });
  onEveryControl([](PsControlLink& link, uint32_t) { return link.finish(); });
}

}  // namespace dtf::wire
