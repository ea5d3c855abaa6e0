#include "common/wire/ps_link.h"

#include <capnp/message.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/arena_codec.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

constexpr std::string_view kJobFailed = "the job was ended by ";

// The error of a call, told as what it means to the user: which ps, doing what.
[[noreturn]] void rethrowNamed(const kj::Exception& exception, const std::string& peer,
                               std::string_view doing) {
  const Error error = net::toError(exception);
  if (exception.getType() == kj::Exception::Type::DISCONNECTED &&
      error.code() == ErrorCode::kUnavailable && !net::carriesError(exception))
    net::throwAsKj(Error(ErrorCode::kUnavailable,
                         fmt::format("lost {} while {}: {}", peer, doing, error.message())));
  net::throwAsKj(error);
}

// Said before the start rather than by a connection that breaks.
void requireFits(const std::string& what, uint64_t bytes, const net::Limits& limits) {
  if (bytes <= limits.bytes_max) return;
  net::throwAsKj(Error(
      ErrorCode::kBadConfig,
      fmt::format("{} takes {:.1f} MiB, more than the {} MiB of a control message: use fewer or "
                  "larger variables, shorter names, or partition less (placement.partition)",
                  what, static_cast<double>(bytes) / (1 << 20), limits.bytes_max >> 20)));
}

}  // namespace

void encodeHello(const LinkOptions& options, TaskId callee, schema::Hello::Builder hello,
                 uint32_t connection) {
  hello.setJob(options.job);
  encodeTask(options.self, hello.initCaller());
  hello.setIncarnation(options.incarnation.value);
  encodeTask(callee, hello.initCallee());
  hello.setConnection(connection);
  hello.setSoftware(DTF_VERSION);
  if (options.self.job == JobKind::kWorker && options.self.index < options.workers.size())
    hello.setAddress(options.workers[options.self.index].str());
  hello.setWorkers(fingerprintOf(options.workers));
}

LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation) {
  DTF_CHECK(self.index < job.cluster.tasks(self.job).size());
  return {job.job, self, incarnation, job.timeouts, addressesOf(job.cluster.worker)};
}

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks) {
  std::vector<cluster::Address> addresses;
  for (const cluster::TaskSpec& task : tasks) addresses.push_back(task.address);
  return addresses;
}

uint64_t fingerprintOf(const std::vector<cluster::Address>& addresses) {
  std::string text;
  for (const cluster::Address& address : addresses) text += address.str() + "\n";
  return checksumOf(text);
}

std::string jobFailedText(uint32_t rank, const std::string& reason) {
  return fmt::format("{}{}: {}", kJobFailed, TaskId{JobKind::kWorker, rank}.name(), reason);
}

bool isJobFailed(const Error& error) {
  return error.message().starts_with(kJobFailed);
}

FailureOf failureOf(const Error& error) {
  const ErrorCode code = error.code();
  const bool is_own = code == ErrorCode::kUnavailable || code == ErrorCode::kDeadline ||
                      code == ErrorCode::kPermission;
  return is_own ? FailureOf::kWorker : FailureOf::kJob;
}

std::string peerText(TaskId task, const cluster::Address& address) {
  return task.name() + " (" + address.str() + ")";
}

// ---- control

PsControlLink::PsControlLink(net::Loop& io, LinkOptions options, uint32_t ps_task,
                             cluster::Address address, Events events)
    : io_(io),
      options_(std::move(options)),
      ps_{JobKind::kPs, ps_task},
      peer_(peerText(ps_, address)),
      events_(std::move(events)),
      connection_(io,
                  {.peer = peer_,
                   .address = std::move(address),
                   .kind = net::ConnectionKind::kControl,
                   .limits = kAnswerLimits,
                   .pool = net::BufferPool::create(0),
                   .patience = fromSeconds(options_.timeouts.start_seconds)},
                  fromSeconds(options_.timeouts.rejoin_seconds),
                  fromSeconds(options_.timeouts.lease_seconds),
                  {.say_hello = [this](auto& connection) { return sayHello(connection); },
                   .after_reopening = [this] { return introduce(); },
                   .on_open = [this] { onOpen(); },
                   .on_broken = [this](const Error& why) { onBroken(why); },
                   .on_lost = [this](const Error& error) { events_.on_lost(error); }}) {
  DTF_CHECK(events_.on_lost != nullptr);
}

kj::Promise<void> PsControlLink::open() {
  return connection_.open().catch_(
      [this](kj::Exception&& e) { rethrowNamed(e, peer_, "saying hello"); });
}

kj::Promise<void> PsControlLink::sayHello(net::RpcConnection& connection) {
  auto request = connection.bootstrap().castAs<schema::PsGate>().helloRequest();
  encodeHello(options_, ps_, request.initHello(), hellos_said_++);
  return request.send().then([this](auto&& response) {
    meet(Incarnation{response.getIncarnation()});
    control_ = response.getControl();
  });
}

// A process of the ps has answered a hello.
void PsControlLink::meet(Incarnation incarnation) {
  if (incarnation.isBefore(met_))
    kj::throwFatalException(
        net::toKj(net::asio::error::connection_aborted, "an earlier process of it answered"));
  const bool is_first = met_ == Incarnation{};
  is_replaced_ |= !is_first && incarnation != met_;
  met_ = incarnation;
}

// Another process of the ps knows nothing of this worker. Others wait at its barriers for whoever has
// passed them.
kj::Promise<void> PsControlLink::introduce() {
  if (!is_replaced_ || !declared_) return kj::READY_NOW;
  return sendDeclaration().then([this] {
    arrivals_.clear();
    for (const std::string& name : passed_)
      arrivals_.push_back(sendArrival(name).eagerlyEvaluate([](kj::Exception&&) {}));
    is_replaced_ = false;
    if (events_.on_replaced) events_.on_replaced();
  });
}

void PsControlLink::onOpen() {
  DTF_CHECK(control_.has_value());
  heartbeats_ = beat().eagerlyEvaluate([this](kj::Exception&& e) { onFailed(e); });
  ended_ =
      control_->awaitEndRequest().send().ignoreResult().eagerlyEvaluate([this](kj::Exception&& e) {
        if (net::carriesError(e)) connection_.end(net::toError(e));
      });
  watch();
}

// Whom the ps waits for it says anew.
void PsControlLink::onBroken(const Error& why) {
  awaited_ = {};
  if (events_.on_awaited) events_.on_awaited(awaited_);
  if (events_.on_broken) events_.on_broken(why);
}

kj::Promise<void> PsControlLink::beat() {
  return control_->heartbeatRequest()
      .send()
      .then([this](auto&& answer) { onBeatAnswered(answer); })
      .exclusiveJoin(giveUpIfSilent())
      .then([this] {
        return io_.timer().afterDelay(net::toKj(fromSeconds(options_.timeouts.heartbeat_seconds)));
      })
      .then([this] { return beat(); });
}

kj::Promise<void> PsControlLink::giveUpIfSilent() {
  // In time to come back by another connection: the lease of this worker runs out as well.
  const double share = options_.timeouts.rejoin_seconds > 0 ? 0.5 : 1;
  const Duration silence = fromSeconds(share * options_.timeouts.lease_seconds);
  return net::awakeDelay(io_.timer(), silence).then([this, silence]() -> kj::Promise<void> {
    connection_.giveUp(
        Error(ErrorCode::kUnavailable,
              fmt::format("{} has not answered a heartbeat for {:g} s: it is frozen, or the "
                          "network is cut",
                          peer_, toSeconds(silence))));
    return kj::NEVER_DONE;
  });
}

// What the ps answers is final; that a call got no answer says no more than that the link is broken.
void PsControlLink::onFailed(const kj::Exception& exception) {
  const Error error = net::toError(exception);
  if (net::carriesError(exception)) return connection_.end(error);
  connection_.giveUp(
      Error(ErrorCode::kUnavailable, fmt::format("lost {}: {}", peer_, error.message())));
}

void PsControlLink::onBeatAnswered(schema::PsControl::HeartbeatResults::Reader answer) {
  if (answer.getStopWanted() && events_.on_stop_wanted)
    std::exchange(events_.on_stop_wanted, nullptr)();
  Awaited awaited{{answer.getAwaited().begin(), answer.getAwaited().size()},
                  answer.getAwaitsReturn()};
  if (awaited == awaited_ || !events_.on_awaited) return;
  awaited_ = std::move(awaited);
  events_.on_awaited(awaited_);
}

void PsControlLink::watch() {
  watched_ =
      connection_.connection()
          .onDisconnect()
          .then([this] {
            connection_.giveUp(Error(ErrorCode::kUnavailable,
                                     fmt::format("lost {}: it closed the connection", peer_)));
          })
          .eagerlyEvaluate([this](kj::Exception&& e) { connection_.giveUp(net::toError(e)); });
}

kj::Promise<void> PsControlLink::declare(const ps::ModelDeclaration& model) {
  DTF_CHECK(ps_.index < model.layout.shards.size());
  capnp::MallocMessageBuilder message;
  auto encoded = message.initRoot<schema::Model>();
  encodeModel(model, encoded);
  requireFits("the model's description", encoded.totalSize().wordCount * sizeof(capnp::word),
              kControlLimits);
  requireFits(fmt::format("what {} says of each checkpoint", ps_.name()),
              savedBytesMax(model, ps_.index), kAnswerLimits);
  declared_ = model;
  return awaitNamed(
      io_.timer(),
      {peer_ + " to take the model", fromSeconds(options_.timeouts.start_seconds),
       ErrorCode::kUnavailable},
      connection_.untilAnswered<void>("declaring the model", [this] { return sendDeclaration(); }));
}

kj::Promise<void> PsControlLink::sendDeclaration() {
  DTF_CHECK(declared_.has_value());
  auto request = control_->declareRequest();
  encodeModel(*declared_, request.initModel());
  return request.send().ignoreResult();
}

kj::Promise<void> PsControlLink::waitInitialised() {
  // A little longer than the ps waits: its own answer says who is missing.
  return awaitNamed(io_.timer(),
                    {kChief.name() + " to initialise " + peer_,
                     fromSeconds(options_.timeouts.start_seconds + 5), ErrorCode::kUnavailable},
                    connection_.untilAnswered<void>("waiting for the initial values", [this] {
                      return control_->waitInitialisedRequest().send().ignoreResult();
                    }));
}

kj::Promise<void> PsControlLink::barrier(std::string_view name, Duration deadline) {
  DTF_CHECK(!name.empty());
  const auto arrive = [this, name = std::string(name)] { return sendArrival(name); };
  return awaitNamed(io_.timer(),
                    {fmt::format("the other workers at the barrier '{}' of {}", name, peer_),
                     deadline + std::chrono::seconds(5), ErrorCode::kUnavailable},
                    connection_.untilAnswered<void>("waiting at a barrier", arrive))
      .then([this, passed = std::string(name)] { passed_.push_back(passed); });
}

kj::Promise<void> PsControlLink::sendArrival(const std::string& name) {
  auto request = control_->barrierRequest();
  request.setName(name);
  return request.send().ignoreResult();
}

kj::Promise<void> PsControlLink::requestStop() {
  return connection_.untilAnswered<void>("asking it to stop the job", [this] {
    return control_->requestStopRequest().send().ignoreResult();
  });
}

kj::Promise<void> PsControlLink::finish() {
  return awaitNamed(
      io_.timer(), {peer_ + " to let us go", std::chrono::seconds(10)},
      connection_
          .untilAnswered<void>("finishing",
                               [this] { return control_->finishRequest().send().ignoreResult(); })
          .then([this] { expectClose(); }));
}

kj::Promise<void> PsControlLink::hear() {
  return connection_.untilAnswered<void>("asking whether it is there", [this] {
    return control_->heartbeatRequest().send().ignoreResult();
  });
}

kj::Promise<void> PsControlLink::fail(const Error& error, FailureOf failure_of) {
  if (!control_) return kj::READY_NOW;
  expectClose();
  auto request = control_->failRequest();
  request.setBadConfig(error.code() == ErrorCode::kBadConfig);
  request.setReason(error.message().substr(0, kReasonBytesMax));
  request.setLeaves(failure_of == FailureOf::kWorker);
  return request.send().ignoreResult();
}

// ---- data

PsDataLink::PsDataLink(net::Loop& io, LinkOptions options, uint32_t ps_task,
                       cluster::Address address, uint64_t elements, uint32_t batches_per_step,
                       std::function<kj::Promise<void>()> before_reopening)
    : io_(io),
      options_(std::move(options)),
      ps_{JobKind::kPs, ps_task},
      peer_(peerText(ps_, address)),
      elements_(elements),
      batches_per_step_(batches_per_step),
      gradient_(std::make_shared<Buffer>(elements * sizeof(float))),
      connection_(io,
                  {.peer = peer_,
                   .address = std::move(address),
                   .kind = net::ConnectionKind::kBulk,
                   .limits = arenaLimits(elements_),
                   .pool = net::BufferPool::create(),
                   .patience = fromSeconds(options_.timeouts.start_seconds)},
                  // The control link gives a ps up, in half that time.
                  2 * fromSeconds(options_.timeouts.rejoin_seconds),
                  fromSeconds(options_.timeouts.lease_seconds),
                  {.say_hello = [this](auto& connection) { return sayHello(connection); },
                   .before_reopening = std::move(before_reopening),
                   .failing_max = fromSeconds(options_.timeouts.rejoin_seconds +
                                              options_.timeouts.step_seconds)}) {
  DTF_CHECK(batches_per_step_ > 0);
  DTF_CHECK(elements_ % 2 == 0);  // a gradient is sent as words
}

kj::Promise<void> PsDataLink::open() {
  return connection_.open().catch_(
      [this](kj::Exception&& e) { rethrowNamed(e, peer_, "opening the bulk connection"); });
}

kj::Promise<void> PsDataLink::sayHello(net::RpcConnection& connection) {
  auto request = connection.bootstrap().castAs<schema::PsDataGate>().helloRequest();
  const bool is_first = hellos_said_ == 0;
  encodeHello(options_, ps_, request.initHello(), hellos_said_++);
  return request.send().then(
      [this](auto&& response) { data_ = response.getData(); },
      [is_first](kj::Exception&& exception) {
        // A ps that was started again, and has not been told the model.
        const Error error = net::toError(exception);
        if (!is_first && error.code() == ErrorCode::kPermission)
          kj::throwFatalException(net::toKj(net::asio::error::not_connected, error.message()));
        kj::throwFatalException(kj::mv(exception));
      });
}

// A time without a connection counts against timeouts.rejoin_seconds, not against a call's own.
kj::Promise<void> PsDataLink::initialise(std::span<const float> values, uint64_t epoch) {
  DTF_CHECK(values.size() == elements_);
  // A copy that the message owns: initial values are sent once, and the caller's may go.
  auto copy = std::make_shared<Buffer>(values.size_bytes());
  if (!values.empty()) std::memcpy(copy->data(), values.data(), values.size_bytes());
  return connection_.untilAnswered<void>("sending the initial values", [this, copy, epoch] {
    auto request = data_->initialiseRequest();
    request.setEpoch(epoch);
    referenceArena({copy->as<float>(), elements_}, copy, request.initValues(arenaChunks(elements_)),
                   connection_.connection().stream());
    return awaitNamed(
        io_.timer(),
        {peer_ + " to take the initial values", fromSeconds(options_.timeouts.step_seconds)},
        request.send().ignoreResult());
  });
}

// An answer comes with parameters, unless `more_batches` are due for the step: then those from before
// are still here.
template <class Results>
ps::StepState PsDataLink::take(capnp::Response<Results>&& response, Received& received,
                               bool more_batches) {
  return net::bridgeErrors([&] {
    const ps::StepState state = decodeStepState(response.getState());
    if (state.outcome == ps::Outcome::kQueued) {
      if (!more_batches)
        throw Error(ErrorCode::kInternal,
                    peer_ + " kept a gradient for later where its parameters were due");
      return state;
    }
    epoch_ = state.epoch;
    auto held = kj::heap<capnp::Response<Results>>(kj::mv(response));
    received.values = readArena(held->getParameters(), elements_, received.assembled);
    received.held = kj::mv(held);  // the response before goes back to the pool only now
    return state;
  });
}

kj::Promise<ps::StepState> PsDataLink::pull(std::optional<uint64_t> wanted_step, uint64_t epoch) {
  parameters_.held = nullptr;
  return connection_.untilAnswered<ps::StepState>("pulling", [this, wanted_step, epoch] {
    auto request = data_->pullRequest(capnp::MessageSize{8, 0});
    request.setWantsStep(wanted_step.has_value());
    request.setWantedStep(wanted_step.value_or(0));
    request.setEpoch(epoch);
    return awaitNamed(
        io_.timer(),
        {peer_ + " to send its parameters", fromSeconds(options_.timeouts.step_seconds + 5)},
        request.send().then([this](capnp::Response<schema::PsData::PullResults>&& response) {
          return take(kj::mv(response), parameters_, false);
        }));
  });
}

kj::Promise<void> PsDataLink::pullAverages() {
  averages_.held = nullptr;
  return connection_.untilAnswered<void>("pulling the moving averages", [this] {
    return awaitNamed(
        io_.timer(),
        {peer_ + " to send the moving averages", fromSeconds(options_.timeouts.step_seconds + 5)},
        data_->averagesRequest(capnp::MessageSize{8, 0})
            .send()
            .then([this](capnp::Response<schema::PsData::AveragesResults>&& response) {
              take(kj::mv(response), averages_, false);
            }));
  });
}

kj::Promise<ps::StepState> PsDataLink::exchange(uint64_t step, uint32_t batch, float loss) {
  // After a step's last batch the parameters before are no longer needed: said now, it travels in
  // one packet with the request.
  const bool more_batches = batch + 1 < batches_per_step_;
  if (!more_batches) parameters_.held = nullptr;
  // The arena is the caller's again only after the answer: what is said again is the same.
  return connection_.untilAnswered<ps::StepState>("exchanging a step", [this, step, batch, loss,
                                                                        more_batches] {
    // The size spares capnp a first segment of 8 KiB, zeroed, per message.
    auto request = data_->exchangeRequest(capnp::MessageSize{16 + 2 * arenaChunks(elements_), 0});
    request.setStep(step);
    request.setBatch(batch);
    request.setLoss(loss);
    request.setEpoch(epoch_);
    referenceArena({gradient_->as<float>(), elements_}, gradient_,
                   request.initGradient(arenaChunks(elements_)), connection_.connection().stream());
    return request.send().then(
        [this, more_batches](capnp::Response<schema::PsData::ExchangeResults>&& response) {
          return take(kj::mv(response), parameters_, more_batches);
        });
  });
}

}  // namespace dtf::wire
