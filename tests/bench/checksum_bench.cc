// `dtf-bench checksum`: the cost of checksums of messages. Two pairs of an echo server and a client
// over loopback TCP, one with and one without, take turns. Over a link of limited speed if this
// process's network has one: see README.md.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/net/connector.h"
#include "common/net/reactor.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/support/sizes.h"
#include "tests/unit/net/echo_host.h"

namespace dtf::bench {

namespace {

constexpr int kInFlight = 64;
constexpr double kGoal = 0.9;  // of the speed without

void serve(Fd listening, size_t bytes_max, bool checks) {
  net::Reactor reactor;
  net::testing::EchoHost host(reactor.port, bytes_max);
  if (!checks) host.sendUnchecked();
  net::Listener listener(reactor.port, std::move(listening), host.onConnection());
  reactor.run();
}

class Client {
 public:
  Client(net::Reactor& reactor, uint16_t port, size_t bytes_max, bool checks)
      : reactor_(reactor),
        bytes_(net::testing::makePattern(*pool_, bytes_max)),
        connection_(
            reactor_.port,
            net::connectToPeer(reactor_.port, "127.0.0.1", port, {}).wait(reactor_.wait_scope),
            pool_, checks) {}

  void pull(size_t bytes) {
    const auto response = net::testing::pull(connection_.echo, 0, bytes).wait(reactor_.wait_scope);
    if (response.getData().size() != bytes) throw Error(ErrorCode::kInternal, "a short pull");
  }
  void push(size_t bytes) {
    net::testing::push(connection_.echo, connection_.stream(), bytes_.get(), bytes, bytes_,
                       /*pin=*/false, /*check=*/false)
        .wait(reactor_.wait_scope);
  }
  void call(size_t calls) {
    size_t left = calls;
    kj::Vector<kj::Promise<void>> lanes;
    for (int i = 0; i < kInFlight; ++i) lanes.add(lane(left));
    kj::joinPromises(lanes.releaseAsArray()).wait(reactor_.wait_scope);
  }

 private:
  kj::Promise<void> lane(size_t& left) {
    if (left == 0) return kj::READY_NOW;
    --left;
    return connection_.echo.pingRequest(capnp::MessageSize{4, 0})
        .send()
        .ignoreResult()
        .then([this, &left] { return lane(left); });
  }

  net::Reactor& reactor_;
  std::shared_ptr<net::BufferPool> pool_ = net::BufferPool::create();
  std::shared_ptr<std::byte> bytes_;
  net::testing::EchoConnection connection_;
};

using Work = void (Client::*)(size_t);

struct Side {
  Client& client;
  const Child& server;
  std::vector<double> rates, cpu_rates;  // amounts a second, and a second of both ends' processors
};

// The work and the amount of one turn.
struct Load {
  Work work;
  size_t size;  // of a call of `work`
  size_t rounds;
  double amount;
};

void measure(Side& side, const Load& load) {
  const SystemClock clock;
  const double cpu_start = ownCpuSeconds() + side.server.cpuSeconds();
  const TimePoint start = clock.now();
  for (size_t i = 0; i < load.rounds; ++i) (side.client.*load.work)(load.size);
  side.rates.push_back(load.amount / toSeconds(clock.now() - start));
  side.cpu_rates.push_back(load.amount / (ownCpuSeconds() + side.server.cpuSeconds() - cpu_start));
}

// Measures in turns, and either side goes first in half of them; each ratio is the median over the
// turns.
void addRow(Report& report, const std::string& what, Side checked, Side unchecked, const Load& load,
            int repetitions) {
  (checked.client.*load.work)(load.size);
  (unchecked.client.*load.work)(load.size);
  std::vector<double> ratios, cpu_ratios;
  for (int i = 0; i < repetitions; ++i) {
    measure(i % 2 == 0 ? checked : unchecked, load);
    measure(i % 2 == 0 ? unchecked : checked, load);
    ratios.push_back(checked.rates.back() / unchecked.rates.back());
    cpu_ratios.push_back(checked.cpu_rates.back() / unchecked.cpu_rates.back());
  }
  report.add(what,
             {median(checked.rates), median(unchecked.rates), median(ratios), kGoal,
              1 / median(checked.cpu_rates), 1 / median(unchecked.cpu_rates), median(cpu_ratios)});
}

std::vector<std::string> columns(const std::string& unit) {
  return {"with", "without", "ratio", "goal", "CPU s/" + unit + " with", "without", "ratio"};
}

}  // namespace

std::vector<Report> benchChecksum(const BenchOptions& options) {
  const size_t bytes_max = (options.quick ? 4 : 64) * kMiB;
  const size_t bytes_in_turn = (options.quick ? 4 : 512) * kMiB;
  ListeningSocket checked_socket, unchecked_socket;
  const Child checked_server([&] { serve(std::move(checked_socket.fd), bytes_max, true); });
  const Child unchecked_server([&] { serve(std::move(unchecked_socket.fd), bytes_max, false); });
  checked_socket.fd.reset();
  unchecked_socket.fd.reset();
  const PinnedToLastCpu pinned;
  net::Reactor reactor;
  Client checked(reactor, checked_socket.port, bytes_max, true);
  Client unchecked(reactor, unchecked_socket.port, bytes_max, false);
  const Side with{checked, checked_server, {}, {}};
  const Side without{unchecked, unchecked_server, {}, {}};

  Report bulk("GB/s of one connection (medians)", columns("GB"));
  for (const auto& [name, work] : {std::pair("pull", &Client::pull), {"push", &Client::push}})
    for (size_t bytes = kMiB; bytes <= bytes_max; bytes *= 4) {
      const size_t rounds = bytes_in_turn / bytes;
      addRow(bulk, fmt::format("{} {} MiB", name, bytes / kMiB), with, without,
             {work, bytes, rounds, static_cast<double>(bytes * rounds) / 1e9}, options.repetitions);
    }
  Report calls(fmt::format("1000 empty calls a second, {} in flight (medians)", kInFlight),
               columns("1000"));
  const size_t count = options.quick ? 2000 : 40000;
  addRow(calls, "calls", with, without,
         {&Client::call, count, 1, static_cast<double>(count) / 1000}, options.repetitions);
  return {bulk, calls};
}

}  // namespace dtf::bench
