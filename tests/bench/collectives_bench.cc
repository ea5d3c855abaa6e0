// `dtf-bench collectives`: the exchange of a sync step in a job without ps, by two workers on this
// host. Each hosts half of the parameters; a step sums the gradients, makes the update of gradient
// descent and brings all parameters to both: what is a reduce-scatter and an all-gather elsewhere.
// Beside it, in turns: the same update by two processes that map each other's gradients (the
// limit), and a memcpy of the parameters by both.

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <memory>

#include "common/base/log.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/collective_worker.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

constexpr std::chrono::seconds kRanksDeadline{300};
constexpr uint32_t kRanks = 2;

struct Size {
  std::string name;
  uint64_t bytes = 0;
  int steps = 0;
};

std::vector<Size> sizesOf(const BenchOptions& options) {
  const std::vector<Size> all = {{"4 KiB", 4096, 1000},    {"64 KiB", 65536, 500},
                                 {"1 MiB", 1 << 20, 200},  {"16 MiB", 16 << 20, 40},
                                 {"64 MiB", 64 << 20, 12}, {"256 MiB", 256 << 20, 4}};
  if (options.quick) return {{"4 KiB", 4096, 10}, {"1 MiB", 1 << 20, 5}};
  std::vector<Size> chosen;
  for (const Size& size : all)
    if (size.name.starts_with(options.only)) chosen.push_back(size);
  return chosen;
}

// The workers of one size.
class Ranks {
 public:
  Ranks(const Size& size, int repetitions) : limit_(kRanks, size.bytes / sizeof(float)) {
    job_.job = "collectives";
    job_.run_dir = folder_.path();
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      job_.cluster.worker.emplace_back().address = {"127.0.0.1", sockets_.emplace_back().port};
    uint32_t rank = 0;
    for (ListeningSocket& socket : sockets_) start(size, repetitions, rank++, socket);
    for (ListeningSocket& socket : sockets_) socket.fd.reset();
  }

  // Of each repetition, both ranks together.
  std::vector<CollectiveTimes> times() {
    std::vector<CollectiveTimes> all;
    for (const Rank& rank : ranks_) {
      const auto steps = static_cast<size_t>(rank.worker.steps);
      const auto repetitions = static_cast<size_t>(rank.worker.repetitions);
      const std::vector<double> values =
          readValues(rank.times.in, 3 * steps * repetitions, kRanksDeadline,
                     fmt::format("collectives: worker {}", rank.worker.rank));
      all.resize(repetitions);
      auto at = values.begin();
      for (CollectiveTimes& times : all)
        for (std::vector<double>* of : {&times.dtf, &times.limit, &times.copy}) {
          of->insert(of->end(), at, at + rank.worker.steps);
          at += rank.worker.steps;
        }
    }
    return all;
  }

 private:
  struct Rank {
    CollectiveWorker worker;
    Pipe times;
    std::unique_ptr<Child> process;
  };

  void start(const Size& size, int repetitions, uint32_t number, ListeningSocket& socket) {
    Rank& rank = ranks_.emplace_back();
    rank.worker = {job_, number, size.bytes / sizeof(float) / kRanks, repetitions, size.steps};
    rank.process = std::make_unique<Child>(
        [&] {
          log::init("", log::Level::kWarning);
          runCollectiveWorker(rank.worker, std::move(socket.fd), limit_, rank.times.out);
        },
        Child::Cpu::kAny);
    rank.times.out.reset();
  }

  const testing::TemporaryFolder folder_;
  SharedUpdate limit_;
  cluster::JobSpec job_;
  std::list<ListeningSocket> sockets_;
  std::list<Rank> ranks_;
};

}  // namespace

std::vector<Report> benchCollectives(const BenchOptions& options) {
  Report report("sync step without ps, 2 workers on this host, us",
                {"p50", "p99", "limit p50", "memcpy p50", "dtf / limit", "dtf / memcpy"});
  for (const Size& size : sizesOf(options)) {
    Ranks ranks(size, options.repetitions);
    std::vector<double> p50, p99, limit, copy, of_limit, of_copy;
    for (const CollectiveTimes& times : ranks.times()) {
      p50.push_back(percentile(times.dtf, 50) * 1e6);
      p99.push_back(percentile(times.dtf, 99) * 1e6);
      limit.push_back(percentile(times.limit, 50) * 1e6);
      copy.push_back(percentile(times.copy, 50) * 1e6);
      of_limit.push_back(p50.back() / limit.back());
      of_copy.push_back(p50.back() / copy.back());
    }
    report.add(size.name, {median(p50), median(p99), median(limit), median(copy), median(of_limit),
                           median(of_copy)});
  }
  return {report};
}

}  // namespace dtf::bench
