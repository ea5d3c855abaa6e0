// `dtf-bench rpc`: the RPC stack over loopback TCP, beside raw sockets that move the same bytes.
// Servers are processes of their own; raw and RPC take turns, so that a busy moment of the machine
// hits both.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/net/connector.h"
#include "common/net/reactor.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/raw_peer.h"
#include "tests/support/sizes.h"
#include "tests/unit/net/echo_host.h"

namespace dtf::bench {

namespace {

using net::testing::Echo;
using net::testing::EchoConnection;
using net::testing::EchoHost;

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // this process and the server's
};

Cost costOf(const Child& server, const std::function<void()>& work) {
  const SystemClock clock;
  const TimePoint start = clock.now();
  const double cpu_start = ownCpuSeconds() + server.cpuSeconds();
  work();
  return {toSeconds(clock.now() - start), ownCpuSeconds() + server.cpuSeconds() - cpu_start};
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

// Both stacks and their servers.
struct Stacks {
  const Child& rpc_server;
  const Child& raw_server;
  RpcClient& rpc;
  RawClient& raw;
};

struct Pings {
  std::vector<double> p50_us, p99_us, cpu_us;
};

void measurePings(Pings& pings, const Child& server, int count, const std::function<void()>& ping) {
  const SystemClock clock;
  std::vector<double> latencies;
  const Cost cost = costOf(server, [&] {
    for (int i = 0; i < count; ++i) {
      const TimePoint start = clock.now();
      ping();
      latencies.push_back(toSeconds(clock.now() - start) * 1e6);
    }
  });
  pings.p50_us.push_back(percentile(latencies, 50));
  pings.p99_us.push_back(percentile(latencies, 99));
  pings.cpu_us.push_back(cost.cpu_seconds / count * 1e6);
}

Report reportPings(Stacks& stacks, const BenchOptions& options) {
  const int count = options.quick ? 200 : 2000;
  Pings of_rpc, of_raw;
  for (int i = 0; i < options.repetitions; ++i) {
    measurePings(of_raw, stacks.raw_server, count, [&] { stacks.raw.ping(); });
    measurePings(of_rpc, stacks.rpc_server, count, [&] { stacks.rpc.ping(); });
  }
  Report report("ping over TCP loopback", {"rpc us", "raw us", "rpc / raw"});
  const auto add = [&](const char* what, std::vector<double> Pings::*values) {
    const double rpc = median(of_rpc.*values), raw = median(of_raw.*values);
    report.add(what, {rpc, raw, rpc / raw});
  };
  add("p50", &Pings::p50_us);
  add("p99", &Pings::p99_us);
  add("CPU per ping", &Pings::cpu_us);
  return report;
}

Report reportPipelined(Stacks& stacks, const BenchOptions& options) {
  const int calls = options.quick ? 2000 : 40000;
  Report report("pipelined calls", {"calls/s", "CPU us/call"});
  for (const int in_flight : {8, 64, 256}) {
    std::vector<double> rates, cpu_us;
    for (int i = 0; i < options.repetitions; ++i) {
      const Cost cost = costOf(stacks.rpc_server, [&] { stacks.rpc.pipeline(calls, in_flight); });
      rates.push_back(calls / cost.seconds);
      cpu_us.push_back(cost.cpu_seconds / calls * 1e6);
    }
    report.add(fmt::format("{} in flight", in_flight), {median(rates), median(cpu_us)});
  }
  return report;
}

using Transfer = std::function<void(size_t bytes)>;

struct Rates {
  std::vector<double> gigabytes_per_second, cpu_seconds_per_gigabyte;
};

void measureTransfer(Rates& rates, const Child& server, size_t bytes, const Transfer& transfer) {
  constexpr size_t kBytesPerMeasurement = 128 * kMiB;
  const size_t rounds = std::max<size_t>(1, kBytesPerMeasurement / bytes);
  const Cost cost = costOf(server, [&] {
    for (size_t i = 0; i < rounds; ++i) transfer(bytes);
  });
  const double gigabytes = static_cast<double>(bytes * rounds) / 1e9;
  rates.gigabytes_per_second.push_back(gigabytes / cost.seconds);
  rates.cpu_seconds_per_gigabyte.push_back(cost.cpu_seconds / gigabytes);
}

// Alternating measurements, after one transfer of each that does not count.
void addTransfer(Report& report, const char* what, size_t bytes, Stacks& stacks, int repetitions,
                 const Transfer& rpc, const Transfer& raw) {
  raw(bytes);
  rpc(bytes);
  Rates of_rpc, of_raw;
  for (int i = 0; i < repetitions; ++i) {
    measureTransfer(of_raw, stacks.raw_server, bytes, raw);
    measureTransfer(of_rpc, stacks.rpc_server, bytes, rpc);
  }
  const double rpc_rate = median(of_rpc.gigabytes_per_second);
  const double raw_rate = median(of_raw.gigabytes_per_second);
  report.add(fmt::format("{} {} MiB", what, bytes / kMiB),
             {rpc_rate, raw_rate, rpc_rate / raw_rate, median(of_rpc.cpu_seconds_per_gigabyte),
              median(of_raw.cpu_seconds_per_gigabyte)});
}

Report reportTransfers(Stacks& stacks, size_t bytes_max, int repetitions) {
  Report report("bulk over TCP loopback",
                {"rpc GB/s", "raw GB/s", "rpc / raw", "rpc CPU s/GB", "raw CPU s/GB"});
  for (size_t bytes = kMiB; bytes <= bytes_max; bytes *= 4)
    addTransfer(
        report, "pull", bytes, stacks, repetitions, [&](size_t n) { stacks.rpc.pull(n); },
        [&](size_t n) { stacks.raw.pull(n); });
  for (size_t bytes = kMiB; bytes <= bytes_max; bytes *= 4)
    addTransfer(
        report, "push", bytes, stacks, repetitions, [&](size_t n) { stacks.rpc.push(n); },
        [&](size_t n) { stacks.raw.push(n); });
  return report;
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
  Stacks stacks{rpc_server, raw_server, rpc, raw};
  const auto wanted = [&](std::string_view table) {
    return table.find(options.only) != std::string_view::npos;
  };
  std::vector<Report> reports;
  if (wanted("ping")) reports.push_back(reportPings(stacks, options));
  if (wanted("pipelined")) reports.push_back(reportPipelined(stacks, options));
  if (wanted("bulk")) reports.push_back(reportTransfers(stacks, bytes_max, options.repetitions));
  if (reports.empty())
    throw Error(ErrorCode::kUsage,
                "rpc has the tables ping, pipelined, bulk; none is '" + options.only + "'");
  return reports;
}

}  // namespace dtf::bench
