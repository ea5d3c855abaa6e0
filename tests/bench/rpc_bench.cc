// `dtf-bench rpc`: the RPC stack over loopback TCP, beside raw sockets that move the same bytes.
// Servers are processes of their own; raw and RPC take turns, so that a busy moment of the machine
// hits both.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/net/connector.h"
#include "common/net/reactor.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/raw_peer.h"
#include "tests/unit/net/echo_host.h"

namespace dtf::bench {

namespace {

using net::testing::Echo;
using net::testing::EchoConnection;
using net::testing::EchoHost;

constexpr size_t kMiB = 1 << 20;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double secondsOf(const std::function<void()>& work) {
  const SystemClock clock;
  const TimePoint start = clock.now();
  work();
  return toSeconds(clock.now() - start);
}

void serveRpc(Fd listening, size_t bytes_max) {
  net::Reactor reactor;
  EchoHost host(reactor.port, bytes_max);
  net::Listener listener(reactor.port, std::move(listening), host.onConnection());
  reactor.run();
}

// The client's side of the RPC stack.
class RpcClient {
 public:
  RpcClient(uint16_t port, size_t bytes_max)
      : bytes_(net::testing::makePattern(*pool_, bytes_max)),
        connection_(
            reactor_.port,
            net::connectToPeer(reactor_.port, "127.0.0.1", port, {}).wait(reactor_.wait_scope),
            pool_) {}

  void ping() { call().wait(reactor_.wait_scope); }

  // `calls` calls, `in_flight` of them at a time.
  void pipeline(int calls, int in_flight) {
    int left = calls;
    kj::Vector<kj::Promise<void>> lanes;
    for (int i = 0; i < in_flight; ++i) lanes.add(lane(left));
    kj::joinPromises(lanes.releaseAsArray()).wait(reactor_.wait_scope);
  }

  void pull(size_t bytes) {
    const auto response = net::testing::pull(connection_.echo, 0, bytes).wait(reactor_.wait_scope);
    if (response.getData().size() != bytes) throw Error(ErrorCode::kInternal, "a short pull");
  }

  void push(size_t bytes) {
    net::testing::push(connection_.echo, connection_.stream(), bytes_.get(), bytes, bytes_,
                       /*pin=*/false, /*check=*/false)
        .wait(reactor_.wait_scope);
  }

 private:
  kj::Promise<void> call() {
    return connection_.echo.pingRequest(capnp::MessageSize{4, 0}).send().ignoreResult();
  }
  kj::Promise<void> lane(int& left) {
    if (left-- <= 0) return kj::READY_NOW;
    return call().then([this, &left] { return lane(left); });
  }

  net::Reactor reactor_;
  std::shared_ptr<net::BufferPool> pool_ = net::BufferPool::create();
  std::shared_ptr<std::byte> bytes_;
  EchoConnection connection_;
};

std::vector<double> pingMicroseconds(const std::function<void()>& ping, int count) {
  std::vector<double> latencies;
  latencies.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) latencies.push_back(secondsOf(ping) * 1e6);
  return latencies;
}

void addPings(Report& report, RawClient& raw, RpcClient& rpc, const BenchOptions& options) {
  const int count = options.quick ? 200 : 2000;
  std::vector<double> raw_p50, rpc_p50, raw_p99, rpc_p99;
  for (int i = 0; i < options.repetitions; ++i) {
    const auto of_raw = pingMicroseconds([&] { raw.ping(); }, count);
    const auto of_rpc = pingMicroseconds([&] { rpc.ping(); }, count);
    raw_p50.push_back(percentile(of_raw, 50));
    raw_p99.push_back(percentile(of_raw, 99));
    rpc_p50.push_back(percentile(of_rpc, 50));
    rpc_p99.push_back(percentile(of_rpc, 99));
  }
  const auto row = [&](const char* what, const std::vector<double>& of_rpc,
                       const std::vector<double>& of_raw) {
    report.add(what, {median(of_rpc), median(of_raw), median(of_rpc) / median(of_raw)});
  };
  row("ping p50, us", rpc_p50, raw_p50);
  row("ping p99, us", rpc_p99, raw_p99);
}

void addPipelined(Report& report, RpcClient& rpc, const BenchOptions& options) {
  const int calls = options.quick ? 2000 : 40000;
  for (const int in_flight : {8, 64, 256}) {
    std::vector<double> rates;
    for (int i = 0; i < options.repetitions; ++i)
      rates.push_back(calls / secondsOf([&] { rpc.pipeline(calls, in_flight); }));
    report.add(fmt::format("calls/s, {} in flight", in_flight), {median(rates), kNone, kNone});
  }
}

using Transfer = std::function<void(size_t bytes)>;

// Medians of alternating measurements, after one of each that does not count.
void addBulk(Report& report, const char* what, size_t bytes, const Transfer& rpc,
             const Transfer& raw, int repetitions) {
  constexpr size_t kBytesPerMeasurement = 128 * kMiB;
  const size_t rounds = std::max<size_t>(1, kBytesPerMeasurement / bytes);
  const auto gigabytesPerSecond = [&](const Transfer& transfer) {
    const double seconds = secondsOf([&] {
      for (size_t i = 0; i < rounds; ++i) transfer(bytes);
    });
    return static_cast<double>(bytes * rounds) / seconds / 1e9;
  };
  raw(bytes);
  rpc(bytes);
  std::vector<double> of_rpc, of_raw;
  for (int i = 0; i < repetitions; ++i) {
    of_raw.push_back(gigabytesPerSecond(raw));
    of_rpc.push_back(gigabytesPerSecond(rpc));
  }
  report.add(fmt::format("{} {} MiB, GB/s", what, bytes / kMiB),
             {median(of_rpc), median(of_raw), median(of_rpc) / median(of_raw)});
}

}  // namespace

std::vector<Report> benchRpc(const BenchOptions& options) {
  const size_t bytes_max = (options.quick ? 4 : 256) * kMiB;
  ListeningSocket rpc_socket, raw_socket;
  const uint16_t rpc_port = rpc_socket.port;
  const Child rpc_server([&] { serveRpc(std::move(rpc_socket.fd), bytes_max); });
  const Child raw_server([&] { serveRaw(raw_socket.fd, bytes_max); });
  rpc_socket.fd.reset();
  raw_socket.fd.reset();

  const PinnedToLastCpu pinned;
  RawClient raw(raw_socket.port, bytes_max);
  RpcClient rpc(rpc_port, bytes_max);
  rpc.ping();
  Report report("rpc over TCP loopback", {"rpc", "raw socket", "rpc / raw"});
  addPings(report, raw, rpc, options);
  addPipelined(report, rpc, options);
  const Transfer rpc_pull = [&](size_t bytes) { rpc.pull(bytes); };
  const Transfer raw_pull = [&](size_t bytes) { raw.pull(bytes); };
  const Transfer rpc_push = [&](size_t bytes) { rpc.push(bytes); };
  const Transfer raw_push = [&](size_t bytes) { raw.push(bytes); };
  for (size_t bytes = kMiB; bytes <= bytes_max; bytes *= 4)
    addBulk(report, "pull", bytes, rpc_pull, raw_pull, options.repetitions);
  for (size_t bytes = kMiB; bytes <= bytes_max; bytes *= 4)
    addBulk(report, "push", bytes, rpc_push, raw_push, options.repetitions);
  std::vector<Report> reports;
  reports.push_back(std::move(report));
  return reports;
}

}  // namespace dtf::bench
