// `dtf-bench optimizers`: updates of parameters that no cache holds, beside memcpy, on one thread,
// with each instruction set of this CPU. Both are counted in bytes per second that the program
// reads and writes. Neither contains the other traffic of the memory bus: a cache line is read
// before it is overwritten.

#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/isa.h"
#include "common/base/json.h"
#include "common/optimizer/parameter_store.h"
#include "tests/bench/benchmarks.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

// With AVX2 or more. Without, four lanes' divisions and square roots take longer than the memory
// bus.
double goalWith(Isa isa) {
  return isa == Isa::kBaseline ? std::numeric_limits<double>::quiet_NaN() : 0.7;
}

struct Case {
  std::string name;
  cluster::OptimizerSpec spec;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int kind = 1; cluster::isOptimizerKind(kind); ++kind) {
    const cluster::OptimizerSpec spec = cluster::defaultOptimizer(static_cast<Kind>(kind));
    const std::string name(cluster::optimizerName(spec.kind));
    all.push_back({name, spec});
    if (spec.kind == Kind::kMomentum) {
      all.push_back({name + ", nesterov", spec});
      all.back().spec.use_nesterov = true;
      all.push_back({name + ", all common", spec});
      all.back().spec.clip_by_value = 1;
      all.back().spec.weight_decay = 1e-4;
      all.back().spec.moving_average_decay = 0.999;
    }
    if (spec.kind == Kind::kRmsProp) {
      all.push_back({name + ", centered", spec});
      all.back().spec.centered = true;
    }
  }
  return all;
}

// Arrays that one update reads and writes: parameters, gradient, new parameters; each slot twice;
// and the arrays that the measuring pass of lars (parameters, gradient) and lamb (slots too) reads.
double arraysMoved(const cluster::OptimizerSpec& spec) {
  const double arrays = 3 + 2 * optimizer::slotCount(spec);
  return arrays + (spec.kind == Kind::kLars ? 2 : spec.kind == Kind::kLamb ? 4 : 0);
}

double secondsOf(const std::function<void()>& work) {
  const SystemClock clock;
  const TimePoint start = clock.now();
  work();
  return toSeconds(clock.now() - start);
}

class Bench {
 public:
  explicit Bench(uint64_t elements) : from_(elements, 1), to_(elements), values_(elements, 0.5f) {
    // Varied values, so that no work can be saved and no value underflows.
    for (uint64_t i = 0; i < elements; ++i) values_[i] += static_cast<float>(i % 97) * 0.001f;
    gradient_ = std::make_shared<const std::vector<float>>(values_);
  }

  // GB/s of memcpy and of the update, taking turns; the medians of both and of the ratios.
  std::vector<double> measure(const cluster::OptimizerSpec& spec, int repetitions) {
    optimizer::ParameterStore store(spec, values_.size(), {{0, 0, values_.size(), 0}});
    store.initialise(values_);
    const auto update = [&] {
      store.apply({{*gradient_, gradient_}});
      store.dropPrevious();
    };
    for (int i = 0; i < 3; ++i) update();  // all arenas and pages exist from here on
    copy();
    const double bytes = static_cast<double>(values_.size()) * sizeof(float);
    std::vector<double> copies, updates, ratios;
    for (int i = 0; i < repetitions; ++i) {
      copies.push_back(2 * bytes / secondsOf([&] { copy(); }) / 1e9);
      updates.push_back(arraysMoved(spec) * bytes / secondsOf(update) / 1e9);
      ratios.push_back(updates.back() / copies.back());
    }
    return {arraysMoved(spec) * 4, median(copies), median(updates), median(ratios),
            goalWith(bestIsa())};
  }

 private:
  void copy() {
    std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float));
    from_[0] = to_[from_.size() / 2];  // the copy is used, so it can't be left out
  }

  std::vector<float> from_, to_, values_;
  std::shared_ptr<const std::vector<float>> gradient_;
};

const std::vector<std::string> kColumns = {"bytes/element", "memcpy GB/s", "update GB/s", "ratio",
                                           "goal"};

std::string titleOf(uint64_t mib, Isa isa) {
  return fmt::format("{} MiB, {}", mib, isaName(isa));
}

// With the instruction set of this process.
Report measureHere(uint64_t mib, const BenchOptions& options) {
  Bench bench((mib << 20) / sizeof(float));
  Report report(titleOf(mib, bestIsa()), kColumns);
  for (const Case& c : cases()) report.add(c.name, bench.measure(c.spec, options.repetitions));
  return report;
}

// A process chooses its instruction set once, so another one needs another process.
Report measureWith(Isa isa, uint64_t mib, const BenchOptions& options) {
  const std::string name(isaName(isa));
  std::vector<std::string> argv = {std::filesystem::read_symlink("/proc/self/exe"),
                                   "--json",
                                   "--only",
                                   name,
                                   "--repetitions",
                                   std::to_string(options.repetitions),
                                   "optimizers"};
  if (options.quick) argv.emplace_back("--quick");
  const testing::ProcessResult result =
      testing::runProcess(argv, std::chrono::minutes(10), {{"DTF_MAX_CPU_ISA", name}});
  if (result.exit_code != 0)
    throw Error(ErrorCode::kInternal, "dtf-bench for " + name + ": " + result.err);
  Report report(titleOf(mib, isa), kColumns);
  const auto tables = Json::parse(result.out);
  for (const auto& row : tables.at("optimizers").at(0).at("rows")) {
    std::vector<double> values;
    for (const std::string& column : kColumns)
      values.push_back(row.doubleOr(column, std::numeric_limits<double>::quiet_NaN()));
    report.add(row.stringAt("what"), std::move(values));
  }
  return report;
}

}  // namespace

std::vector<Report> benchOptimizers(const BenchOptions& options) {
  const uint64_t mib = options.quick ? 1 : 64;
  std::vector<Report> reports;
  for (const Isa isa : supportedIsas()) {
    if (!options.only.empty() && options.only != isaName(isa)) continue;
    reports.push_back(isa == bestIsa() ? measureHere(mib, options)
                                       : measureWith(isa, mib, options));
  }
  return reports;
}

}  // namespace dtf::bench
