#include "common/wire/ps/ps_link.h"

#include <capnp/message.h>
#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"

namespace dtf::wire {

namespace {

// Reports a model that is too large for a message before the start, instead of a broken connection.
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
  hello.setDurability(options.durability.str());
  encodeCodecs(hello);
  hello.setTransport(transportName(options.remote != nullptr));
}

std::shared_ptr<net::RemoteDomain> remoteDomainOf(const cluster::JobSpec& job) {
  if (job.cluster.transport != cluster::Transport::kRdma || job.cluster.isOneProcess())
    return nullptr;
  return net::RemoteDomain::open();
}

LinkOptions linkOptions(const cluster::JobSpec& job, TaskId self, Incarnation incarnation) {
  const ShardHosts hosts = job.cluster.shardHosts();
  DTF_CHECK(self.index < (self.job == JobKind::kPs ? hosts.size() : job.cluster.worker.size()));
  LinkOptions options{
      job.job, self, incarnation, job.timeouts, addressesOf(job.cluster.worker), job.durability};
  options.hosts = hosts;
  if (!job.cluster.shared_memory) options.share_from_bytes = std::nullopt;
  if (!job.cluster.stream_gradients) options.stream_from_bytes = std::nullopt;
  options.remote = remoteDomainOf(job);
  return options;
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

Error jobEndedBy(uint32_t rank, ErrorCode code, const std::string& reason) {
  return with(ErrorTrait::kJobEnded,
              Error(code, fmt::format("the job was ended by {}: {}",
                                      TaskId{JobKind::kWorker, rank}.name(), reason)));
}

Error processLeft(const Error& error) {
  return with(
      ErrorTrait::kProcessLeft,
      Error(ErrorCode::kUnavailable, "it has left: " + error.message().substr(0, kReasonBytesMax)));
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
      peer_(peerText(hostOf(options_, ps_task), address)),
      events_(std::move(events)),
      connection_(io,
                  {.peer = peer_,
                   .task = hostOf(options_, ps_task).name(),
                   .address = std::move(address),
                   .kind = net::ConnectionKind::kControl,
                   .limits = kAnswerLimits,
                   .pool = net::BufferPool::create(0),
                   .patience = fromSeconds(options_.timeouts.start_seconds),
                   .on_waiting = events_.on_waiting},
                  fromSeconds(options_.timeouts.rejoin_seconds),
                  fromSeconds(options_.timeouts.lease_seconds),
                  {.say_hello = [this](auto& connection) { return sayHello(connection); },
                   .after_reopening = [this] { return introduce(); },
                   .on_open = [this] { onOpen(); },
                   .on_broken = [this](const Error& why) { onBroken(why); },
                   .on_lost =
                       [this](const Error& error) {
                         if (!finishing_) events_.on_lost(error);
                       }}) {
  DTF_CHECK(events_.on_lost != nullptr);
}

kj::Promise<void> PsControlLink::open() {
  return connection_.open("saying hello");
}

kj::Promise<void> PsControlLink::sayHello(net::RpcConnection& connection) {
  auto request = connection.bootstrap().castAs<schema::PsGate>().helloRequest();
  encodeHello(options_, ps_, request.initHello(), hellos_said_++);
  return request.send().then([this](auto&& response) {
    meet(Incarnation{response.getIncarnation()});
    control_ = response.getControl();
  });
}

// Notes the process of the ps that has replied to a hello.
void PsControlLink::meet(Incarnation incarnation) {
  if (incarnation.isCountedBefore(met_))
    kj::throwFatalException(
        net::toKj(net::asio::error::connection_aborted, "an earlier process of it answered"));
  const bool is_first = met_ == Incarnation{};
  is_replaced_ |= !is_first && incarnation != met_;
  met_ = incarnation;
}

// A new process of the ps has no state of this worker: neither the model, nor the barriers that the
// worker has passed, at which others would wait for it.
kj::Promise<void> PsControlLink::introduce() {
  if (!declared_) is_replaced_ = false;  // no process of it knows the model yet
  if (!is_replaced_) return kj::READY_NOW;
  return sendDeclaration().then([this] {
    arrivals_.clear();
    for (const std::string& name : passed_)
      arrivals_.push_back(sendArrival(name, replication::Arrival::kPassedBefore)
                              .eagerlyEvaluate([](kj::Exception&&) {}));
    is_replaced_ = false;
    if (events_.on_replaced) events_.on_replaced();
  });
}

void PsControlLink::onOpen() {
  DTF_CHECK(control_.has_value());
  heartbeats_ = beat().eagerlyEvaluate([this](kj::Exception&& e) { onFailed(e); });
  ended_ =
      control_->awaitEndRequest().send().ignoreResult().eagerlyEvaluate([this](kj::Exception&& e) {
        if (net::carriesError(e)) onFailed(e);
      });
  connection_.watch();
}

// After the break the ps reports anew which workers it waits for.
void PsControlLink::onBroken(const Error& why) {
  awaited_ = {};
  if (events_.on_awaited) events_.on_awaited(awaited_);
  if (events_.on_broken) events_.on_broken(why);
}

// A failure needs no handling: the next heartbeat fails, too.
void PsControlLink::setEvaluating(bool evaluates) {
  if (std::exchange(evaluates_, evaluates) == evaluates || !connection_.isOpen()) return;
  auto request = control_->heartbeatRequest();
  request.setEvaluates(evaluates_);
  told_ = request.send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
}

kj::Promise<void> PsControlLink::beat() {
  auto request = control_->heartbeatRequest();
  request.setEvaluates(evaluates_);
  return request.send()
      .then([this](auto&& answer) { onBeatAnswered(answer); })
      .exclusiveJoin(giveUpIfSilent())
      .then([this] {
        return io_.timer().afterDelay(net::toKj(fromSeconds(options_.timeouts.heartbeat_seconds)));
      })
      .then([this] { return beat(); });
}

kj::Promise<void> PsControlLink::giveUpIfSilent() {
  // Early enough to connect again before the lease of this worker runs out.
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

// An error from the ps is final, unless it leaves the job to another process. A call without a
// reply only shows that the link is broken.
void PsControlLink::onFailed(const kj::Exception& exception) {
  const Error error = net::toError(exception);
  const bool may_return = error.has(ErrorTrait::kProcessLeft);
  if (net::carriesError(exception) && !may_return) return connection_.end(error);
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

kj::Promise<void> PsControlLink::declare(const arena::ModelDeclaration& model) {
  DTF_CHECK(ps_.index < model.layout.shards.size());
  capnp::MallocMessageBuilder message;
  auto encoded = message.initRoot<schema::Model>();
  encodeModel(model, encoded);
  requireFits("the model's description", encoded.totalSize().wordCount * sizeof(capnp::word),
              kControlLimits);
  requireFits(fmt::format("{}'s report of a checkpoint", hostOf(options_, ps_.index).name()),
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
  return request.send().then([this](capnp::Response<schema::PsControl::DeclareResults>&& answer) {
    if (declared_->epochs.examples == 0 || answer.getWeighsEpochs()) return;
    net::throwAsKj(Error(ErrorCode::kBadConfig,
                         fmt::format("{} is of a release that knows no 'epochs', and would weigh a "
                                     "short batch as a whole one: upgrade the ps first, or give "
                                     "the job 'steps'",
                                     peer_)));
  });
}

kj::Promise<void> PsControlLink::waitInitialised() {
  // A little longer than the ps waits, whose own error names the missing worker.
  return awaitNamed(io_.timer(),
                    {kChief.name() + " to initialise " + peer_,
                     fromSeconds(options_.timeouts.start_seconds + 5), ErrorCode::kUnavailable},
                    connection_.untilAnswered<void>("waiting for the initial values", [this] {
                      return control_->waitInitialisedRequest().send().ignoreResult();
                    }));
}

kj::Promise<void> PsControlLink::barrier(std::string_view name, Duration deadline) {
  DTF_CHECK(!name.empty());
  const auto arrive = [this, name = std::string(name)] {
    return sendArrival(name, replication::Arrival::kFirst);
  };
  return awaitNamed(io_.timer(),
                    {fmt::format("the other workers at the barrier '{}' of {}", name, peer_),
                     deadline + std::chrono::seconds(5), ErrorCode::kUnavailable},
                    connection_.untilAnswered<void>("waiting at a barrier", arrive))
      .then([this, passed = std::string(name)] { passed_.push_back(passed); });
}

kj::Promise<void> PsControlLink::sendArrival(const std::string& name,
                                             replication::Arrival arrival) {
  auto request = control_->barrierRequest();
  request.setName(name);
  request.setPassedBefore(arrival == replication::Arrival::kPassedBefore);
  return request.send().ignoreResult();
}

kj::Promise<void> PsControlLink::requestStop() {
  return connection_.untilAnswered<void>("asking it to stop the job", [this] {
    return control_->requestStopRequest().send().ignoreResult();
  });
}

kj::Promise<void> PsControlLink::pause() {
  return connection_.untilAnswered<void>(
      "pausing the job", [this] { return control_->pauseRequest().send().ignoreResult(); });
}

// A ps ends when all workers have finished. If the connection breaks after the request, the ps may
// be gone before it is repeated; and no process of the ps needs a worker that has finished.
kj::Promise<void> PsControlLink::finish() {
  finishing_ = true;
  return awaitNamed(
             io_.timer(), {peer_ + " to confirm the end of this task", std::chrono::seconds(10)},
             connection_.untilAnswered<void>(
                 "finishing", [this] { return control_->finishRequest().send().ignoreResult(); }))
      .catch_([this](kj::Exception&& exception) {
        const Error error = net::toError(exception);
        const bool is_gone = !connection_.isOpen() && (error.code() == ErrorCode::kDeadline ||
                                                       error.code() == ErrorCode::kUnavailable);
        if (!is_gone) kj::throwFatalException(kj::mv(exception));
        finished_unheard_ = true;
        log::warning("event=finished_unheard peer=\"{}\" reason=\"{}\"", peer_, error.message());
      })
      .then([this] { expectClose(); });
}

kj::Promise<void> PsControlLink::hear() {
  return connection_.untilAnswered<void>("asking whether it is there", [this] {
    auto request = control_->heartbeatRequest();
    request.setEvaluates(evaluates_);
    return request.send().then([this](auto&& answer) { onBeatAnswered(answer); });
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

}  // namespace dtf::wire
