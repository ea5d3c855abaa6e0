#include "daemons/served_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/engine/executor.h"
#include "common/engine/registered_part.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/tensor_codec.h"

namespace dtf::daemons {

namespace {

// How long a failed step waits for its messages to leave before it closes their connection.
constexpr Duration kDrainPatience = std::chrono::seconds(2);

uint64_t bytesOf(const graph::TensorSpec& spec) {
  return static_cast<uint64_t>(spec.shape.elements()) * dtypeBytes(spec.dtype);
}

}  // namespace

// A part, with what steps need to know of its edges. Shared with the steps that run it and the
// messages that carry its tensors.
struct ServedSession::Registered final : engine::Departures {
  struct Source {  // of an edge that is received
    TaskId peer;
    Incarnation incarnation;
    uint64_t bytes = 0;
  };

  void send(uint64_t step, TaskId to, std::vector<engine::PartProgram::Send> tensors,
            Done done) override {
    task->post(session,
               [plan = plan, step, to, tensors = std::move(tensors), done = std::move(done)](
                   ServedSession& served) { served.leave(plan, step, to, tensors, done); });
  }

  ServedTask* task = nullptr;
  uint64_t session = 0, plan = 0, digest = 0, bytes = 0;
  std::unique_ptr<engine::RegisteredPart> part;
  engine::Routes routes;
  std::map<uint32_t, Source> sources;
  std::map<TaskId, Incarnation> peers;
  uint64_t last_step = 0;
  bool is_running = false;
};

// A step of one part. Shared with the messages that carry what it fetches or sends.
struct ServedSession::Running {
  Running(RunPart called, std::shared_ptr<Registered> with)
      : context(kj::mv(called)), part(std::move(with)) {}
  RunPart context;  // its parameters are what is fed
  const std::shared_ptr<Registered> part;
  std::vector<Buffer> assembled;  // feeds that didn't lie in one piece
  std::vector<engine::Bytes> feeds;
  std::vector<engine::StepPart> parts;
  engine::AbortStep abort;
  kj::Own<kj::PromiseFulfiller<void>> done;
  kj::ForkedPromise<void> over = nullptr;  // whatever became of it
  kj::Own<kj::PromiseFulfiller<void>> ending;
  kj::Promise<void> deadline = nullptr;
};

ServedSession::ServedSession(ServedTask& task, uint64_t id, ConnectionRef client)
    : task_(task), id_(id), client_(std::move(client)), rendezvous_(task.limits.rendezvous) {}

ServedSession::~ServedSession() noexcept(false) {
  for (const auto& [plan, registered] : plans_) task_.bytes -= registered->bytes;
}

void ServedSession::taskFailed(kj::Exception&& exception) {
  DTF_CHECK_MSG(false, exception.getDescription().cStr());  // the end of a step answers for itself
}

void ServedSession::checkOpen() const {
  if (closed_) throw Error(ErrorCode::kUnavailable, "the session has ended");
}

std::shared_ptr<ServedSession::Registered> ServedSession::decode(
    uint64_t plan, schema::Part::Reader part, uint64_t digest,
    std::shared_ptr<engine::TaskPart>& decoded) {
  wire::DecodedPart read = wire::decodePart(part);
  engine::checkTaskPart(read.part, task_.self, task_.devices.names());
  if (engine::digestOf(read.part) != digest)
    throw Error(ErrorCode::kBadData, "the part isn't what its digest is of");
  refuseIfFull(read.bytes, fmt::format("the part of plan {}", plan));
  auto made = std::make_shared<Registered>();
  made->task = &task_;
  made->session = id_;
  made->plan = plan;
  made->digest = digest;
  made->bytes = read.bytes;
  for (size_t i = 0; i < read.part.edges.size(); ++i) {
    const engine::TaskPart::Edge& edge = read.part.edges[i];
    const graph::Node& node = read.part.graph.node(edge.node);
    const Incarnation incarnation = read.peers[i];
    if (!task_.address_of(edge.peer))
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("node '{}': {} knows no {} in its cluster", node.name,
                              task_.self.name(), edge.peer.name()));
    const auto [peer, is_new] = made->peers.emplace(edge.peer, incarnation);
    if (!is_new && peer->second != incarnation)
      throw Error(ErrorCode::kBadData, edge.peer.name() + " is two processes in one part");
    if (node.op == "_Send") {
      made->routes.destinations.emplace(edge.number, edge.peer);
    } else {
      made->routes.sources.emplace(edge.number, incarnation);
      made->sources[edge.number] = {edge.peer, incarnation, bytesOf(node.outputs[0])};
    }
  }
  decoded = std::make_shared<engine::TaskPart>(std::move(read.part));
  return made;
}

kj::Promise<void> ServedSession::registerPart(uint64_t plan, schema::Part::Reader part,
                                              uint64_t digest) {
  checkOpen();
  const auto known = plans_.find(plan);
  if (known != plans_.end() && known->second->digest == digest) return kj::READY_NOW;
  if (known != plans_.end() || registering_.contains(plan))
    throw Error(ErrorCode::kBadData, fmt::format("the plan {} has another part here", plan));
  if (plans_.size() + registering_.size() >= task_.limits.plans ||
      registering_.size() >= task_.limits.registrations)
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("the session has {} plans on {}, of at most {}, and {} are being made",
                    plans_.size(), task_.self.name(), task_.limits.plans, registering_.size()));
  std::shared_ptr<engine::TaskPart> decoded;
  const std::shared_ptr<Registered> made = decode(plan, part, digest, decoded);
  task_.bytes += made->bytes;
  auto pair = kj::newPromiseAndFulfiller<void>();
  registering_[plan] = {made->bytes, kj::mv(pair.fulfiller)};
  // The session waits for this, so task_ is there.
  task_.registrar.post([&task = task_, id = id_, plan, made, decoded] {
    std::optional<Error> failed;
    try {
      const uint32_t first_own = decoded->edges_total;
      made->part = std::make_unique<engine::RegisteredPart>(
          std::move(*decoded), task.devices.devices(), first_own, task.variables);
    } catch (const std::bad_alloc&) {
      failed = Error(ErrorCode::kUnavailable, task.self.name() + " has not enough memory");
    } catch (const std::exception&) {
      failed = net::currentError();
    }
    const Compiled result = failed ? Compiled(*failed) : Compiled(made);
    task.post(id, [plan, result](ServedSession& served) { served.compiled(plan, result); });
  });
  return kj::mv(pair.promise);
}

void ServedSession::compiled(uint64_t plan, Compiled result) {
  const auto at = registering_.find(plan);
  DTF_CHECK(at != registering_.end());
  auto registered = kj::mv(at->second.registered);
  const uint64_t bytes = at->second.bytes;
  registering_.erase(at);
  if (const Error* const error = std::get_if<Error>(&result)) {
    task_.bytes -= bytes;
    return registered->reject(net::toKj(*error));
  }
  plans_[plan] = std::get<std::shared_ptr<Registered>>(std::move(result));
  registered->fulfill();
}

void ServedSession::releasePart(uint64_t plan) {
  const auto known = plans_.find(plan);
  if (known == plans_.end()) return;
  task_.bytes -= known->second->bytes;
  plans_.erase(known);
}

void ServedSession::setVariable(const engine::VariableKey& key, schema::Tensor::Reader value) {
  checkOpen();
  const std::string what = "the value of '" + key.name + "'";
  for (const std::string* const name : {&key.container, &key.name})
    if ((name == &key.name && name->empty()) || name->size() > wire::kNameBytesMax)
      throw Error(ErrorCode::kBadData,
                  fmt::format("a variable's name has {} characters", name->size()));
  if (!task_.devices.devices().contains(key.device))
    throw Error(ErrorCode::kBadConfig,
                what + " is for a device that " + task_.self.name() + " doesn't have");
  const graph::TensorSpec spec = wire::readSpec(value, what);
  Buffer assembled;
  const engine::Bytes bytes = wire::readBytes(value.getBytes(), bytesOf(spec), assembled, what);
  task_.variables.use(key, spec, key.name)->set(bytes);
}

void ServedSession::refuseIfFull(uint64_t bytes, const std::string& what) const {
  if (bytes <= task_.limits.bytes - std::min(task_.limits.bytes, task_.bytes)) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} has no room for {}, which takes {} bytes: {} of {} are taken; close "
                          "other sessions",
                          task_.self.name(), what, bytes, task_.bytes, task_.limits.bytes));
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
    if (!(wire::readSpec(feeds[i], what) == specs[i]))
      throw Error(ErrorCode::kBadData, what + " has another type or shape than the part has");
    running.feeds.push_back(
        wire::readBytes(feeds[i].getBytes(), bytesOf(specs[i]), running.assembled[i], what));
  }
}

kj::Promise<void> ServedSession::runPart(RunPart context) {
  checkOpen();
  const uint64_t plan = context.getParams().getPlan(), step = context.getParams().getStep();
  const auto known = plans_.find(plan);
  if (known == plans_.end())
    throw Error(ErrorCode::kBadData, fmt::format("there is no plan {} in this session", plan));
  Registered& registered = *known->second;
  if (registered.is_running || step <= registered.last_step || running_.contains(step))
    throw Error(ErrorCode::kBadData,
                fmt::format("step {} of plan {} can't begin: {}", step, plan,
                            registered.is_running ? "another one runs" : "it has begun before"));
  registered.last_step = step;
  if (const auto aborted = aborted_.find(step); aborted != aborted_.end()) {
    const Error cause = aborted->second;
    aborted_.erase(aborted);
    throw Error(cause);
  }
  const auto running = std::make_shared<Running>(context, known->second);
  readFeeds(*running);
  registered.part->addStep(running->feeds, running->parts);
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
  Registered& registered = *running->part;
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

// What a failed step has on its way refers to memory that the next one writes.
kj::Promise<void> ServedSession::ended(uint64_t step, engine::StepEnd end) {
  kj::Vector<kj::Promise<void>> draining;
  if (std::holds_alternative<Error>(end))
    for (const auto& [peer, link] : links_)
      draining.add(link->drained(kDrainPatience).eagerlyEvaluate(nullptr));
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
    if (const Error* const cause = std::get_if<Error>(&end))
      return running->done->reject(net::toKj(*cause));
    answer(running, std::get<uint64_t>(end));
    running->done->fulfill();
  });
}

void ServedSession::answer(const std::shared_ptr<Running>& running, uint64_t kernels) {
  if (client_->connection == nullptr) return;
  auto results = running->context.getResults();
  results.setKernels(kernels);
  const engine::RegisteredPart& part = *running->part->part;
  auto fetches = results.initFetches(static_cast<uint32_t>(part.fetches().size()));
  wire::TensorWriter writer(client_->connection->stream(), running);
  for (uint32_t i = 0; i < fetches.size(); ++i)
    writer.write(part.fetches()[i], part.fetch(i, running->parts), fetches[i]);
}

kj::Promise<void> ServedSession::abort(uint64_t step, const Error& cause) {
  const auto running = running_.find(step);
  if (running != running_.end()) {
    running->second->abort(cause);
    return running->second->over.addBranch();
  }
  // Its runPart may come yet; so may tensors of others.
  rendezvous_.abort(step, cause);
  aborted_.insert_or_assign(step, cause);
  if (aborted_.size() > task_.limits.aborts_kept) aborted_.erase(aborted_.begin());
  return kj::READY_NOW;
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
    auto assembled = std::make_shared<Buffer>();
    engine::Parcel parcel;
    parcel.bytes = wire::readBytes(tensor.getBytes(), source->second.bytes, *assembled, what);
    if (parcel.bytes.data() == assembled->data()) {
      parcel.owner = assembled;
    } else if (auto pinned = stream.pin(parcel.bytes.data())) {
      parcel.owner = std::move(pinned);
    } else {  // of a small message, whose memory is the connection's
      *assembled = Buffer(parcel.bytes.size());
      std::memcpy(assembled->data(), parcel.bytes.data(), parcel.bytes.size());
      parcel = {{assembled->data(), assembled->bytes()}, assembled};
    }
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

// Of a step that has ended nothing leaves: its memory may be the next one's.
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
        task_.loop, wire::TensorLinkOptions{.session = id_,
                                            .self = task_.self,
                                            .incarnation = task_.incarnation,
                                            .peer = to,
                                            .peer_incarnation = incarnation,
                                            .address = *task_.address_of(to)});
  return *link;
}

void ServedSession::close() {
  if (closed_) return;
  closed_ = true;
  const Error cause(ErrorCode::kUnavailable, "the session's client has gone");
  std::vector<engine::AbortStep> aborts;  // which may end steps, and change running_
  for (const auto& [step, running] : running_) aborts.push_back(running->abort);
  for (const engine::AbortStep& abort : aborts) abort(cause);
}

}  // namespace dtf::daemons
