// `dtf-bench transfer`: the gain of training when parameters and gradients travel as bfloat16, int8
// or the largest alone (replication.transfer), and when only those rows of a table travel that a
// batch looks up. A
// ps and a worker of one thread each by dtf-launch, with it and without, in turns. Over a link of
// limited speed if this process's network has one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

namespace {

// A table of 64 MB; a batch of digits looks up 256 of its rows. If a step has two batches of a
// worker, the whole table travels, once for both.
Report benchTable(const BenchOptions& options) {
  constexpr JobModel kTable{
      "embedding of 1 000 000 x 16",
      "embedding: {input_dim: 1000000, output_dim: 16}, flatten: , dense: {units: 10}", 300};
  const JobShape rows{.replication = "{mode: sync}", .shared_memory = false};
  JobShape shared = rows, whole = rows;
  shared.shared_memory = true;
  whole.replication = "{mode: sync, replicas_to_aggregate: 2}";
  Report report("batches/s, 1 ps + 1 worker of one thread (medians)",
                {"as rows", "in memory", "ratio", "whole", "ratio"});
  const uint64_t steps = options.quick ? kTable.quickSteps() : kTable.steps;
  std::vector<double> by_rows, in_memory, of_memory, all, of_all;
  for (int turn = 0; turn < options.repetitions; ++turn) {
    by_rows.push_back(stepsPerSecond(kTable, rows, steps));
    in_memory.push_back(stepsPerSecond(kTable, shared, steps));
    all.push_back(2 * stepsPerSecond(kTable, whole, steps / 4 + 1));
    of_memory.push_back(by_rows.back() / in_memory.back());
    of_all.push_back(by_rows.back() / all.back());
  }
  report.add(kTable.name,
             {median(by_rows), median(in_memory), median(of_memory), median(all), median(of_all)});
  return report;
}

// A model that is large for its batches: its step is the time of its 80 MB on their way, twice.
Report benchLossy(const BenchOptions& options) {
  constexpr JobModel kWide{
      "784-4096-4096-10 b8",
      "flatten: , dense: {units: 4096, activation: relu}, dense: {units: 4096, "
      "activation: relu}, dense: {units: 10}",
      30, 8};
  const JobShape wide{.replication = "{mode: sync}", .shared_memory = false};
  JobShape eight = wide, hundredth = wide;
  eight.replication = "{mode: sync, transfer: {dtype: int8}}";
  hundredth.replication = "{mode: sync, transfer: {top_k: 0.01}}";
  Report report("steps/s, 1 ps + 1 worker of one thread, through sockets (medians)",
                {"float32", "int8", "ratio", "top_k 0.01", "ratio"});
  const uint64_t steps = options.quick ? kWide.quickSteps() : kWide.steps;
  std::vector<double> all, of_eight, eight_ratios, of_hundredth, hundredth_ratios;
  for (int turn = 0; turn < options.repetitions; ++turn) {
    all.push_back(stepsPerSecond(kWide, wide, steps));
    of_eight.push_back(stepsPerSecond(kWide, eight, 2 * steps));
    of_hundredth.push_back(stepsPerSecond(kWide, hundredth, 4 * steps));
    eight_ratios.push_back(of_eight.back() / all.back());
    hundredth_ratios.push_back(of_hundredth.back() / all.back());
  }
  report.add(kWide.name, {median(all), median(of_eight), median(eight_ratios), median(of_hundredth),
                          median(hundredth_ratios)});
  return report;
}

}  // namespace

std::vector<Report> benchTransfer(const BenchOptions& options) {
  std::vector<Report> reports;
  for (const auto& [mode, narrow_mode] :
       {std::pair{"{mode: sync}", "{mode: sync, transfer_dtype: bfloat16}"},
        std::pair{"{mode: async}", "{mode: async, transfer_dtype: bfloat16}"}}) {
    if (options.quick && !reports.empty()) break;
    const JobShape wide{.replication = mode, .shared_memory = false};
    JobShape narrow = wide;
    narrow.replication = narrow_mode;
    reports.push_back(besideEachOther(
        options, std::string(mode) + ", 1 ps + 1 worker of one thread, through sockets (medians)",
        "as bfloat16", wide, narrow));
  }
  if (std::string("784-4096-4096-10").starts_with(options.only))
    reports.push_back(benchLossy(options));
  if (std::string("embedding").starts_with(options.only)) reports.push_back(benchTable(options));
  return reports;
}

}  // namespace dtf::bench
