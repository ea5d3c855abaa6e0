#include "tests/sim/network.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

namespace dtf::sim {

// One direction: bytes under way, and bytes that have arrived and are unread.
struct Network::Pipe {
  struct Flight {
    uint64_t event = 0;
    std::vector<kj::byte> bytes;
    bool end = false;
    bool reset = false;
  };
  struct Read {
    kj::byte* buffer;
    size_t min, max, done;
    kj::PromiseFulfiller<size_t>& fulfiller;
  };
  Connection* connection = nullptr;
  ProcessRef from, to;
  TimePoint last_arrival{};
  std::deque<Flight> under_way;
  std::vector<kj::byte> unread;
  size_t read_from = 0;
  bool ended = false;         // no more bytes will come
  bool reset = false;         // and reading reports it as an error
  bool sender_ended = false;  // nothing more may be sent
  Read* reader = nullptr;
};

struct Network::Connection : std::enable_shared_from_this<Connection> {
  Connection() {
    for (Pipe& pipe : pipes) pipe.connection = this;
  }
  std::string name;
  Pipe pipes[2];  // from the side that connected; to it
  TimePoint silent_until{};
};

namespace {

std::string nameOf(const std::string& from, const std::string& to, net::ConnectionKind kind) {
  return from + (kind == net::ConnectionKind::kBulk ? " => " : " -> ") + to;
}

kj::Exception resetError() {
  return KJ_EXCEPTION(DISCONNECTED, "connection reset by peer");
}

}  // namespace

class SimStream final : public kj::AsyncIoStream {
 public:
  SimStream(Network& network, std::shared_ptr<Network::Connection> connection, int side,
            kj::Timer& timer)
      : network_(network),
        connection_(std::move(connection)),
        out_(connection_->pipes[side]),
        in_(connection_->pipes[1 - side]),
        timer_(timer) {}
  // A dead process closes nothing: Network::killed() has done it.
  ~SimStream() noexcept(false) {
    if (!out_.from->dead) network_.sendEnd(out_, false);
    in_.sender_ended = true;  // a write to a closed socket is reset, sooner or later
  }

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    KJ_REQUIRE(in_.reader == nullptr, "two reads at once");
    if (network_.options_.tiny_read_share > 0 &&
        network_.random_.uniform() < network_.options_.tiny_read_share)
      max = min;
    return kj::newAdaptedPromise<size_t, ReadOp>(network_, in_, static_cast<kj::byte*>(buffer), min,
                                                 max);
  }

  kj::Promise<void> write(const void* buffer, size_t size) override {
    const auto* bytes = static_cast<const kj::byte*>(buffer);
    return writeBytes({bytes, bytes + size});
  }
  // Takes the bytes when it gets to them, like the kernel: the owner must have kept them.
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    if (network_.options_.split_share == 0 ||
        network_.random_.uniform() >= network_.options_.split_share) {
      std::vector<kj::byte> bytes;
      for (const auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
      return writeBytes(std::move(bytes));
    }
    return timer_.afterDelay(network_.latency() / std::chrono::nanoseconds(1) * kj::NANOSECONDS)
        .then([this, pieces] {
          std::vector<kj::byte> bytes;
          for (const auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
          const size_t middle = bytes.empty() ? 0 : network_.random_.below(bytes.size());
          std::vector<kj::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(middle),
                                     bytes.end());
          bytes.resize(middle);
          return writeBytes(std::move(bytes)).then([this, rest = std::move(rest)]() mutable {
            return writeBytes(std::move(rest));
          });
        });
  }
  kj::Promise<void> whenWriteDisconnected() override { return kj::NEVER_DONE; }
  void shutdownWrite() override { network_.sendEnd(out_, false); }
  void abortRead() override { in_.sender_ended = true; }
  void getsockopt(int, int, void* value, kj::uint* length) override {
    constexpr int kSendBuffer = 8 << 20;  // the one option that capnp queries
    KJ_REQUIRE(*length >= sizeof kSendBuffer);
    std::memcpy(value, &kSendBuffer, sizeof kSendBuffer);
    *length = sizeof kSendBuffer;
  }

 private:
  // A read that waits for its bytes.
  class ReadOp {
   public:
    ReadOp(kj::PromiseFulfiller<size_t>& fulfiller, Network& network, Network::Pipe& pipe,
           kj::byte* buffer, size_t min, size_t max)
        : connection_(pipe.connection->shared_from_this()),
          pipe_(pipe),
          read_{buffer, min, max, 0, fulfiller} {
      pipe_.reader = &read_;
      network.arrived(pipe_);
    }
    ~ReadOp() {
      if (pipe_.reader == &read_) pipe_.reader = nullptr;
    }
    ReadOp(const ReadOp&) = delete;
    ReadOp& operator=(const ReadOp&) = delete;

   private:
    const std::shared_ptr<Network::Connection> connection_;  // the read may outlive the stream
    Network::Pipe& pipe_;
    Network::Pipe::Read read_;
  };

  kj::Promise<void> writeBytes(std::vector<kj::byte> bytes) {
    if (in_.reset) return resetError();
    if (out_.sender_ended) {
      network_.sendEnd(in_, true);  // the peer has closed: it answers with a reset
      return kj::READY_NOW;
    }
    network_.send(out_, std::move(bytes));
    return kj::READY_NOW;
  }

  Network& network_;
  const std::shared_ptr<Network::Connection> connection_;
  Network::Pipe& out_;
  Network::Pipe& in_;
  kj::Timer& timer_;
};

Duration Network::latency() {
  const bool slow = options_.slow_share > 0 && random_.uniform() < options_.slow_share;
  const Duration most = slow ? options_.slow_max : options_.latency_max;
  return options_.latency_min +
         Duration(static_cast<int64_t>(
             random_.below(static_cast<uint64_t>((most - options_.latency_min).count()) + 1)));
}

void Network::listen(const std::string& address, ProcessRef process, OnConnection on_connection) {
  listeners_[address] = {std::move(process), std::move(on_connection)};
}

kj::Promise<kj::Maybe<Network::Stream>> Network::connect(const ProcessRef& from, kj::Timer& timer,
                                                         std::string address,
                                                         net::ConnectionKind kind) {
  return timer.afterDelay(latency() / std::chrono::nanoseconds(1) * kj::NANOSECONDS)
      .then([this, from, &timer, address = std::move(address), kind]() -> kj::Maybe<Stream> {
        const auto found = listeners_.find(address);
        if (found == listeners_.end()) return nullptr;
        auto connection = std::make_shared<Connection>();
        const ProcessRef& to = found->second.process;
        connection->name =
            nameOf(from->name, to->name, kind) + " #" + std::to_string(connections_made_++);
        connection->pipes[0].from = connection->pipes[1].to = from;
        connection->pipes[0].to = connection->pipes[1].from = to;
        connections_.push_back(connection);
        // The kernel accepts; the process takes the connection when it gets to it.
        auto timer_there = std::make_shared<SimTimer>(scheduler_, to);
        scheduler_.after(latency(), to,
                         [connection, kind, from, timer_there, this,
                          on_connection = found->second.on_connection]() mutable {
                           Stream stream = kj::heap<SimStream>(*this, connection, 1, *timer_there);
                           on_connection(stream.attach(std::move(timer_there)), kind, from->name);
                         });
        return kj::Maybe<Stream>(kj::heap<SimStream>(*this, connection, 0, timer));
      });
}

// Arrival time of bytes sent now: after all that were sent before.
TimePoint Network::arrivalOf(Pipe& pipe) {
  const TimePoint soonest = std::max(scheduler_.now(), pipe.connection->silent_until) + latency();
  pipe.last_arrival = std::max(pipe.last_arrival + Duration(1), soonest);
  return pipe.last_arrival;
}

void Network::send(Pipe& pipe, std::vector<kj::byte> bytes) {
  if (bytes.empty() || hasEnd(pipe)) return;
  const uint64_t event = scheduler_.at(
      arrivalOf(pipe), pipe.to, [this, &pipe, alive = pipe.connection->shared_from_this()] {
        const Pipe::Flight flight = std::move(pipe.under_way.front());
        pipe.under_way.pop_front();
        pipe.unread.insert(pipe.unread.end(), flight.bytes.begin(), flight.bytes.end());
        arrived(pipe);
        ++arrived_;
        for (auto each = on_message_.find(arrived_); each != on_message_.end();
             each = on_message_.find(arrived_)) {
          scheduler_.after({}, nullptr, std::move(each->second));
          on_message_.erase(each);
        }
      });
  pipe.under_way.push_back({event, std::move(bytes), false, false});
}

void Network::onMessage(uint64_t number, std::function<void()> event) {
  on_message_.emplace(number, std::move(event));
}

void Network::sendEnd(Pipe& pipe, bool reset) {
  if (hasEnd(pipe)) return;
  const uint64_t event = scheduler_.at(arrivalOf(pipe), pipe.to,
                                       [this, &pipe, alive = pipe.connection->shared_from_this()] {
                                         pipe.reset = pipe.under_way.front().reset;
                                         pipe.ended = true;
                                         pipe.under_way.pop_front();
                                         arrived(pipe);
                                       });
  pipe.under_way.push_back({event, {}, true, reset});
}

bool Network::hasEnd(const Pipe& pipe) {
  return pipe.ended || (!pipe.under_way.empty() && pipe.under_way.back().end);
}

void Network::arrived(Pipe& pipe) {
  Pipe::Read* read = pipe.reader;
  if (read == nullptr) return;
  const size_t take = std::min(read->max - read->done, pipe.unread.size() - pipe.read_from);
  if (take > 0) std::memcpy(read->buffer + read->done, pipe.unread.data() + pipe.read_from, take);
  read->done += take;
  pipe.read_from += take;
  if (pipe.read_from == pipe.unread.size()) {
    pipe.unread.clear();
    pipe.read_from = 0;
  }
  if (read->done >= read->min) {
    pipe.reader = nullptr;
    return read->fulfiller.fulfill(kj::cp(read->done));
  }
  if (!pipe.ended) return;
  pipe.reader = nullptr;
  if (pipe.reset) return read->fulfiller.reject(resetError());
  read->fulfiller.fulfill(kj::cp(read->done));
}

// Drops the bytes under way behind a random one.
void Network::loseTail(Pipe& pipe) {
  if (pipe.under_way.empty()) return;
  const size_t keep = random_.below(pipe.under_way.size() + 1);
  while (pipe.under_way.size() > keep) {
    if (pipe.under_way.size() == keep + 1 && !pipe.under_way.back().bytes.empty() &&
        random_.below(2) == 0) {
      auto& bytes = pipe.under_way.back().bytes;
      bytes.resize(random_.below(bytes.size()));
      break;
    }
    scheduler_.cancel(pipe.under_way.back().event);
    pipe.under_way.pop_back();
  }
}

void Network::killed(const ProcessRef& process) {
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.process == process; });
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection) continue;
    for (Pipe& pipe : connection->pipes) {
      if (pipe.from != process) continue;
      loseTail(pipe);
      sendEnd(pipe, random_.below(2) == 0);
    }
  }
}

size_t Network::connections() {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  return connections_.size();
}

void Network::cut(size_t index) {
  const auto connection = connections_[index].lock();
  if (!connection) return;
  for (Pipe& pipe : connection->pipes) {
    loseTail(pipe);
    sendEnd(pipe, true);
  }
}

void Network::cutAll(const ProcessRef& process) {
  for (size_t index = 0; index < connections_.size(); ++index) {
    const auto connection = connections_[index].lock();
    if (!connection) continue;
    const bool is_its =
        connection->pipes[0].from == process || connection->pipes[1].from == process;
    if (is_its) cut(index);
  }
}

void Network::silence(size_t index, Duration silence) {
  const auto connection = connections_[index].lock();
  if (connection) connection->silent_until = scheduler_.now() + silence;
}

std::string Network::describe(size_t index) const {
  const auto connection = connections_[index].lock();
  return connection ? connection->name : "a closed connection";
}

std::optional<size_t> Network::find(const std::string& from, const std::string& to,
                                    net::ConnectionKind kind) const {
  const std::string name = nameOf(from, to, kind) + " #";
  for (size_t i = connections_.size(); i-- > 0;) {
    const auto connection = connections_[i].lock();
    if (connection && connection->name.compare(0, name.size(), name) == 0) return i;
  }
  return std::nullopt;
}

}  // namespace dtf::sim
