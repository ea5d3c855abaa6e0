#include "common/wire/session/tensor_link.h"

#include <fmt/format.h>
#include <kj/async.h>

#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/model_codec.h"
#include "common/wire/opening.h"
#include "common/wire/session/tensor_codec.h"

namespace dtf::wire {

// The number of messages of one plan that refer to memory of senders. The messages share it, since
// they may outlive the link.
struct TensorLink::Holds {
  size_t count = 0;
  bool given_up = false;                                     // send no further message
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;  // for `count` to become 0
};

// Keeps the memory of a message from send() until it is written.
class TensorLink::Hold {
 public:
  Hold(std::shared_ptr<Holds> holds, std::shared_ptr<const void> owner)
      : holds_(std::move(holds)), owner_(std::move(owner)) {
    ++holds_->count;
  }
  ~Hold() {
    DTF_CHECK(holds_->count > 0);
    if (--holds_->count > 0) return;
    for (auto& waiter : std::exchange(holds_->waiting, {})) waiter->fulfill();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  bool isGivenUp() const { return holds_->given_up; }

 private:
  const std::shared_ptr<Holds> holds_;
  const std::shared_ptr<const void> owner_;
};

// The sends under way.
class TensorLinkCalls final : kj::TaskSet::ErrorHandler {
 public:
  void add(kj::Promise<void> promise) { tasks_.add(kj::mv(promise)); }

 private:
  void taskFailed(kj::Exception&& exception) override {
    DTF_CHECK_MSG(false, exception.getDescription().cStr());  // each send handles its errors
  }
  kj::TaskSet tasks_{*this};
};

TensorLink::TensorLink(net::Loop& loop, TensorLinkOptions options)
    : loop_(loop),
      options_(std::move(options)),
      peer_(options_.peer.name() + " (" + options_.address.str() + ")"),
      calls_(kj::heap<TensorLinkCalls>()) {
  DTF_CHECK(options_.patience > Duration{0} && options_.peer != options_.self);
}

TensorLink::~TensorLink() noexcept(false) {}

Error TensorLink::lost(const kj::Exception& exception) const {
  const Error error = net::toError(exception);
  if (net::carriesError(exception) && error.code() != ErrorCode::kUnavailable) return error;
  return Error(ErrorCode::kUnavailable,
               options_.self.name() + " can't send to " + peer_ + ": " + error.message());
}

kj::Promise<void> TensorLink::opened() {
  KJ_IF_MAYBE (opening, opening_) {
    return opening->addBranch();
  }
  auto opening =
      openConnection(
          loop_,
          {.peer = peer_,
           .task = options_.peer.name(),
           .address = options_.address,
           .kind = net::ConnectionKind::kBulk,
           .limits = kTensorLimits,
           .pool = net::BufferPool::create(0),
           .patience = options_.patience},
          [this](net::RpcConnection& connection) {
            auto request = connection.bootstrap().castAs<schema::TaskGate>().tensorsRequest();
            encodeToken(options_.token, request.initToken());
            encodeTask(options_.self, request.initCaller());
            encodeTask(options_.peer, request.initCallee());
            request.setIncarnation(options_.incarnation.value);
            return request.send().then([this](auto&& answer) {
              if (answer.getIncarnation() != options_.peer_incarnation.value)
                net::throwAsKj(Error(ErrorCode::kUnavailable,
                                     "it has been started again since the session began"));
              sink_ = answer.getSink();
              bytes_max_ = answer.getBytesMax();
            });
          })
          .then([this](std::unique_ptr<net::RpcConnection> connection) {
            connection_ = std::move(connection);
          })
          .fork();
  auto branch = opening.addBranch();
  opening_ = kj::mv(opening);
  return branch;
}

kj::Promise<void> TensorLink::sendNow(uint64_t plan, uint64_t step,
                                      const std::vector<engine::PartProgram::Send>& tensors,
                                      const std::shared_ptr<const Hold>& hold) {
  schema::TensorSink::Client* sink = nullptr;
  KJ_IF_MAYBE (open, sink_) {
    sink = open;
  }
  if (sink == nullptr || connection_ == nullptr || hold->isGivenUp())
    net::throwAsKj(Error(ErrorCode::kUnavailable, "the connection was given up"));
  uint64_t in_message = 0;
  net::bridgeErrors([&] {
    for (const engine::PartProgram::Send& tensor : tensors)
      addToMessage(in_message, tensor.bytes.size(), fmt::format("edge {} of the step", tensor.edge),
                   peer_, bytes_max_);
  });
  auto request = sink->sendTensorsRequest();
  request.setPlan(plan);
  request.setStep(step);
  auto list = request.initTensors(static_cast<uint32_t>(tensors.size()));
  TensorWriter writer(connection_->stream(), hold, options_.chunk_bytes);
  for (uint32_t i = 0; i < list.size(); ++i) {
    list[i].setEdge(tensors[i].edge);
    writer.write(tensors[i].bytes, list[i].initBytes(writer.blobs(tensors[i].bytes.size())));
  }
  return request.send().ignoreResult();  // `over`: the session has the reason from that task
}

void TensorLink::send(uint64_t plan, uint64_t step, std::vector<engine::PartProgram::Send> tensors,
                      std::shared_ptr<const void> owner, engine::Departures::Done done) {
  DTF_CHECK(!tensors.empty() && done != nullptr);
  const auto told = std::make_shared<engine::Departures::Done>(std::move(done));
  // Held from now on, since the memory must stay while the connection is being made, too.
  auto hold = std::make_shared<const Hold>(holdsOf(plan), std::move(owner));
  calls_->add(opened()
                  .then([this, plan, step, tensors = std::move(tensors), hold = std::move(hold)] {
                    return sendNow(plan, step, tensors, hold);
                  })
                  .then([told] { (*told)(std::nullopt); },
                        [this, told, made = connections_](kj::Exception&& exception) {
                          const bool is_lost =
                              !net::carriesError(exception) || connection_ == nullptr;
                          if (is_lost && made == connections_) close();
                          (*told)(lost(exception));
                        }));
}

// Destroys the connection in a turn of its own, which runs none of its promises.
void TensorLink::close() {
  ++connections_;
  sink_ = nullptr;
  opening_ = nullptr;
  if (connection_ == nullptr) return;
  loop_.post([dead = std::exchange(connection_, nullptr)]() mutable { dead.reset(); });
}

std::shared_ptr<TensorLink::Holds> TensorLink::holdsOf(uint64_t plan) {
  std::erase_if(holds_, [](const auto& each) { return each.second->count == 0; });
  std::shared_ptr<Holds>& holds = holds_[plan];
  if (holds == nullptr) holds = std::make_shared<Holds>();
  return holds;
}

kj::Promise<void> TensorLink::drained(uint64_t plan, Duration patience) {
  const auto known = holds_.find(plan);
  if (known == holds_.end() || known->second->count == 0) return kj::READY_NOW;
  const std::shared_ptr<Holds> holds = known->second;
  if (connection_ == nullptr) return giveUp(plan, *holds);
  auto pair = kj::newPromiseAndFulfiller<void>();
  holds->waiting.push_back(kj::mv(pair.fulfiller));
  return pair.promise.exclusiveJoin(
      net::awakeDelay(loop_.timer(), patience).then([this, plan, holds] {
        return giveUp(plan, *holds);
      }));
}

// Resolves in the turn after the one that destroys a closed connection.
kj::Promise<void> TensorLink::giveUp(uint64_t plan, Holds& holds) {
  holds.given_up = true;
  holds_.erase(plan);
  if (connection_ != nullptr) close();
  auto gone = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(gone.fulfiller));
  loop_.post([fulfiller] { (*fulfiller)->fulfill(); });
  return kj::mv(gone.promise);
}

}  // namespace dtf::wire
