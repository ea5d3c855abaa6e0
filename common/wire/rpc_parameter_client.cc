#include "common/wire/rpc_parameter_client.h"

#include <kj/common.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/ps/replication_rules.h"

namespace dtf::wire {

namespace {

// A gradient that can leave while it is written: whole once it is computed, and of a size that is
// worth it.
bool mayStream(const ps::ModelDeclaration& declaration, const LinkOptions& link) {
  const bool narrows = ps::narrowsTransfers(declaration.replication);
  const auto is_large = [&](const ps::ShardLayout& shard) {
    const uint64_t bytes = shard.elements * (narrows ? sizeof(uint16_t) : sizeof(float));
    return link.stream_from_bytes && bytes >= *link.stream_from_bytes;
  };
  return !declaration.replication.overlap &&
         ps::batchesPerStep(declaration.replication, link.self.index) == 1 &&
         std::ranges::none_of(declaration.layout.variables, &ps::VariableInfo::is_sparse) &&
         std::ranges::any_of(declaration.layout.shards, is_large);
}

// Parameters of which one batch is computed, and which is known before its gradient is pushed.
bool bringsRowsOf(const ps::ModelDeclaration& declaration, uint32_t rank) {
  return !declaration.replication.overlap &&
         ps::batchesPerStep(declaration.replication, rank) == 1 &&
         std::ranges::any_of(declaration.layout.variables, &ps::VariableInfo::is_sparse);
}

}  // namespace

RpcParameterClient::RpcParameterClient(RpcClientOptions options)
    : options_(std::move(options)),
      data_(net::kDataBusyPoll, options_.credentials),
      control_("dtf-control", {}, options_.credentials) {
  data_.call([this] {
    data_calls_ = std::make_unique<DataCalls>(
        data_, options_, [this](uint32_t ps, uint64_t question) { ask(ps, question); });
  });
  control_.call([this] {
    ControlCalls::Events events;
    events.on_lost = [this](const Error& error) {
      tellData([error](DataCalls& data) { data.fail(error); });
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

RpcParameterClient::~RpcParameterClient() {
  beside_ = nullptr;
  data_.call([this] { data_calls_ = nullptr; });
}

// What the control loop knows; it is heard when a call next waits.
void RpcParameterClient::tellData(std::function<void(DataCalls&)> news) {
  data_.post([this, news = std::move(news)] {
    if (data_calls_) news(*data_calls_);
  });
}

// On the data loop: whether that ps is there.
void RpcParameterClient::ask(uint32_t ps_task, uint64_t question) {
  control_.post([this, ps_task, question] {
    if (!control_calls_) return;
    control_calls_->hear(ps_task, [this, ps_task, question] {
      tellData([ps_task, question](DataCalls& data) { data.heard(ps_task, question); });
    });
  });
}

void RpcParameterClient::declare(const ps::ModelDeclaration& declaration) {
  DTF_CHECK(declaration.layout.shards.size() == options_.ps.size());
  control_.call([this] { return control_calls_->opened(); });
  control_.call([&] { return control_calls_->declare(declaration); });
  data_.call([&] { return data_calls_->open(declaration); });
  brings_rows_ = bringsRowsOf(declaration, options_.link.self.index);
  const bool narrows = ps::narrowsTransfers(declaration.replication);
  if (narrows) log::info("event=transfers dtype=bfloat16 memory_shared=false");
  if (declaration.replication.overlap || mayStream(declaration, options_.link))
    beside_ = std::make_unique<ps::ExchangeThread>(
        [this](uint64_t step, uint32_t batch, float loss) { return exchange(step, batch, loss); });
}

void RpcParameterClient::initialise(std::span<const std::span<const float>> shards,
                                    uint64_t epoch) {
  data_.call([this, shards, epoch] { return data_calls_->initialise(shards, epoch); });
}

void RpcParameterClient::waitInitialised() {
  control_.call([this] { return control_calls_->waitInitialised(); });
}

ps::StepState RpcParameterClient::pull() {
  return data_.call([this] { return data_calls_->pull(); });
}

const float* RpcParameterClient::parameters(uint32_t ps_task) const {
  return data_calls_->parameters(ps_task);
}

void RpcParameterClient::pullAverages() {
  data_.call([this] { return data_calls_->pullAside(false); });
}

const float* RpcParameterClient::averages(uint32_t ps_task) const {
  return data_calls_->aside(ps_task);
}

float* RpcParameterClient::gradients(uint32_t ps_task) {
  return data_calls_->gradients(ps_task);
}

void RpcParameterClient::setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) {
  data_calls_->setRows(ps_task, row_counts);
}

bool RpcParameterClient::bringsRows() const {
  return brings_rows_;
}

void RpcParameterClient::wantRows(uint32_t ps_task, const ps::RowSet& rows) {
  DTF_CHECK(brings_rows_);
  data_calls_->wantRows(ps_task, rows);
}

bool RpcParameterClient::bringsWhole() const {
  return data_calls_->haveWhole();
}

void RpcParameterClient::pullWhole() {
  data_.call([this] { return data_calls_->pullAside(true); });
}

const float* RpcParameterClient::whole(uint32_t ps_task) const {
  return data_calls_->aside(ps_task);
}

ps::StepState RpcParameterClient::exchange(uint64_t step, uint32_t batch, float loss) {
  return data_.call([=, this] { return data_calls_->exchange(step, batch, loss); });
}

void RpcParameterClient::startExchange(uint64_t step, uint32_t batch, float loss) {
  DTF_CHECK(beside_ != nullptr);
  data_calls_->turn();
  beside_->start(step, batch, loss);
}

ps::StepState RpcParameterClient::finishExchange() {
  DTF_CHECK(beside_ != nullptr);
  return beside_->finish();
}

bool RpcParameterClient::streamsGradients() const {
  return beside_ != nullptr && data_calls_->streamsGradients();
}

void RpcParameterClient::startPush(uint64_t step, uint32_t batch, float loss) {
  DTF_CHECK(beside_ != nullptr);
  if (!std::exchange(said_streamed_, true)) log::info("event=gradients_streamed");
  data_calls_->startPush();
  beside_->start(step, batch, loss);
}

void RpcParameterClient::gradientsWritten(std::span<const uint64_t> elements) {
  data_calls_->gradientsWritten(elements);
  tellData([](DataCalls& data) { data.sendMore(); });
}

ps::StepState RpcParameterClient::finishPush() {
  KJ_DEFER(data_calls_->endPush());
  return beside_->finish();
}

void RpcParameterClient::abandonPush(const Error& why) {
  KJ_DEFER(data_calls_->endPush());
  tellData([why](DataCalls& data) { data.fail(why); });
  try {
    beside_->finish();
  } catch (const Error& error) {  // that is `why`, or what has ended the exchange before
    log::info("event=push_abandoned error=\"{}\"", error.message());
  }
}

void RpcParameterClient::barrier(std::string_view name) {
  control_.call([&] { return control_calls_->barrier(name); });
}

void RpcParameterClient::requestStop(std::function<void(const Error&)> refused) {
  control_.post([this, refused = std::move(refused)] {
    if (control_calls_) control_calls_->requestStop(refused);
  });
}

void RpcParameterClient::setEvaluating(bool evaluates) {
  control_.post([this, evaluates] {
    if (control_calls_) control_calls_->setEvaluating(evaluates);
  });
}

std::set<uint32_t> RpcParameterClient::toldToEnd() {
  return control_.call([this] { return control_calls_->toldToEnd(); });
}

void RpcParameterClient::fail(const Error& error, FailureOf failure_of, Duration patience) {
  control_.call([&] { return control_calls_->fail(error, failure_of, patience); });
}

void RpcParameterClient::endWith(const Error& error) {
  control_.post([this, error] {
    if (control_calls_) control_calls_->abort(error);
  });
}

void RpcParameterClient::pause() {
  control_.call([this] { return control_calls_->pause(); });
}

void RpcParameterClient::finish() {
  control_.call([this] { return control_calls_->finish(); });
}

}  // namespace dtf::wire
