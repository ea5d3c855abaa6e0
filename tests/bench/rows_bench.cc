// `dtf-bench rows`: updates of a few rows of a table that no cache holds, beside memcpy of the
// table.

#include <fmt/core.h>

#include <cstring>
#include <set>
#include <vector>

#include "common/arena/gradient_buffer.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/optimizer/parameter_store.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

namespace {

constexpr uint64_t kRowElements = 16;

double millisecondsOf(const auto& work) {
  const SystemClock clock;
  const TimePoint start = clock.now();
  work();
  return 1e3 * toSeconds(clock.now() - start);
}

class RowsBench {
 public:
  RowsBench(cluster::OptimizerSpec::Kind kind, uint32_t rows)
      : rows_(rows),
        store_(cluster::defaultOptimizer(kind), rows * kRowElements, {}, {},
               {{0, rows, kRowElements}}),
        from_(rows * kRowElements, 1),
        to_(from_.size()) {
    store_.initialise(from_);
  }

  // Milliseconds of memcpy and of an update, taking turns, their medians; and rows a second.
  std::vector<double> measure(uint32_t named, int repetitions) {
    for (int i = 0; i < 4; ++i) update(named);  // all arenas and pages exist from here on
    std::vector<double> copies, updates;
    for (int i = 0; i < repetitions; ++i) {
      copies.push_back(millisecondsOf(
          [&] { std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float)); }));
      from_[0] += to_[from_.size() / 2];  // the copy is used, so it can't be left out
      updates.push_back(update(named));
    }
    return {median(copies), median(updates), named / median(updates) / 1e3};
  }

 private:
  // Updates rows anywhere in the table, others each time; returns seconds.
  double update(uint32_t named) {
    std::set<uint32_t> ids;
    while (ids.size() < named) ids.insert(static_cast<uint32_t>(random_.below(rows_)));
    arena::GradientBuffer gradient(store_.gradientLayout());
    const uint32_t counts[] = {named};
    gradient.setRows(counts);
    float* at = gradient.values();
    for (const uint32_t id : ids) std::memcpy(at++, &id, sizeof(id));
    std::fill_n(at, named * kRowElements, 0.5f);
    const arena::Gradient shared = gradient.share();
    return millisecondsOf([&] { store_.apply({shared}); });
  }

  const uint32_t rows_;
  optimizer::ParameterStore store_;
  std::vector<float> from_, to_;
  Random random_{1, 0};
};

}  // namespace

std::vector<Report> benchRows(const BenchOptions& options) {
  using Kind = cluster::OptimizerSpec::Kind;
  const uint32_t rows = (options.quick ? 1'000'000 : 100'000'000) / (kRowElements * sizeof(float));
  std::vector<Report> reports;
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdagrad}) {
    reports.emplace_back(
        fmt::format("{}, a table of {} x {}", cluster::optimizerName(kind), rows, kRowElements),
        std::vector<std::string>{"memcpy ms", "update ms", "Mrows/s"});
    RowsBench bench(kind, rows);
    for (const uint32_t named : {100u, 1000u, 10'000u, 100'000u})
      if (named < rows / 2)
        reports.back().add(fmt::format("{} rows named", named),
                           bench.measure(named, options.repetitions));
  }
  return reports;
}

}  // namespace dtf::bench
