#include "common/wire/ps/rpc_exchange_client.h"

#include <kj/common.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/exchange/gradient_rows.h"
#include "common/exchange/transfer_plan.h"
#include "common/replication/replication_rules.h"
#include "common/wire/ps/ps_data_link.h"

namespace dtf::wire {

namespace {

// Returns whether `choice` is used by the plan with some ps, taken to be on another host.
bool mayUse(exchange::Choice exchange::TransferPlan::*choice,
            const arena::ModelDeclaration& declaration, const LinkOptions& link) {
  for (uint32_t ps = 0; ps < declaration.layout.shards.size(); ++ps)
    if ((planOf(trafficOf(declaration, link.self.index, ps), link).*choice).is_used) return true;
  return false;
}

}  // namespace

RpcExchangeClient::RpcExchangeClient(RpcClientOptions options)
    : options_(std::move(options)),
      data_(net::kDataBusyPoll, options_.credentials),
      control_("dtf-control", {}, options_.credentials),
      pending_([this](uint64_t step, uint32_t batch, float loss) {
        return data_.call([=, this] { return data_calls_->exchange(step, batch, loss); });
      }) {
  data_.call([this] {
    data_calls_ = std::make_unique<DataCalls>(
        data_, options_, [this](uint32_t ps, uint64_t question) { ask(ps, question); });
  });
  control_.call([this] {
    ControlCalls::Events events;
    events.on_lost = [this](const Error& error) {
      tellData([error](DataCalls& data) { data.fail(error); });
      if (options_.on_lost) options_.on_lost(error);
    };
    events.on_broken = [this](uint32_t ps, const Error& why) {
      tellData([ps, why](DataCalls& data) { data.onBroken(ps, why); });
    };
    events.on_awaited = [this](uint32_t ps, const Awaited& awaited) {
      tellData([ps, awaited](DataCalls& data) { data.setAwaited(ps, awaited); });
    };
    control_calls_ = std::make_unique<ControlCalls>(control_, options_, std::move(events));
  });
  control_.onStop([this] { control_calls_ = nullptr; });
}

RpcExchangeClient::~RpcExchangeClient() {
  pending_.endThread();
  data_.call([this] { data_calls_ = nullptr; });
}

// Passes an event of the control loop to the data calls, which handle it when a call next waits.
void RpcExchangeClient::tellData(std::function<void(DataCalls&)> news) {
  data_.post([this, news = std::move(news)] {
    if (data_calls_) news(*data_calls_);
  });
}

// Called on the data loop: requests a sign of life of that ps.
void RpcExchangeClient::ask(uint32_t ps_task, uint64_t question) {
  control_.post([this, ps_task, question] {
    if (!control_calls_) return;
    control_calls_->hear(ps_task, [this, ps_task, question] {
      tellData([ps_task, question](DataCalls& data) { data.heard(ps_task, question); });
    });
  });
}

// Caches the traits: they don't change between calls, while the data loop stands still.
void RpcExchangeClient::onAnswer() {
  traits_.streams = !traits_.overlaps && pending_.hasThread() && data_calls_->streams();
  traits_.has_whole = data_calls_->haveWhole();
}

void RpcExchangeClient::declare(const arena::ModelDeclaration& declaration,
                                std::shared_ptr<optimizer::DeviceArrays> device) {
  DTF_CHECK(device == nullptr);
  DTF_CHECK(declaration.layout.shards.size() == options_.ps.size());
  control_.call([this] { return control_calls_->opened(); });
  control_.call([&] { return control_calls_->declare(declaration); });
  data_.call([&] { return data_calls_->open(declaration); });
  for (uint32_t ps = 0; ps < options_.ps.size(); ++ps)
    gradients_.emplace_back(declaration.layout, ps);
  traits_.brings_rows = mayUse(&exchange::TransferPlan::rows, declaration, options_.link);
  traits_.overlaps = mayUse(&exchange::TransferPlan::overlap, declaration, options_.link);
  if (replication::recodesTransfers(declaration.replication))
    log::info("event=transfers dtype=\"{}\" memory_shared=false",
              replication::transferText(declaration.replication));
  if (traits_.overlaps || mayUse(&exchange::TransferPlan::streaming, declaration, options_.link))
    pending_.startThread();
  onAnswer();
}

void RpcExchangeClient::initialise(std::span<const std::span<const float>> shards, uint64_t epoch) {
  data_.call([this, shards, epoch] { return data_calls_->initialise(shards, epoch); });
}

void RpcExchangeClient::waitInitialised() {
  control_.call([this] { return control_calls_->waitInitialised(); });
}

replication::StepState RpcExchangeClient::pull(exchange::Values what) {
  if (what == exchange::Values::kParameters)
    state_ = data_.call([this] { return data_calls_->pull(); });
  else if (isAside(what))
    data_.call([this, what] { return data_calls_->pullAside(what == exchange::Values::kWhole); });
  onAnswer();
  return state_;
}

// Returns whether these values are kept beside the parameters.
bool RpcExchangeClient::isAside(exchange::Values what) const {
  return what == exchange::Values::kAverages ||
         (what == exchange::Values::kWhole && !traits_.has_whole);
}

const float* RpcExchangeClient::view(exchange::Values what, uint32_t ps_task) const {
  return isAside(what) ? data_calls_->aside(ps_task) : data_calls_->parameters(ps_task);
}

float* RpcExchangeClient::gradients(uint32_t ps_task) {
  return data_calls_->gradients(ps_task);
}

void RpcExchangeClient::setRows(exchange::RowsOf what, uint32_t ps_task,
                                const arena::RowSet& rows) {
  if (what == exchange::RowsOf::kParameters) {
    if (traits_.brings_rows) data_calls_->wantRows(ps_task, rows);
    return;
  }
  data_calls_->setRows(ps_task, rows.counts);
  exchange::writeIds(gradients_.at(ps_task), rows, data_calls_->gradients(ps_task));
}

void RpcExchangeClient::reportTimes(const replication::PhaseTimes& times) {
  data_calls_->reportTimes(times);
}

// Runs the exchange on its thread, unless the gradient can't be sent during the computation.
void RpcExchangeClient::begin(uint64_t step, uint32_t batch, float loss,
                              exchange::Gradient gradient) {
  const bool is_whole = gradient == exchange::Gradient::kWhole;
  const bool beside = pending_.hasThread() && traits_.overlaps == is_whole;
  if (beside && !is_whole && !std::exchange(said_streamed_, true))
    log::info("event=gradients_streamed");
  if (beside) data_calls_->begin(gradient);
  pending_.begin(step, batch, loss, beside);
}

void RpcExchangeClient::written(std::span<const uint64_t> elements) {
  if (!pending_.isBeside()) return;
  data_calls_->written(elements);
  tellData([](DataCalls& data) { data.sendMore(); });
}

replication::StepState RpcExchangeClient::finish(const Error* failure) {
  KJ_DEFER(data_calls_->end());
  if (failure != nullptr) {
    abandon(*failure);
    return state_;
  }
  if (traits_.overlaps && !pending_.isBeside()) data_calls_->begin(exchange::Gradient::kWhole);
  state_ = pending_.finish();
  onAnswer();
  return state_;
}

void RpcExchangeClient::abandon(const Error& why) {
  tellData([why](DataCalls& data) { data.fail(why); });
  try {
    pending_.drop();
  } catch (const Error& error) {  // `why`, or an earlier error of the exchange
    log::info("event=push_abandoned error=\"{}\"", error.message());
  }
}

void RpcExchangeClient::barrier(std::string_view name) {
  control_.call([&] { return control_calls_->barrier(name); });
}

void RpcExchangeClient::requestStop(std::function<void(const Error&)> refused) {
  control_.post([this, refused = std::move(refused)] {
    if (control_calls_) control_calls_->requestStop(refused);
  });
}

void RpcExchangeClient::setEvaluating(bool evaluates) {
  control_.post([this, evaluates] {
    if (control_calls_) control_calls_->setEvaluating(evaluates);
  });
}

std::set<uint32_t> RpcExchangeClient::toldToEnd() {
  return control_.call([this] { return control_calls_->toldToEnd(); });
}

void RpcExchangeClient::fail(const Error& error, FailureOf failure_of, Duration patience) {
  control_.call([&] { return control_calls_->fail(error, failure_of, patience); });
}

void RpcExchangeClient::endWith(const Error& error) {
  control_.post([this, error] {
    if (control_calls_) control_calls_->abort(error);
  });
}

void RpcExchangeClient::pause() {
  control_.call([this] { return control_calls_->pause(); });
}

void RpcExchangeClient::leave() {
  control_.call([this] { return control_calls_->finish(); });
}

}  // namespace dtf::wire
