#include "common/wire/ps/ps_data_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/net/error_bridge.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

std::vector<arena::GradientBuffer> twoOrOne(const ShardTraffic& traffic, bool two) {
  std::vector<arena::GradientBuffer> buffers;
  for (size_t i = 0; i < (two ? 2 : 1); ++i) buffers.emplace_back(traffic.layout());
  return buffers;
}

}  // namespace

PsDataLink::PsDataLink(net::Loop& io, LinkOptions options, uint32_t ps_task,
                       cluster::Address address, ShardTraffic traffic,
                       std::function<kj::Promise<void>()> before_reopening)
    : io_(io),
      options_(std::move(options)),
      ps_{JobKind::kPs, ps_task},
      peer_(peerText(hostOf(options_, ps_task), address)),
      traffic_(std::move(traffic)),
      codecs_(traffic_.codecs()),
      plan_(planOf(traffic_, options_, met_)),
      gradients_(twoOrOne(traffic_, plan_.overlap.is_used)),
      encoded_(codecs_.gradient()),
      connection_(io,
                  {.peer = peer_,
                   .task = hostOf(options_, ps_task).name(),
                   .address = std::move(address),
                   .kind = net::ConnectionKind::kBulk,
                   .limits = gradientLimits(traffic_.elements, gradients_[0].layout(),
                                            options_.chunk_bytes),
                   .pool = net::BufferPool::create(),
                   .patience = fromSeconds(options_.timeouts.start_seconds)},
                  // The control link gives up a lost ps in half that time.
                  2 * fromSeconds(options_.timeouts.rejoin_seconds),
                  fromSeconds(options_.timeouts.lease_seconds),
                  {.say_hello = [this](auto& connection) { return sayHello(connection); },
                   .before_reopening = std::move(before_reopening),
                   .on_broken = [this](const Error&) { shared_.remote = nullptr; },
                   .failing_max = fromSeconds(options_.timeouts.rejoin_seconds +
                                              options_.timeouts.step_seconds)}),
      reader_(peer_, gradients_[0].layout(), codecs_) {
  DTF_CHECK(traffic_.job.batches_per_step > 0);
  DTF_CHECK(traffic_.elements % 2 == 0);  // a gradient is sent as words
}

kj::Promise<void> PsDataLink::open() {
  return connection_.open("opening the bulk connection").then([this] {
    gradients_may_move_ = false;
  });
}

kj::Promise<void> PsDataLink::sayHello(net::RpcConnection& connection) {
  auto request = connection.bootstrap().castAs<schema::PsDataGate>().helloRequest();
  encodeHello(options_, ps_, request.initHello(), hellos_said_++);
  return request.send().then([this, &connection](auto&& response) {
    // A restarted ps without the model counts as one that has not started yet.
    if (response.getNotYet().size() > 0)
      kj::throwFatalException(
          net::toKj(net::asio::error::not_connected, response.getNotYet().cStr()));
    data_ = response.getData();
    net::bridgeErrors([&] {
      met_ = {.codecs = decodeCodecs(response.getCodecs()),
              .transport = decodeTransport(response.getTransport()),
              .on_this_host = connection.stream().isOnThisHost(),
              .takes_unfinished = connection.stream().sendsAsWritten(),
              .memory_fault = memory_fault_};
      plan_ = planOf(traffic_, options_, met_);
      if (!plan_.fault.empty()) throw Error(ErrorCode::kBadConfig, peer_ + ": " + plan_.fault);
    });
    shared_ = {};
    return shareMemory();
  });
}

void PsDataLink::Received::release() {
  held = nullptr;
  mapped = nullptr;
  key = 0;
}

// Returns the key of the parameters that are not released: of two, those in use by the training
// thread.
uint64_t PsDataLink::inUse() const {
  for (const Received& received : parameters_)
    if (received.key != 0) return received.key;
  return 0;
}

// The time without a connection counts against timeouts.rejoin_seconds, not against the deadline of
// a call.
kj::Promise<void> PsDataLink::initialise(std::span<const float> values, uint64_t epoch) {
  DTF_CHECK(values.size() == traffic_.elements);
  // The message owns a copy, since the caller may free its values. Initial values are sent once.
  auto copy = std::make_shared<Buffer>(values.size_bytes());
  if (!values.empty()) std::memcpy(copy->data(), values.data(), values.size_bytes());
  return connection_.untilAnswered<void>("sending the initial values", [this, copy, epoch] {
    auto request = data_->initialiseRequest();
    request.setEpoch(epoch);
    referenceArena({copy->as<float>(), traffic_.elements}, copy,
                   request.initValues(arenaChunks(traffic_.elements, options_.chunk_bytes)),
                   connection_.connection().stream(), options_.chunk_bytes);
    return awaitNamed(
        io_.timer(),
        {peer_ + " to take the initial values", fromSeconds(options_.timeouts.step_seconds)},
        request.send().ignoreResult());
  });
}

// Results with the parameters for a batch, which are encoded; moving averages are float32.
template <class Results>
constexpr bool kIsOfTraining = requires(typename Results::Reader results) {
  results.getKey();
};

// Reads parameters that can't be used where they came.
template <class Response>
void PsDataLink::readParameters(const Response& response, Received& received) {
  const float* base = nullptr;
  for (Received& each : parameters_)
    if (std::exchange(each.base, 0) != 0) base = each.assembled.template as<float>();
  if (!response.getChanged()) base = nullptr;
  if (response.getChanged() && (base == nullptr || codecs_.change() == nullptr))
    throw Error(ErrorCode::kBadData, peer_ + " sent a change, but this worker named no parameters");
  if (response.getRows().size() > 0) {
    reader_.readRows(response.getParameters(), response.getRows(), wanted_, base,
                     received.assembled);
    if (!std::exchange(said_.rows, true)) log::info("event=rows_came peer=\"{}\"", peer_);
  } else if (base != nullptr) {
    reader_.readChange(response.getParameters(), base, received.assembled);
  } else {
    reader_.readWhole(response.getParameters(), received.assembled);
  }
  received.base = response.getBase();
  received.is_whole = false;
  received.values = {received.assembled.as<float>(), traffic_.elements};
}

// Takes the parameters of a reply. There are none while `more_batches` are due for the step, which
// uses the present ones.
template <class Results>
replication::StepState PsDataLink::take(capnp::Response<Results>&& response, Received& received,
                                        bool more_batches) {
  return net::bridgeErrors([&] {
    const replication::StepState state = decodeStepState(response.getState());
    if constexpr (kIsOfTraining<Results>) encoded_.follow(state.epoch);
    if (state.outcome == replication::Outcome::kQueued) {
      if (!more_batches)
        throw Error(ErrorCode::kInternal,
                    peer_ + " kept a gradient for later instead of sending parameters");
      return state;
    }
    if constexpr (kIsOfTraining<Results>) {
      if (shared_.arenas != nullptr) shared_.arenas->forget(response.getGone());
      if (const uint64_t key = response.getKey(); key != 0) {
        takeShared(received, key);
        return state;
      }
    }
    received.mapped = nullptr;
    received.key = 0;
    received.is_whole = true;
    if constexpr (kIsOfTraining<Results>) {
      if (response.getRows().size() > 0 || codecs_.change() != nullptr ||
          !codecs_.whole().isIdentity()) {
        readParameters(response, received);
        return state;
      }
    }
    auto held = kj::heap<capnp::Response<Results>>(kj::mv(response));
    received.values = readArena(held->getParameters(), traffic_.elements, received.assembled);
    received.held = kj::mv(held);  // the previous response returns to the pool only now
    return state;
  });
}

// Takes a reply, and reads parameters that it names in the memory of the ps.
template <class Results>
kj::Promise<replication::StepState> PsDataLink::takeAll(capnp::Response<Results>&& response,
                                                        Received& received, bool more_batches) {
  if (!plan_.remote_memory.is_used) return take(kj::mv(response), received, more_batches);
  return net::bridgeErrors([&]() -> kj::Promise<replication::StepState> {
    const uint64_t key = response.getKey();
    if (shared_.remote == nullptr) return connectionLost();
    shared_.remote->forget(response.getGone());
    if (key == 0) return take(kj::mv(response), received, more_batches);
    if (response.hasRemote()) shared_.remote->learn(key, response.getRemote());
    const replication::StepState state = decodeStepState(response.getState());
    encoded_.follow(state.epoch);
    return fetch(state, key, received);
  });
}

void PsDataLink::turn() {
  DTF_CHECK(gradients_.size() == 2);
  pushed_ = std::exchange(written_, 1 - written_);
  received_ = 1 - received_;
}

kj::Promise<replication::StepState> PsDataLink::pull(const replication::Wanted& wanted,
                                                     uint64_t epoch) {
  parameters_[received_].release();
  return connection_.untilAnswered<replication::StepState>("pulling", [this, wanted, epoch] {
    const bool wants_rows = wantsRows();
    auto request =
        data_->pullRequest(capnp::MessageSize{12 + (wants_rows ? rowSetWords(wanted_) : 0), 0});
    request.setWantsStep(wanted.step.has_value());
    request.setWantedStep(wanted.step.value_or(0));
    request.setProgress(wanted.progress);
    request.setEpoch(epoch);
    request.setInUse(inUse());
    request.setBase(base());
    if (wants_rows) encodeRowSet(wanted_, request);
    return request.send().then([this](capnp::Response<schema::PsData::PullResults>&& response) {
      return takeAll(kj::mv(response), parameters_[received_], false);
    });
  });
}

kj::Promise<void> PsDataLink::pullAside(bool current) {
  aside_.release();
  return connection_.untilAnswered<void>("pulling values beside training", [this, current] {
    auto request = data_->averagesRequest(capnp::MessageSize{8, 0});
    request.setCurrent(current);
    return request.send().then([this](capnp::Response<schema::PsData::AveragesResults>&& response) {
      take(kj::mv(response), aside_, false);
    });
  });
}

// Above rows_share_max, sending the whole table is as fast: the ps sends it in place.
void PsDataLink::wantRows(const arena::RowSet& rows) {
  is_wanted_anew_ = true;
  const arena::GradientLayout& layout = gradients_[0].layout();
  uint64_t sparse = 0;
  for (const arena::SparseSlice& slice : layout.sparse()) sparse += slice.rows * slice.row_elements;
  const bool are_few = !rows.isWhole() && static_cast<double>(layout.elementsOf(rows.counts) -
                                                              layout.denseElements()) <=
                                              options_.rows_share_max * static_cast<double>(sparse);
  wanted_ = are_few ? rows : arena::RowSet{};
}

void PsDataLink::beginCall() {
  if (!std::exchange(is_wanted_anew_, false)) wanted_ = {};
  aside_.release();
}

std::shared_ptr<net::SendGate> PsDataLink::startPush() {
  DTF_CHECK(gradients_.size() == 1 && gradients_[0].layout().sparse().empty());
  DTF_CHECK(traffic_.job.batches_per_step == 1);
  received_ = 1 - received_;
  encoded_.begin(gradients_[0].share());
  return std::make_shared<net::SendGate>(encoded_.bytes().data(), encoded_.bytes().size());
}

void PsDataLink::gradientWritten(net::SendGate& gate, uint64_t elements) {
  gate.open(encoded_.writeUpTo(elements));
}

void PsDataLink::sendMore() {
  if (gate_ == nullptr) return;
  if (connection_.isOpen()) connection_.connection().stream().sendMore();
  if (gate_opened_.get() != nullptr && gate_->isOpen()) gate_opened_->fulfill();
}

kj::Promise<void> PsDataLink::whenWritten(const net::SendGate& gate) {
  if (gate.isOpen()) return kj::READY_NOW;
  auto written = kj::newPromiseAndFulfiller<void>();
  gate_opened_ = kj::mv(written.fulfiller);
  return kj::mv(written.promise);
}

kj::Promise<replication::StepState> PsDataLink::exchange(
    Exchange said, std::shared_ptr<const net::SendGate> gate) {
  // After the last batch of a step the previous parameters have no use left. The message that
  // releases them travels in one packet with the request.
  if (said.batch + 1 >= traffic_.job.batches_per_step) parameters_[received_].release();
  gate_ = std::move(gate);
  if (gate_ == nullptr) encoded_.write(gradients_[pushed_].share());
  // The caller changes the arena only after the reply, so a repetition sends the same gradient.
  return connection_.untilAnswered<replication::StepState>(
      "exchanging a step", [this, said]() -> kj::Promise<replication::StepState> {
        if (shared_.board != nullptr && gate_ == nullptr && shared_.board->isReady() &&
            trace::traceparentHere().empty())
          return pushOnBoard(said);
        if (gate_ == nullptr && shared_.remote != nullptr) return putAndPush(said);
        if (gate_ == nullptr || plan_.streaming.is_used) return push(said, gate_);
        return whenWritten(*gate_).then([this, said] { return pushIfOpen(said); });
      });
}

// Pushes, or fails as broken if the connection broke meanwhile, so that the call is repeated.
kj::Promise<replication::StepState> PsDataLink::pushIfOpen(const Exchange& said) {
  if (!connection_.isOpen()) return connectionLost();
  return shared_.remote != nullptr ? putAndPush(said) : push(said, nullptr);
}

// One attempt with a message.
kj::Promise<replication::StepState> PsDataLink::push(
    const Exchange& said, const std::shared_ptr<const net::SendGate>& gate) {
  const bool more_batches = said.batch + 1 < traffic_.job.batches_per_step;
  const arena::Gradient& gradient = encoded_.gradient();
  const std::span<const std::byte> bytes = encoded_.bytes();
  const uint64_t gradient_key = shared_.remote != nullptr ? shared_.remote->gradientKey()
                                : plan_.shared_gradients.is_used
                                    ? gradients_[pushed_].sharedMemory()->key()
                                    : 0;
  const bool names_gradient = gradient_key != 0;
  const bool wants_rows = wantsRows();
  const uint64_t words = (names_gradient ? 0 : gradientWords(gradient, options_.chunk_bytes)) +
                         (wants_rows ? rowSetWords(wanted_) : 0);
  // The size spares capnp a first segment of 8 KiB, zeroed, per message.
  const std::string traceparent = trace::traceparentHere();
  auto request = data_->exchangeRequest(
      capnp::MessageSize{26 + words + traceparent.size() / sizeof(capnp::word) + 1, 0});
  if (!traceparent.empty()) request.setTraceparent(traceparent);
  request.setStep(said.step);
  request.setBatch(said.batch);
  request.setLoss(said.loss);
  request.setEpoch(said.epoch);
  request.setProgress(said.progress);
  request.setInUse(inUse());
  request.setBase(base());
  if (said.times.own() > Duration{0}) encodePhaseTimes(said.times, request.initTimes());
  if (wants_rows) encodeRowSet(wanted_, request);
  if (const size_t counts = gradient.row_counts.size(); counts > 0)
    encodeRowCounts(gradient, request.initRows(static_cast<uint32_t>(counts)));
  if (names_gradient)
    request.setGradientKey(gradient_key);
  else
    referenceBytes(bytes, encoded_.owner(),
                   request.initGradient(chunksOf(bytes.size(), options_.chunk_bytes)),
                   connection_.connection().stream(), options_.chunk_bytes, gate);
  return request.send().then(
      [this, more_batches](capnp::Response<schema::PsData::ExchangeResults>&& response) {
        return takeAll(kj::mv(response), parameters_[received_], more_batches);
      });
}

}  // namespace dtf::wire
