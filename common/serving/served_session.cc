#include "common/serving/served_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/engine/executor.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/session/part_codec.h"
#include "common/wire/session/tensor_codec.h"
#include "common/wire/session/trace_codec.h"

namespace dtf::serving {

namespace {

// A failed step waits for its messages to leave for this long, then closes their connection. Well
// below SessionLimits::abort_max, so that a frozen peer doesn't cost the session this task.
constexpr Duration kDrainPatience = std::chrono::seconds(1);

// Runs `act` and returns its error, if any.
template <class Do>
std::optional<Error> errorOf(const ServedTask& task, const Do& act) {
  try {
    act();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kUnavailable, task.self.name() + " has not enough memory");
  } catch (const std::exception&) {
    return net::currentError();
  }
}

std::string textOf(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

// A counted copy of bytes.
struct Kept {
  Buffer bytes;
  ByteBudget::Share share;
};

}  // namespace

// A step of one part. Shared with the messages that carry its fetched and sent tensors.
struct ServedSession::Running {
  Running(RunPart called, std::shared_ptr<ServedPart> with)
      : context(kj::mv(called)), part(std::move(with)) {}
  // Returns whether `bytes` are in the call's message, which is freed when the call is answered: a
  // fetched feed or a view of it. The answer may wait for its connection for longer than that.
  bool isInCall(engine::Bytes bytes) const {
    for (size_t i = 0; i < feeds.size(); ++i)
      if (bytes.data() >= feeds[i].data() && bytes.data() < feeds[i].data() + feeds[i].size())
        return feeds[i].data() != assembled[i].bytes.data();
    return false;
  }
  RunPart context;  // its parameters are the feeds; until it is answered
  const std::shared_ptr<ServedPart> part;
  std::vector<Kept> assembled;  // feeds that came in several pieces
  std::vector<engine::Bytes> feeds;
  std::vector<engine::Parcel> fetched;  // memory that the answer refers to
  std::vector<engine::StepPart> parts;
  std::shared_ptr<trace::StepTrace> trace;  // null: not requested
  ByteBudget::Share trace_memory;
  engine::AbortStep abort;
  kj::Own<kj::PromiseFulfiller<void>> done;
  kj::ForkedPromise<void> over = nullptr;  // fulfilled however the step ends
  kj::Own<kj::PromiseFulfiller<void>> ending;
  kj::Promise<void> deadline = nullptr;
};

ServedSession::ServedSession(ServedTask& task, const wire::SessionToken& token,
                             wire::ConnectionRef client)
    : task_(task),
      token_(token),
      id_(token.number),
      client_(std::move(client)),
      rendezvous_(task.limits.rendezvous) {}

ServedSession::~ServedSession() noexcept(false) {}

void ServedSession::taskFailed(kj::Exception&& exception) {
  // the end of a step handles its own errors
  DTF_CHECK_MSG(false, exception.getDescription().cStr());
}

void ServedSession::checkOpen() const {
  if (closed_) throw Error(ErrorCode::kUnavailable, "the session has ended");
}

// The compiling thread reads the message: a large one would keep all sessions waiting.
kj::Promise<void> ServedSession::registerPart(RegisterPart context) {
  checkOpen();
  const auto params = context.getParams();
  const PartId part{.session = id_, .plan = params.getPlan(), .digest = params.getDigest()};
  const auto known = plans_.find(part.plan);
  if (known != plans_.end() && known->second->digest == part.digest) return kj::READY_NOW;
  if (known != plans_.end() || registering_.contains(part.plan))
    throw Error(ErrorCode::kBadData, fmt::format("the plan {} has another part here", part.plan));
  if (plans_.size() + registering_.size() >= task_.limits.plans ||
      registering_.size() >= task_.limits.registrations)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the session has {} plans on {}, of at most {}, and {} are being made, "
                            "of at most {}",
                            plans_.size(), task_.self.name(), task_.limits.plans,
                            registering_.size(), task_.limits.registrations));
  auto pair = kj::newPromiseAndFulfiller<void>();
  registering_.emplace(part.plan, Registering{context, kj::mv(pair.fulfiller)});
  // The session stays until this is done, so task_ and the message are valid.
  task_.registrar.post([&task = task_, part, message = params.getPart()] {
    std::shared_ptr<ServedPart> compiled;
    const std::optional<Error> failed =
        errorOf(task, [&] { compiled = makeServedPart(task, part, message); });
    Made made = failed ? Made(*failed) : Made(std::move(compiled));
    task.post(part.session, [plan = part.plan, made = std::move(made)](ServedSession& served) {
      served.compiled(plan, made);
    });
  });
  return kj::mv(pair.promise);
}

void ServedSession::compiled(uint64_t plan, const Made& made) {
  const auto at = registering_.find(plan);
  DTF_CHECK(at != registering_.end());
  Registering registering = std::move(at->second);
  registering_.erase(at);
  if (const Error* const error = std::get_if<Error>(&made))
    return registering.registered->reject(net::toKj(*error));
  if (registering.is_released)
    return registering.registered->reject(net::toKj(
        Error(ErrorCode::kUnavailable, fmt::format("the plan {} was released meanwhile", plan))));
  plans_[plan] = std::get<std::shared_ptr<ServedPart>>(made);
  registering.registered->fulfill();
}

void ServedSession::releasePart(uint64_t plan) {
  plans_.erase(plan);
  const auto making = registering_.find(plan);
  if (making != registering_.end()) making->second.is_released = true;
}

kj::Promise<void> ServedSession::setVariable(SetVariable context) {
  checkOpen();
  const auto params = context.getParams();
  for (const auto& name : {params.getDevice(), params.getContainer(), params.getName()})
    if (name.size() > wire::kNameBytesMax)
      throw Error(ErrorCode::kBadData,
                  fmt::format("a variable's name has {} characters; the most is {}", name.size(),
                              wire::kNameBytesMax));
  const engine::ResourceKey key{textOf(params.getDevice()), textOf(params.getContainer()),
                                textOf(params.getName())};
  if (key.name.empty()) throw Error(ErrorCode::kBadData, "a variable has no name");
  const std::string what = "the value of '" + key.name + "'";
  if (!task_.devices.devices().contains(key.device))
    throw Error(ErrorCode::kBadConfig,
                what + " is for a device that " + task_.self.name() + " doesn't have");
  const graph::TensorSpec spec = wire::readSpec(params.getValue(), what);
  auto pair = kj::newPromiseAndFulfiller<void>();
  const uint64_t copy = next_copy_++;
  copying_.emplace(copy, Copying{context, kj::mv(pair.fulfiller)});
  // As in registerPart(). In the order of the calls, so that the last value stays.
  task_.copier.post([&task = task_, id = id_, copy, key, spec, what, message = params.getValue()] {
    const std::optional<Error> failed = errorOf(task, [&] {
      Buffer assembled;
      const engine::Bytes bytes =
          wire::readBytes(message.getBytes(), spec.bytes(), assembled, what);
      const ByteBudget::Share share = task.budget->take(assembled.bytes(), what);
      task.variables.use(key, spec, key.name)->set(bytes);
      DTF_FAILPOINT("serving.after_set");
    });
    task.post(id, [copy, failed](ServedSession& served) { served.copied(copy, failed); });
  });
  return kj::mv(pair.promise);
}

void ServedSession::copied(uint64_t copy, const std::optional<Error>& failed) {
  const auto at = copying_.find(copy);
  DTF_CHECK(at != copying_.end());
  Copying copying = std::move(at->second);
  copying_.erase(at);
  if (failed) return copying.copied->reject(net::toKj(*failed));
  copying.copied->fulfill();
}

void ServedSession::readFeeds(Running& running) {
  const auto feeds = running.context.getParams().getFeeds();
  const std::vector<graph::TensorSpec>& specs = running.part->part->feeds();
  if (feeds.size() != specs.size())
    throw Error(ErrorCode::kBadData, fmt::format("the step is fed {} tensors where the part has {}",
                                                 feeds.size(), specs.size()));
  running.assembled.resize(specs.size());
  for (uint32_t i = 0; i < feeds.size(); ++i) {
    const std::string what = fmt::format("feed {}", i);
    Kept& kept = running.assembled[i];
    if (!(wire::readSpec(feeds[i], what) == specs[i]))
      throw Error(ErrorCode::kBadData, what + " has another type or shape than the part has");
    running.feeds.push_back(
        wire::readBytes(feeds[i].getBytes(), specs[i].bytes(), kept.bytes, what));
    task_.budget->refuseIfPassed(specs[i].bytes(), what);
    kept.share = task_.budget->take(kept.bytes.bytes(), what);
  }
}

kj::Promise<void> ServedSession::runPart(RunPart context) {
  checkOpen();
  const uint64_t plan = context.getParams().getPlan(), step = context.getParams().getStep();
  const auto known = plans_.find(plan);
  if (known == plans_.end())
    throw Error(ErrorCode::kBadData, fmt::format("there is no plan {} in this session", plan));
  ServedPart& registered = *known->second;
  if (registered.is_running || step <= registered.last_step || running_.contains(step))
    throw Error(ErrorCode::kBadData,
                fmt::format("step {} of plan {} can't begin: {}", step, plan,
                            registered.is_running ? "another one runs" : "it has begun before"));
  registered.last_step = step;
  if (const std::optional<Error> aborted = rendezvous_.whyOver(step)) throw Error(*aborted);
  const auto running = std::make_shared<Running>(context, known->second);
  if (context.getParams().getTrace()) {
    running->trace_memory = task_.budget->take(trace::kStepTraceBytesMax, "the trace of a step");
    running->trace = std::make_shared<trace::StepTrace>(task_.self);
  }
  readFeeds(*running);
  registered.part->addStep(running->feeds, running->parts, running->trace);
  auto done = kj::newPromiseAndFulfiller<void>();
  running->done = kj::mv(done.fulfiller);
  auto over = kj::newPromiseAndFulfiller<void>();
  running->ending = kj::mv(over.fulfiller);
  running->over = over.promise.fork();
  running_.emplace(step, running);
  registered.is_running = true;
  start(running, context.getParams().getDeadlineMs());
  return kj::mv(done.promise);
}

void ServedSession::start(const std::shared_ptr<Running>& running, uint32_t deadline_ms) {
  const uint64_t step = running->context.getParams().getStep();
  ServedPart& registered = *running->part;
  running->abort = engine::startParts(
      {step, task_.incarnation}, running->parts,
      {.rendezvous = &rendezvous_, .routes = &registered.routes, .departures = &registered},
      [&task = task_, id = id_, step](engine::StepEnd end) {
        task.post(id, [step, end = std::move(end)](ServedSession& served) {
          served.ending_.add(served.ended(step, end));
        });
      });
  running->deadline =
      task_.loop.timer()
          .afterDelay(deadline_ms * kj::MILLISECONDS)
          .then([abort = running->abort, name = task_.self.name(), step, deadline_ms] {
            abort(Error(ErrorCode::kDeadline, fmt::format("{} has not ended step {} within {:g} s",
                                                          name, step, deadline_ms / 1000.0)));
          })
          .eagerlyEvaluate(nullptr);
}

// The messages of a failed step refer to memory that the next step writes: they must leave first.
kj::Promise<void> ServedSession::ended(uint64_t step, engine::StepEnd end) {
  kj::Vector<kj::Promise<void>> draining;
  const uint64_t plan = running_.at(step)->part->plan;
  if (std::holds_alternative<Error>(end))
    for (const auto& [peer, link] : links_)
      draining.add(link->drained(plan, kDrainPatience).eagerlyEvaluate(nullptr));
  rendezvous_.end(step);
  return kj::joinPromises(draining.releaseAsArray()).then([this, step, end = std::move(end)] {
    const auto at = running_.find(step);
    DTF_CHECK(at != running_.end());
    const std::shared_ptr<Running> running = at->second;
    running_.erase(at);
    running->part->is_running = false;
    running->deadline = nullptr;
    running->ending->fulfill();
    if (closed_) task_.post(id_, [](ServedSession&) {});
    tell(running, end);
  });
}

void ServedSession::tell(const std::shared_ptr<Running>& running, const engine::StepEnd& end) {
  if (const Error* const cause = std::get_if<Error>(&end))
    return running->done->reject(net::toKj(*cause));
  DTF_FAILPOINT("serving.before_reply");
  // If memory is short for the answer, only the step fails.
  KJ_IF_MAYBE (failure,
               kj::runCatchingExceptions([&] { answer(running, std::get<uint64_t>(end)); })) {
    running->done->reject(kj::mv(*failure));
  } else {
    running->done->fulfill();
  }
}

void ServedSession::answer(const std::shared_ptr<Running>& running, uint64_t kernels) {
  if (client_->connection == nullptr) return;
  auto results = running->context.getResults();
  results.setKernels(kernels);
  const engine::RegisteredPart& part = *running->part->part;
  auto fetches = results.initFetches(static_cast<uint32_t>(part.fetches().size()));
  net::MessageStream& stream = client_->connection->stream();
  wire::TensorWriter writer(stream, running, task_.limits.chunk_bytes);
  for (uint32_t i = 0; i < fetches.size(); ++i) {
    engine::Bytes bytes = part.fetch(i, running->parts);
    if (running->isInCall(bytes)) {
      running->fetched.push_back(keepInMessage(bytes, stream, fmt::format("fetch {}", i)));
      bytes = running->fetched.back().bytes;
    }
    writer.write(part.fetches()[i], bytes, fetches[i]);
  }
  if (running->trace != nullptr) wire::encodeTrace(running->trace->finish(), results.initTrace());
}

kj::Promise<void> ServedSession::abort(uint64_t step, const Error& cause) {
  const auto running = running_.find(step);
  if (running != running_.end()) {
    running->second->abort(cause);
    return running->second->over.addBranch();
  }
  // Its runPart may still come, and tensors of other tasks.
  rendezvous_.abort(step, cause);
  return kj::READY_NOW;
}

std::shared_ptr<const void> ServedSession::addSink() {
  use();
  checkOpen();
  if (*sinks_ >= task_.limits.sinks)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} has {} senders in this session, as many as it may",
                            task_.self.name(), *sinks_));
  ++*sinks_;
  return {nullptr, [sinks = sinks_](const void*) { --*sinks; }};
}

// Returns the bytes in place in the message, or a copy.
engine::Parcel ServedSession::keep(capnp::List<capnp::Data>::Reader bytes, uint64_t size,
                                   net::MessageStream& stream, const std::string& what) const {
  auto kept = std::make_shared<Kept>();
  const engine::Bytes read = wire::readBytes(bytes, size, kept->bytes, what);
  if (read.data() != kept->bytes.data()) return keepInMessage(read, stream, what);
  kept->share = task_.budget->take(size, what);
  return {read, kept};
}

// Copies bytes of a small message, which is in the connection's memory.
engine::Parcel ServedSession::keepInMessage(engine::Bytes bytes, net::MessageStream& stream,
                                            const std::string& what) const {
  task_.budget->refuseIfPassed(bytes.size(), what);
  if (auto owner = stream.pin(bytes.data())) return {bytes, std::move(owner)};
  auto kept = std::make_shared<Kept>();
  kept->share = task_.budget->take(bytes.size(), what);
  kept->bytes = Buffer(bytes.size());
  std::memcpy(kept->bytes.data(), bytes.data(), bytes.size());
  return {{kept->bytes.data(), bytes.size()}, kept};
}

bool ServedSession::takeTensors(TaskId sender, Incarnation incarnation,
                                schema::TensorSink::SendTensorsParams::Reader message,
                                net::MessageStream& stream) {
  checkOpen();
  const uint64_t step = message.getStep();
  const auto known = plans_.find(message.getPlan());
  if (known == plans_.end()) return true;
  bool over = false;
  for (const auto tensor : message.getTensors()) {
    const auto source = known->second->sources.find(tensor.getEdge());
    const std::string what = fmt::format("edge {} of step {}", tensor.getEdge(), step);
    if (source == known->second->sources.end() || source->second.peer != sender)
      throw Error(ErrorCode::kBadData, what + " doesn't come from " + sender.name());
    if (source->second.incarnation != incarnation)
      throw Error(ErrorCode::kBadData,
                  what + " is another process's: " + sender.name() + " was started again");
    engine::Parcel parcel = keep(tensor.getBytes(), source->second.bytes, stream, what);
    switch (rendezvous_.send({step, incarnation, tensor.getEdge()}, std::move(parcel))) {
      case engine::Rendezvous::Sent::kTaken:
        break;
      case engine::Rendezvous::Sent::kOver:
        over = true;
        break;
      case engine::Rendezvous::Sent::kDuplicate:
        throw Error(ErrorCode::kBadData, what + " was sent before");
      case engine::Rendezvous::Sent::kFull:
        throw Error(ErrorCode::kUnavailable,
                    what + " has no room: too many tensors wait on " + task_.self.name());
    }
  }
  return over;
}

// Drops the tensors of an ended step: their memory may be in use by the next.
void ServedSession::leave(uint64_t plan, uint64_t step, TaskId to,
                          std::vector<engine::PartProgram::Send> tensors,
                          engine::Departures::Done done) {
  const auto running = running_.find(step);
  if (running == running_.end() || running->second->part->plan != plan) return done(std::nullopt);
  linkTo(to, running->second->part->peers.at(to))
      .send(plan, step, std::move(tensors), running->second, std::move(done));
}

wire::TensorLink& ServedSession::linkTo(TaskId to, Incarnation incarnation) {
  std::unique_ptr<wire::TensorLink>& link = links_[to];
  if (link == nullptr)
    link = std::make_unique<wire::TensorLink>(
        task_.loop, wire::TensorLinkOptions{.token = token_,
                                            .self = task_.self,
                                            .incarnation = task_.incarnation,
                                            .peer = to,
                                            .peer_incarnation = incarnation,
                                            .address = *task_.address_of(to),
                                            .chunk_bytes = task_.limits.chunk_bytes});
  return *link;
}

void ServedSession::close() {
  if (closed_) return;
  closed_ = true;
  const Error cause(ErrorCode::kUnavailable, "the session's client has gone");
  std::vector<engine::AbortStep> aborts;  // an abort may end steps, and change running_
  for (const auto& [step, running] : running_) aborts.push_back(running->abort);
  for (const engine::AbortStep& abort : aborts) abort(cause);
}

}  // namespace dtf::serving
