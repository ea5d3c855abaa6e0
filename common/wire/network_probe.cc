#include "common/wire/network_probe.h"

#include <capnp/message.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/net/buffer_pool.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/timer.h"
#include "common/wire/named_wait.h"
#include "common/wire/probe.capnp.h"

namespace dtf::wire {

namespace {

constexpr uint64_t kPieceBytesMax = uint64_t{1} << 20;
constexpr size_t kProbePiecesUnderWay = 4;
constexpr size_t kRoundTrips = 200;
constexpr net::Limits kProbeLimits{.bytes_max = kPieceBytesMax + 4096};
constexpr size_t kPoolBytes = 2 * kProbePiecesUnderWay * kPieceBytesMax;

using Words = std::vector<capnp::word>;

// Random bytes, which no link can compress.
std::shared_ptr<const Words> noise() {
  auto buffer = std::make_shared<Words>(kPieceBytesMax / sizeof(capnp::word));
  auto* bytes = reinterpret_cast<kj::byte*>(buffer->data());
  uint32_t state = 1;
  for (size_t i = 0; i < kPieceBytesMax; ++i) {
    state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<kj::byte>(state >> 24);
  }
  return buffer;
}

class Taker final : public schema::NetworkProbe::Server {
 public:
  explicit Taker(std::string identity) : identity_(std::move(identity)) {}

  kj::Promise<void> hello(HelloContext context) override {
    context.getResults().setIdentity(identity_);
    return kj::READY_NOW;
  }
  kj::Promise<void> take(TakeContext context) override {
    taken_ += context.getParams().getBytes().size();
    context.releaseParams();
    if (taken_ > kProbeBytesMax + kProbePiecesUnderWay * kPieceBytesMax)
      return net::toKj(Error(ErrorCode::kUnavailable, "more bytes than a measurement needs"));
    return kj::READY_NOW;
  }

 private:
  const std::string identity_;
  uint64_t taken_ = 0;
};

}  // namespace

// ---- the receiving end

struct ProbeServer::Served {
  std::unique_ptr<net::RpcConnection> connection;
  kj::Promise<void> ended = nullptr;
  bool ending = false;
};

ProbeServer::ProbeServer(net::IoThread& io, std::string identity, const std::string& address,
                         const net::Credentials& credentials)
    : io_(io),
      identity_(std::move(identity)),
      pool_(net::BufferPool::create(kPoolBytes)),
      self_(std::make_shared<ProbeServer*>(this)) {
  DTF_CHECK(!identity_.empty());
  const net::ListenerOptions options{.preamble_deadline = kProbeConnectWithin,
                                     .credentials = credentials};
  io_.call([&] {
    listener_ = std::make_unique<net::Listener>(
        io_.port(), address, 0,
        [this](net::AcceptedSocket socket, net::ConnectionKind /*kind*/, std::string peer) {
          serve(std::move(socket), std::move(peer));
        },
        options);
    listening_ = listener_->address();
  });
}

ProbeServer::~ProbeServer() {
  io_.call([this] {
    *self_ = nullptr;
    listener_.reset();
    served_.clear();
  });
}

void ProbeServer::serve(net::AcceptedSocket socket, std::string peer) {
  if (served_.size() >= kConnectionsMax) return;  // which closes it
  const net::AsioEventPort::Io io(io_.port());
  served_.push_back(std::make_unique<Served>());
  const auto position = std::prev(served_.end());
  Served& served = **position;
  served.connection = std::make_unique<net::RpcConnection>(
      kj::heap<net::AsioMessageStream>(io_.port(),
                                       net::adoptTransport(io_.reactor().ioc, std::move(socket)),
                                       kProbeLimits, pool_),
      [this](net::RpcConnection&) -> capnp::Capability::Client {
        return kj::heap<Taker>(identity_);
      },
      net::RpcOptions{.peer = std::move(peer),
                      .calls_bytes_max = kProbePiecesUnderWay * kPieceBytesMax});
  served.ended = served.connection->onDisconnect()
                     .exclusiveJoin(io_.timer().afterDelay(net::toKj(kProbeWithin)))
                     .then([this, position] { end(position); },
                           [this, position](kj::Exception&&) { end(position); })
                     .eagerlyEvaluate(nullptr);
}

// The connection is destroyed from a turn of its own, never from one of its own promises.
void ProbeServer::end(std::list<std::unique_ptr<Served>>::iterator position) {
  if (std::exchange((*position)->ending, true)) return;
  io_.post([self = self_, position] {
    if (*self != nullptr) (*self)->served_.erase(position);
  });
}

// ---- the sending end

namespace {

// One measurement. Lives as long as the promise.
class Measurement final : private kj::TaskSet::ErrorHandler {
 public:
  Measurement(net::Loop& loop, ProbeTarget target, const ProbeEffort& effort)
      : loop_(loop), target_(std::move(target)), effort_(effort), pieces_(noise()) {}

  kj::Promise<LinkFigures> run() {
    net::ConnectOptions options;
    options.kind = net::ConnectionKind::kBulk;
    options.deadline = kProbeConnectWithin;
    options.attempt_max = kProbeConnectWithin;
    options.certified_task = target_.task;
    return awaitNamed(
        loop_.timer(), {target_.address.str() + " to measure the network", effort_.within},
        loop_
            .connect(target_.address.host, target_.address.port, std::move(options), kProbeLimits,
                     net::BufferPool::create(0))
            .then([this](kj::Own<net::MessageStream> stream) { return measure(kj::mv(stream)); }));
  }

 private:
  kj::Promise<LinkFigures> measure(kj::Own<net::MessageStream> stream) {
    connection_ = std::make_unique<net::RpcConnection>(
        kj::mv(stream), net::RpcOptions{.peer = target_.address.str()});
    probe_ = connection_->bootstrap().castAs<schema::NetworkProbe>();
    return probe_->helloRequest()
        .send()
        .then([this](auto&& answer) {
          if (answer.getIdentity() != target_.identity.c_str())
            net::throwAsKj(Error(ErrorCode::kUnavailable,
                                 "another machine has " + target_.address.str() + ", too"));
          since_ = loop_.clock().now();
          return roundTrips();
        })
        .then([this] { return stream_(); })
        .then([this] {
          return LinkFigures{rate_, round_trips_us_.at(round_trips_us_.size() / 2)};
        });
  }

  kj::Promise<void> roundTrips() {
    const TimePoint asked = loop_.clock().now();
    return probe_->takeRequest().send().ignoreResult().then([this, asked]() -> kj::Promise<void> {
      const TimePoint now = loop_.clock().now();
      round_trips_us_.push_back(toSeconds(now - asked) * 1e6);
      if (round_trips_us_.size() < kRoundTrips && now < since_ + effort_.round_trips)
        return roundTrips();
      std::sort(round_trips_us_.begin(), round_trips_us_.end());
      return kj::READY_NOW;
    });
  }

  // Sends pieces until effort_.streams has passed, or, on a slow link, until the first has arrived.
  kj::Promise<void> stream_() {
    auto done = kj::newPromiseAndFulfiller<void>();
    done_ = kj::mv(done.fulfiller);
    since_ = counted_since_ = loop_.clock().now();
    for (size_t i = 0; i < kProbePiecesUnderWay; ++i) send();
    return kj::mv(done.promise);
  }

  void send() {
    auto request = probe_->takeRequest();
    const auto* bytes = reinterpret_cast<const kj::byte*>(pieces_->data());
    capnp::Data::Reader piece(bytes, piece_bytes_);
    request.adoptBytes(capnp::Orphanage::getForMessageContaining(
                           static_cast<schema::NetworkProbe::TakeParams::Builder>(request))
                           .referenceExternalData(piece));
    connection_->stream().keepUntilWritten(bytes, pieces_);
    sent_ += piece_bytes_;
    const TimePoint asked = loop_.clock().now();
    tasks_.add(request.send().ignoreResult().then(
        [this, asked, count = piece_bytes_] { onTaken(asked, count); }));
  }

  void onTaken(TimePoint asked, uint64_t count) {
    if (!done_->isWaiting()) return;
    const TimePoint now = loop_.clock().now();
    taken_ += count;
    if (now - asked < effort_.quick) piece_bytes_ = std::min(2 * piece_bytes_, kPieceBytesMax);
    if (!warm_ && now >= since_ + effort_.warm_up) {
      warm_ = true;
      const bool is_quick = now < since_ + effort_.streams / 2;
      // If the first reply is late, the link is slow: the rate then includes the warm-up.
      if (is_quick) {
        counted_since_ = now;
        taken_ = 0;
      }
    }
    if (now < since_ + effort_.streams && sent_ < kProbeBytesMax) return send();
    if (taken_ == 0) return;
    rate_ = static_cast<double>(taken_) / toSeconds(now - counted_since_);
    done_->fulfill();
  }

  void taskFailed(kj::Exception&& exception) override { done_->reject(kj::mv(exception)); }

  net::Loop& loop_;
  const ProbeTarget target_;
  const ProbeEffort effort_;
  const std::shared_ptr<const Words> pieces_;  // each piece is a prefix of it
  std::unique_ptr<net::RpcConnection> connection_;
  std::optional<schema::NetworkProbe::Client> probe_;
  TimePoint since_{}, counted_since_{};
  std::vector<double> round_trips_us_;
  uint64_t piece_bytes_ = effort_.piece_bytes;
  uint64_t sent_ = 0, taken_ = 0;
  bool warm_ = false;
  double rate_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> done_;
  kj::TaskSet tasks_{*this};  // first to go
};

}  // namespace

kj::Promise<LinkFigures> measureLink(net::Loop& loop, ProbeTarget target, ProbeEffort effort) {
  auto measurement = kj::heap<Measurement>(loop, std::move(target), effort);
  auto promise = measurement->run();
  return promise.attach(kj::mv(measurement));
}

LinkMeasurement::LinkMeasurement(net::Loop& loop, ProbeTarget target, const ProbeEffort& effort,
                                 std::function<void(const LinkFigures&)> done,
                                 std::function<void(const Error&)> failed)
    : under_way_(measureLink(loop, std::move(target), effort)
                     .then(std::move(done),
                           [tell = std::move(failed)](kj::Exception&& exception) {
                             tell(net::toError(exception));
                           })
                     .eagerlyEvaluate(nullptr)) {}

}  // namespace dtf::wire
