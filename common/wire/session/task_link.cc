#include "common/wire/session/task_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"
#include "common/wire/opening.h"
#include "common/wire/session/tensor_codec.h"
#include "common/wire/session/trace_codec.h"

namespace dtf::wire {

namespace {

constexpr uint32_t kTaskDevicesMax = 1'024;
constexpr uint32_t kClusterTasksMax = 65'536;

uint32_t milliseconds(Duration time) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 1, UINT32_MAX));
}

}  // namespace

TaskLink::TaskLink(net::Loop& loop, cluster::Address address, std::optional<TaskId> wanted,
                   uint64_t chunk_bytes)
    : loop_(loop),
      address_(std::move(address)),
      wanted_(wanted),
      chunk_bytes_(chunk_bytes),
      peer_(wanted_ ? wanted_->name() + " (" + address_.str() + ")" : address_.str()) {}

TaskLink::~TaskLink() noexcept(false) {}

kj::Promise<void> TaskLink::open(const SessionToken& token, Duration patience) {
  DTF_CHECK(connection_ == nullptr && !lost_);
  return openConnection(
             loop_,
             {.peer = peer_,
              .task = wanted_ ? wanted_->name() : "",
              .address = address_,
              .kind = net::ConnectionKind::kBulk,
              .limits = kTensorLimits,
              .pool = net::BufferPool::create(),
              .patience = patience},
             [this, token](net::RpcConnection& connection) { return hello(connection, token); })
      .then([this](std::unique_ptr<net::RpcConnection> connection) {
        connection_ = std::move(connection);
        connection_->setPeer(peer_);
        watching_ = connection_->onDisconnect()
                        .then([this] { lose("the connection was closed"); },
                              [this](kj::Exception&& exception) {
                                lose(net::toError(exception).message());
                              })
                        .eagerlyEvaluate(nullptr);
      });
}

kj::Promise<void> TaskLink::hello(net::RpcConnection& connection, const SessionToken& token) {
  auto request = connection.bootstrap().castAs<schema::TaskGate>().helloRequest();
  encodeToken(token, request.initToken());
  return request.send().then(
      [this, certified = connection.stream().certifiedPeer()](auto&& answer) {
        net::bridgeErrors([&] {
          task_ = decodeTask(answer.getTask());
          if (!certified.empty() && certified != task_.name())
            throw Error(ErrorCode::kPermission,
                        fmt::format("{} says that it is {}, but its certificate is for {}", peer_,
                                    task_.name(), certified));
          if (wanted_ && task_ != *wanted_)
            throw Error(ErrorCode::kPermission,
                        fmt::format("{} says that it is {}, but {} is wanted", peer_, task_.name(),
                                    wanted_->name()));
          incarnation_ = {answer.getIncarnation()};
          peer_ = task_.name() + " (" + address_.str() + ")";
          checkDevices(answer.getDevices());
          bytes_max_ = answer.getBytesMax();
          takeCluster(answer.getCluster());
          session_ = answer.getSession();
        });
      },
      [this](kj::Exception&& exception) {
        if (exception.getType() == kj::Exception::Type::UNIMPLEMENTED)
          net::throwAsKj(Error(
              ErrorCode::kUnavailable,
              "the process at " + address_.str() + " serves no sessions: start it with --serve"));
        kj::throwFatalException(kj::mv(exception));
      });
}

void TaskLink::checkDevices(capnp::List<capnp::Text>::Reader names) {
  if (names.size() == 0 || names.size() > kTaskDevicesMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} says that it has {} devices", peer_, names.size()));
  devices_.clear();
  for (const auto name : names) {
    const graph::DeviceName device = graph::DeviceName::parse({name.begin(), name.size()});
    if (device.taskId() != task_ || !device.type || !device.index)
      throw Error(ErrorCode::kBadData, fmt::format("{} says that it has the device '{}'", peer_,
                                                   printable({name.begin(), name.size()})));
    devices_.push_back(device);
  }
}

void TaskLink::takeCluster(capnp::List<schema::ClusterTask>::Reader tasks) {
  if (tasks.size() > kClusterTasksMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} says that its cluster has {} tasks", peer_, tasks.size()));
  cluster_.clear();
  automatic_.clear();
  for (const auto each : tasks) {
    const auto text = each.getAddress();
    cluster::Address address;
    const std::string wrong = cluster::parseAddress({text.begin(), text.size()}, address);
    if (!wrong.empty())
      throw Error(ErrorCode::kBadData,
                  fmt::format("{} names an address '{}' in its cluster: {}", peer_,
                              printable({text.begin(), text.size()}), wrong));
    auto& tasks_of_kind = address.port == 0 ? automatic_ : cluster_;
    tasks_of_kind[decodeTask(each.getTask())] = std::move(address);
  }
}

// Destroys the connection in a turn of its own, which runs none of its promises.
void TaskLink::lose(const std::string& reason) {
  if (lost_) return;
  lost_ = Error(ErrorCode::kUnavailable, fmt::format("{} was lost: {}", peer_, reason));
  log::warning("event=task_lost task=\"{}\" reason=\"{}\"", peer_, printable(reason));
  session_ = nullptr;
  loop_.post([dead = std::exchange(connection_, nullptr)]() mutable { dead.reset(); });
}

kj::Promise<void> TaskLink::whenGone() {
  auto gone = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(gone.fulfiller));
  loop_.post([fulfiller] { (*fulfiller)->fulfill(); });
  return kj::mv(gone.promise);
}

schema::GraphSession::Client& TaskLink::session() {
  if (lost_) throw Error(*lost_);
  KJ_IF_MAYBE (open, session_) {
    return *open;
  }
  DTF_CHECK_MSG(false, peer_ + " isn't open");
  KJ_UNREACHABLE;
}

Error TaskLink::failure(const kj::Exception& exception) {
  if (net::carriesError(exception)) return net::toError(exception);
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
    lose(net::toError(exception).message());
    return *lost_;
  }
  return {ErrorCode::kInternal, peer_ + ": " + net::toError(exception).message()};
}

template <class T>
kj::Promise<T> TaskLink::bridged(kj::Promise<T> answered) {
  return answered.catch_([this](kj::Exception&& exception) -> kj::Promise<T> {
    const Error error = failure(exception);
    if (!lost_) net::throwAsKj(error);
    return whenGone().then([error]() -> T { net::throwAsKj(error); });
  });
}

kj::Promise<void> TaskLink::registerPart(uint64_t plan,
                                         std::shared_ptr<const engine::TaskPart> part,
                                         const Processes& processes, Duration deadline) {
  uint64_t in_message = 0;
  for (const auto& [node, value] : part->folded)
    addToMessage(in_message, value.bytes(), "the value of '" + node + "'", peer_, bytes_max_);
  auto request = session().registerPartRequest();
  request.setPlan(plan);
  request.setDigest(engine::digestOf(*part));
  encodePart(part, processes, connection_->stream(), request.initPart(), chunk_bytes_);
  return bridged(awaitNamed(loop_.timer(), {peer_ + " to compile its part of the graph", deadline},
                            request.send().ignoreResult()));
}

void TaskLink::releasePart(uint64_t plan) {
  if (lost_) return;
  auto request = session().releasePartRequest();
  request.setPlan(plan);
  request.send().ignoreResult().detach([](kj::Exception&&) {});  // an ended session has no parts
}

kj::Promise<void> TaskLink::setVariable(const engine::ResourceKey& key, const Tensor& value,
                                        Duration deadline) {
  auto request = session().setVariableRequest();
  request.setDevice(key.device);
  request.setContainer(key.container);
  request.setName(key.name);
  uint64_t in_message = 0;
  addToMessage(in_message, value.bytes(), "the value of '" + key.name + "'", peer_, bytes_max_);
  TensorWriter writer(connection_->stream(), chunk_bytes_);
  writer.write({value.dtype(), value.shape()}, {value.data(), value.bytes()}, request.initValue());
  // A deadline while the value is still being written must not leave the message behind.
  return bridged(awaitNamed(loop_.timer(),
                            {peer_ + " to take the value of '" + key.name + "'", deadline},
                            request.send().ignoreResult())
                     .catch_([this](kj::Exception&& exception) {
                       if (net::toError(exception).code() == ErrorCode::kDeadline)
                         lose(net::toError(exception).message());
                       kj::throwFatalException(kj::mv(exception));
                     }));
}

kj::Promise<void> TaskLink::reset(const std::string& container, Duration deadline) {
  auto request = session().resetRequest();
  request.setContainer(container);
  return bridged(awaitNamed(loop_.timer(), {peer_ + " to reset a container", deadline},
                            request.send().ignoreResult()));
}

kj::Promise<PartResult> TaskLink::runPart(uint64_t plan, uint64_t step, Duration deadline,
                                          const std::vector<const Tensor*>& feeds,
                                          const std::vector<graph::TensorSpec>& fetches,
                                          bool is_traced) {
  auto request = session().runPartRequest();
  request.setPlan(plan);
  request.setStep(step);
  request.setDeadlineMs(milliseconds(deadline));
  request.setTrace(is_traced);
  uint64_t in_message = 0;
  for (size_t i = 0; i < feeds.size(); ++i)
    addToMessage(in_message, feeds[i]->bytes(), fmt::format("feed {} of {}", i, peer_), peer_,
                 bytes_max_);
  auto list = request.initFeeds(static_cast<uint32_t>(feeds.size()));
  TensorWriter writer(connection_->stream(), chunk_bytes_);
  for (uint32_t i = 0; i < list.size(); ++i)
    writer.write({feeds[i]->dtype(), feeds[i]->shape()}, {feeds[i]->data(), feeds[i]->bytes()},
                 list[i]);
  return bridged<PartResult>(request.send().then([this, &fetches, is_traced](auto&& answer) {
    return net::bridgeErrors([&] {
      PartResult result;
      result.kernels = answer.getKernels();
      if (is_traced) result.trace = decodeTrace(task_, answer.hasTrace(), answer.getTrace());
      const auto values = answer.getFetches();
      if (values.size() != fetches.size())
        throw Error(ErrorCode::kInternal, fmt::format("{} answered with {} fetches of {}", peer_,
                                                      values.size(), fetches.size()));
      for (uint32_t i = 0; i < values.size(); ++i) {
        const std::string what = fmt::format("fetch {} of {}", i, peer_);
        if (!(readSpec(values[i], what) == fetches[i]))
          throw Error(ErrorCode::kInternal, what + " has another type or shape");
        result.fetches.push_back(readTensor(values[i], what));
      }
      return result;
    });
  }));
}

kj::Promise<void> TaskLink::abort(uint64_t step, const Error& cause, Duration patience) {
  if (lost_) return whenGone();
  auto request = session().abortRequest();
  request.setStep(step);
  request.setCause(net::toKj(cause).getDescription());
  return awaitNamed(loop_.timer(), {peer_ + " to end an aborted step", patience},
                    request.send().ignoreResult())
      .catch_([this](kj::Exception&& exception) {
        lose(net::toError(exception).message());
        return whenGone();
      });
}

kj::Promise<engine::RendezvousLoad> TaskLink::load(Duration deadline) {
  return bridged<engine::RendezvousLoad>(awaitNamed(
      loop_.timer(), {peer_ + " to report its load", deadline},
      kj::Promise<engine::RendezvousLoad>(session().loadRequest().send().then([](auto&& answer) {
        return engine::RendezvousLoad{.steps = answer.getSteps(),
                                      .parked = answer.getParked(),
                                      .owned_bytes = answer.getOwnedBytes(),
                                      .waiting = answer.getWaiting()};
      }))));
}

}  // namespace dtf::wire
